// Rules of flushed pipelines as lists of events, to compare schedules and engine with.
// SPDX-License-Identifier: Apache-2.0
//
// Written from the papers' rules alone; it shares no code with sim/. One step; transfers are pure
// delays between ranks, and no sender waits. Rank r of p has chunks r, p + r, 2p + r, ...
//   1f1b: p - 1 - r forwards, then a forward and a backward in turn, then the other backwards.
//   interleaved: the same over chunks, which take p micro-batches at a time; forwards from the
//   first
//     chunk on, backwards from the last; 2 (p - 1 - r) + (v - 1) p forwards first.
//   zb-h1: as 1f1b, but in halves; the weight half of backward k comes after input half k + r.
//   zb-h2: 2 (p - 1 - r) forwards first; weight half k comes after input half k + 2r.
// A fused backward sends its gradient when all of it is done.
#pragma once

#include <string>

namespace interlock {

struct PipelineCase {
  std::string rule;
  int ranks = 1, chunks = 1, micro_batches = 1;
  double forward = 1, backward_input = 1, backward_weight = 1;  // of a chunk
  double transfer = 0;
};

struct PipelineOutcome {
  double makespan = 0;
  double longest_rank = 0;  // the longest time, of any rank, from first begin to last end
};

/// CHECKs that the rule ends.
PipelineOutcome run_pipeline(const PipelineCase& pipeline);

}  // namespace interlock
