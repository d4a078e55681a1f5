// MeasuredPipeline: where the time of a measured pipeline went, and what stragglers cost it.
// SPDX-License-Identifier: Apache-2.0
//
// Ops of all ranks are put together as a simulation has them: each after the one before it on
// its rank, a forward after that of the stage before, a backward after that of the stage behind,
// and so what is computed again for it, unless it ever comes earlier. What a rank idles is put
// down to what the next op waited for. Then the steps are replayed with other durations, as in
// Lin et al., arXiv 2505.05713: of each stage its median, of all stages their mean. For example
// ranks 0 and 1 run F0 for 1 and 3 ms: rank 1 fills for 1 ms, and F1 of rank 1, which rank 0
// ended long before it could begin, waits for nothing but rank 1 itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "reports/kineto/kineto_events.h"
#include "reports/kineto/op_attribution.h"

namespace interlock {

/// An op of a stage, nanoseconds of the trace's clock.
struct MeasuredOp {
  Phase phase = Phase::Forward;
  int stage = -1;   // below 0: what its rank holds, as the range does not say
  int number = -1;  // among those of its stage and phase
  std::int64_t start = 0, end = 0, busy = 0;
};

struct MeasuredRank {
  std::string file;
  std::optional<int> rank;
  std::vector<MeasuredOp> ops;                                       // by start
  std::vector<std::pair<std::int64_t, std::int64_t>> communication;  // begin and end, in order
};

struct MeasuredPipeline {
  std::vector<MeasuredRank> ranks;
  int steps = 0;             // of the trace that has most
  std::string problem = {};  // why it cannot be put together
};

/// Adds what the trace of one rank says.
void add_rank(MeasuredPipeline& pipeline, const KinetoEvents& events, const OpAttribution& ops);

/// The parts of a rank's time.
enum class RankTime {
  Busy,        // kernels of ops
  InsideOps,   // between the kernels of an op: the host is late
  Fill,        // until the first op of a step reaches it
  Drain,       // from its last op of a step until all have ended it
  Activation,  // until the stage before is as far
  Gradient,    // until the stage behind is
  Message,     // what it waits for is done, and a message or a collective is under way
  Host,        // nothing is under way that the trace knows
};
inline constexpr int kRankTimes = 8;
/// Returns "busy", "inside_ops", ...
const char* name_of(RankTime part);

struct RankUse {
  std::vector<int> stages;
  std::array<Seconds, kRankTimes> time{};  // which add up to the window
  Seconds clock_shift;                     // taken off its clock, as causes came after effects
};

/// Steps as they would be; each is the mean over all steps of the traces.
struct StragglerCost {
  Seconds measured, replayed;       // the second out of the ops as measured
  Seconds even;                     // every op takes the median of its stage
  Seconds equal;                    // and every stage the mean of the stages
  std::vector<Seconds> stage_gain;  // from `even`, if one stage took the mean of the others at most
};

struct PipelineAnswer {
  Seconds window;  // from the first op to the end of the last
  int steps = 1;
  std::vector<RankUse> ranks;  // as they were added
  StragglerCost cost;
};

/// Returns nothing where the traces are no pipeline, `pipeline.problem` or `why` says for what
/// reason.
std::optional<PipelineAnswer> analyse(MeasuredPipeline pipeline, std::string& why);

}  // namespace interlock
