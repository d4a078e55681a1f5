// The order of a scenario's step in PyTorch's text form.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "reports/report.h"
#include "sim/plan/orders/schedule_text.h"

namespace interlock {

std::string schedule_csv(const ScenarioResult& result, TextMessages messages) {
  const Plan& plan = result.plan;
  const Question& scenario = plan.question;
  const std::string who = scenario.file + ": " + scenario.name + ": ";
  if (scenario.trace()) {
    throw Error(who + "the order of a workload is in its traces; expected a model and a schedule");
  }
  const ScheduleInputs inputs = {
      .stages = static_cast<int>(plan.rank_of_stage.size()),
      .copies = plan.copies,
      .micro_batches = plan.micro_batches,
      .rank_of_stage = plan.rank_of_stage,
      .roles = roles_of_copies(
          make_roles(scenario.training().strategy, scenario.layout.stages, false), plan.copies),
      .policy = plan.schedule};
  if (plan.schedule.deferred_readout > 0) {
    throw Error(who +
                "the text form has no part of a weight gradient; expected no "
                "training.schedule.deferred_readout");
  }
  if (plan.schedule.vocabulary != VocabularySplit::Whole) {
    throw Error(who +
                "the text form has no parts of a vocabulary; expected training.schedule.vocabulary "
                "\"whole\"");
  }
  if (updates_one_copy(plan.schedule.kind->layout)) {
    throw Error(who +
                "the text form has no ranks that change with the micro-batch; expected a schedule "
                "whose stages stay on theirs, e.g. \"1f1b\"");
  }
  if (plan.schedule.kind->slices) {
    throw Error(who +
                "the text form has no token slices; expected a schedule of whole "
                "micro-batches");
  }
  try {
    const StepOrder order = first_step(make_schedule(inputs));
    const ScheduleEntry& kind = *plan.schedule.kind;
    if (kind.order == OrderSource::Function && !kind.parts_steps()) {
      throw Error("the text form has one step, and schedule \"" + std::string(kind.name) +
                  "\" begins one before the last is over; expected a schedule that flushes");
    }
    return schedule_text(order, messages);
  } catch (const Error& error) {
    throw Error(who + error.what());
  }
}

}  // namespace interlock
