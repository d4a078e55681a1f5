// Chooses the tick of a run by how long it may become.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/run_clock.h"

#include <cmath>

#include "base/error.h"

namespace interlock {
namespace {

constexpr double kPatience = 1000;
constexpr double kMostTicks = 0x1p61;
constexpr double kFinest = 1e12;  // ticks per second

/// Returns the longest that the run may take if nothing is ever lost, at least.
Seconds expected_length(const RunPlan& plan) {
  const int fewest = plan.on_failure == OnFailure::DropReplica ? 1 : plan.replicas;
  const CheckpointPolicy& checkpoint = plan.checkpoint;
  const auto steps = static_cast<double>(plan.steps);
  Seconds length = steps * step_time_of(plan, fewest) + plan.detection + plan.reload +
                   plan.regroup + plan.warm_up + checkpoint.write + checkpoint.stall;
  if (checkpoint.interval > 0) {
    const double writes = std::ceil(steps / static_cast<double>(checkpoint.interval));
    length += writes * (checkpoint.write + checkpoint.stall);
  }
  if (plan.failures.replacement) length += *plan.failures.replacement;
  if (!plan.failures.trace.empty()) length += plan.failures.trace.back().time;
  return length;
}

}  // namespace

RunTicks RunClock::ticks(Seconds time) const {
  const double ticks = std::nearbyint(time.value() * ticks_per_second);
  return ticks > static_cast<double>(horizon) ? horizon + 1 : static_cast<RunTicks>(ticks);
}

Seconds RunClock::seconds(RunTicks ticks) const {
  return Seconds(static_cast<double>(ticks) / ticks_per_second);
}

RunClock make_run_clock(const RunPlan& plan) {
  const double longest = kPatience * expected_length(plan).value();
  RunClock clock{.ticks_per_second = kFinest};
  while (longest * clock.ticks_per_second > kMostTicks) clock.ticks_per_second /= 10;
  clock.horizon = static_cast<RunTicks>(longest * clock.ticks_per_second);
  return clock;
}

}  // namespace interlock
