// Steps of many micro-batches, predicted by two shorter ones.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/long_step.h"

#include <utility>

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

ScenarioResult run_with(const LaidOut& laid_out, int micro_batches) {
  return simulate_plan(complete({with_micro_batches(laid_out.draft, micro_batches)}),
                       Keep::Explanation);
}

}  // namespace

std::optional<ShorterSteps> shorter_steps(const LaidOut& laid_out) {
  const Plan& plan = laid_out.draft;
  const Question& scenario = plan.question;
  const ScheduleEntry& entry = *plan.schedule.kind;
  const int all = plan.micro_batches;
  const bool loop = entry.period != nullptr && !plan.schedule.order && plan.sized_batches.empty() &&
                    !scenario.variation && !scenario.run && !scenario.swarm &&
                    plan.schedule.update_every == all;
  if (!loop) return std::nullopt;
  const int period = entry.period({.ranks = scenario.layout.ranks(), .round = plan.schedule.round});
  const int turns = (kTurns * scenario.layout.ranks() + period - 1) / period + 1;
  const int few = all % period + turns * period, more = few + kApart * period;
  if (kSaving * (few + more) > all) return std::nullopt;
  return ShorterSteps{few, more};
}

LongStepResult run_long_step(const LaidOut& laid_out) {
  if (const std::optional<ShorterSteps> shorter = shorter_steps(laid_out)) {
    const ScenarioResult few = run_with(laid_out, shorter->few);
    ScenarioResult more = run_with(laid_out, shorter->more);
    const Seconds first = few.measurement.metrics.step_time;
    const Seconds last = more.measurement.metrics.step_time;
    const Seconds turn = (last - first) / (shorter->more - shorter->few);
    if (same_memory(few, more)) {
      return {std::move(more), last + turn * (laid_out.draft.micro_batches - shorter->more)};
    }
  }
  ScenarioResult result = simulate_plan(complete(laid_out), Keep::Explanation);
  const Seconds step_time = result.measurement.metrics.step_time;
  return {std::move(result), step_time};
}

}  // namespace interlock
