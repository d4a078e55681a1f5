// A few steps of a program, run without contention.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/quick_look.h"

#include <algorithm>

#include "base/error.h"
#include "sim/engines/engines.h"
#include "sim/measure/memory.h"

namespace interlock {

double quick_step_time(const Program& program) {
  CHECK(program.steps >= 4, "a few steps");
  const int last = program.steps - 1, middle = program.steps / 2 - 1;
  std::vector<std::vector<double>> ends(program.ranks.size(), std::vector<double>(last + 1, 0));
  const TraceSink sink{.span = [&](const Span& span) {
    double& end = ends[span.rank][span.micro_batch / program.micro_batches];
    end = std::max(end, span.end.value());
  }};
  try {
    run_native(program, sink);
  } catch (const Error&) {  // a deadlock
    return kInfinity;
  }
  double longest = 0;
  for (const std::vector<double>& rank : ends) {
    longest = std::max(longest, (rank[last] - rank[middle]) / (last - middle));
  }
  return longest;
}

std::vector<double> quick_peaks(const Program& program) {
  MemoryTracker tracker(program);
  const TraceSink sink{.span = [&](const Span& span) { tracker.pass(span.rank, span.start); },
                       .memory = [&](const MemoryChange& change) { tracker.add(change); }};
  run_native(program, sink);
  std::vector<double> peaks;
  for (const MemoryPeak& peak : tracker.finish()) peaks.push_back(peak.total.value());
  return peaks;
}

}  // namespace interlock
