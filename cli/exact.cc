// --exact: how far a step is from the shortest one that the same stash allows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "cli/parser/commands.h"
#include "reports/terminal/terminal_grid.h"
#include "scenarios/plan/lower_plan.h"
#include "validate/exact/exact_schedule.h"

namespace interlock {
namespace {

constexpr int kMostVisits = 40;  // stages x micro-batches, of which the search grows exponentially

[[noreturn]] void refuse(const Question& scenario, const std::string& why) {
  throw Error(scenario.file + ": " + scenario.name + ": --exact " + why);
}

void check_plan(const Plan& plan) {
  const Question& scenario = plan.question;
  const auto stages = static_cast<int>(plan.rank_of_stage.size());
  const Training* const training = std::get_if<Training>(&scenario.workload);
  const bool plain = training != nullptr && training->strategy.kind == StrategyKind::Global &&
                     stages == scenario.layout.ranks() && plan.schedule.stash == StashMode::Kept &&
                     plan.slices.empty() && plan.sized_batches.empty() &&
                     training->recompute == Recompute::None;
  if (!plain) {
    refuse(scenario,
           "knows one stage a device only; expected global training without recompute, "
           "copies or slices");
  }
  if (stages * plan.micro_batches > kMostVisits) {
    refuse(scenario, "would search for days; expected at most " + std::to_string(kMostVisits) +
                         " stages x micro-batches, got " +
                         std::to_string(stages * plan.micro_batches));
  }
  if (!has_exact_solver()) {
    refuse(scenario, "needs the program cbc; expected it installed (apt-get install coinor-cbc)");
  }
}

/// Returns the time of a message between neighbours, the same everywhere.
double transfer_time(const Question& scenario, const Program& program) {
  std::optional<double> time;
  for (const Channel& channel : program.channels) {
    const double takes = (channel.occupancy + channel.latency).value();
    if (time && takes != *time) {
      refuse(scenario, "knows equal transfers only; expected stages of equal output");
    }
    time = takes;
  }
  return time.value_or(0);
}

/// From the first start to the last end of a step that runs alone, updates left out.
double span_of_step(const Question& scenario, const Program& program) {
  double begin = 1e300, end = 0;
  const TraceSink sink{.span = [&](const Span& span) {
    if (program.ops[span.op].kind == OpKind::U) return;
    begin = std::min(begin, span.start.value());
    end = std::max(end, span.end.value());
  }};
  run_program(program, scenario.simulation.engine, sink);
  return end - begin;
}

}  // namespace

Headline exact_headline(const ScenarioResult& result) {
  const Plan& plan = result.plan;
  const Question& scenario = plan.question;
  check_plan(plan);
  const Program program = lower_plan(plan, 1);
  const double span = span_of_step(scenario, program);
  ExactInputs inputs{.transfer = transfer_time(scenario, program),
                     .micro_batches = plan.micro_batches,
                     .at_most = span};
  const std::vector<StageCost> costs = lower_inputs(plan).stages;
  const std::vector<int> held = most_held(result);
  for (std::size_t stage = 0; stage < costs.size(); ++stage) {
    inputs.stages.push_back({.forward = costs[stage].forward.time.value(),
                             .input = costs[stage].backward_input.time.value(),
                             .weight = costs[stage].backward_weight.time.value(),
                             .held = held[plan.rank_of_stage[stage]]});
  }
  const std::optional<ExactResult> exact = solve_exact(inputs);
  if (!exact) refuse(scenario, "found no order in its time; expected fewer micro-batches");
  const std::string least = format(Seconds(exact->bound));
  const double more = exact->bound > 0 ? span / exact->bound - 1 : 0;
  return {"Exact", least,
          "no step alone is shorter in this stash, updates left out; this one takes " +
              format(Seconds(span)) + ", " + format_percent(std::max(0.0, more)) + " more"};
}

}  // namespace interlock
