// The order of a scenario's step in PyTorch's text form.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "reports/report.h"
#include "sim/plan/orders/schedule_text.h"

namespace interlock {

std::string schedule_csv(const ScenarioResult& result) {
  const Scenario& scenario = result.scenario;
  const auto stages = static_cast<int>(scenario.rank_of_stage.size());
  const ScheduleInputs inputs = {
      .stages = stages,
      .copies = scenario.copies,
      .micro_batches = scenario.micro_batches,
      .rank_of_stage = scenario.rank_of_stage,
      .roles = roles_of_copies(make_roles(scenario.strategy, stages / scenario.copies, false),
                               scenario.copies),
      .policy = scenario.schedule};
  const std::string who = scenario.file + ": " + scenario.name + ": ";
  if (scenario.workload) {
    throw Error(who + "the order of a workload is in its traces; expected a model and a schedule");
  }
  if (scenario.schedule.kind->slices) {
    throw Error(who +
                "the text form has no token slices; expected a schedule of whole "
                "micro-batches");
  }
  try {
    return schedule_text(first_step(make_schedule(inputs)));
  } catch (const Error& error) {
    throw Error(who + error.what());
  }
}

}  // namespace interlock
