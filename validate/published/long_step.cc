// Steps of many micro-batches, predicted by two shorter ones.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/long_step.h"

#include <utility>

#include "reports/headlines/figures.h"

namespace interlock {
namespace {

constexpr int kTurns = 3;   // of the loop, for each stage of it, until times have settled
constexpr int kApart = 4;   // turns between the two steps: what nearly repeats is averaged
constexpr int kSaving = 2;  // times that both together must be shorter than the step

/// Returns true if a further turn of the loop needs no more memory; it does if a step keeps
/// everything.
bool same_memory(const ScenarioResult& few, const ScenarioResult& more) {
  const auto peak = [](const ScenarioResult& result) {
    return fullest_device(result.measurement.metrics).peak_memory;
  };
  return peak(few) == peak(more);
}

}  // namespace

Scenario with_micro_batches(const Scenario& scenario, int micro_batches) {
  Scenario other = scenario;
  other.micro_batches = other.schedule.update_every = micro_batches;
  return other;
}

std::optional<ShorterSteps> shorter_steps(const Scenario& scenario) {
  const ScheduleEntry& entry = *scenario.schedule.kind;
  const int all = scenario.micro_batches;
  const bool loop = entry.period != nullptr && !scenario.schedule.order && scenario.parts.empty() &&
                    !scenario.variation && !scenario.run && !scenario.swarm &&
                    scenario.schedule.update_every == all;
  if (!loop) return std::nullopt;
  const int stages = static_cast<int>(scenario.rank_of_stage.size()) / scenario.copies;
  const int period = entry.period({scenario.ranks, stages, all});
  const int turns = (kTurns * scenario.ranks + period - 1) / period + 1;
  const int few = all % period + turns * period, more = few + kApart * period;
  if (kSaving * (few + more) > all) return std::nullopt;
  return ShorterSteps{few, more};
}

LongStepResult run_long_step(const Scenario& scenario) {
  if (const std::optional<ShorterSteps> shorter = shorter_steps(scenario)) {
    const ScenarioResult few = run_scenario(with_micro_batches(scenario, shorter->few), false);
    ScenarioResult more = run_scenario(with_micro_batches(scenario, shorter->more), false);
    const Seconds first = few.measurement.metrics.step_time;
    const Seconds last = more.measurement.metrics.step_time;
    const Seconds turn = (last - first) / (shorter->more - shorter->few);
    if (same_memory(few, more)) {
      return {std::move(more), last + turn * (scenario.micro_batches - shorter->more)};
    }
  }
  ScenarioResult result = run_scenario(scenario, false);
  const Seconds step_time = result.measurement.metrics.step_time;
  return {std::move(result), step_time};
}

}  // namespace interlock
