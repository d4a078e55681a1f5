// Climbs from bounds to simulations.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/step_time.h"

#include <algorithm>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/measure_plan.h"

namespace interlock {
namespace {

StepEstimate estimate_of(const Measurement& measured) {
  const Metrics& metrics = measured.metrics;
  StepEstimate estimate{.time = metrics.step_time,
                        .busy = metrics.busy,
                        .metrics = metrics,
                        .shares_links = shares_links(measured.program)};
  if (metrics.devices.empty()) return estimate;
  for (const DeviceMetrics& device : metrics.devices) {
    estimate.memory = std::max(estimate.memory, device.peak_memory);
  }
  estimate.fullest = fullest_device(metrics).peak_memory;
  estimate.memory_capacity = metrics.memory_capacity.value_or(Bytes(0));
  return estimate;
}

/// Returns the time of a few steps as if no two messages ever met on a link, devices folded as far
/// as can be. Where each rank has one fixed order, contention only delays: no step is shorter than
/// this.
StepEstimate look_at(const Plan& plan) {
  constexpr int kFewSteps = 2;  // in the steady state they are as long as more
  Plan alone = plan;
  if (plan.question.layout.mesh.devices() > 1) alone.unfolded = kFolded;
  alone.question.training().steps = std::min(plan.question.training().steps, kFewSteps);
  alone.question.simulation.engine = EngineKind::Native;
  LowerInputs inputs = lower_inputs(alone);
  inputs.contention = false;
  // Kernels lose nothing to what is sent beside them: how much that is depends on when it is sent.
  for (Machine& machine : inputs.cluster.machines) {
    machine.device.collective_sms = machine.device.message_sms = 0;
  }
  inputs.token_sms.reset();
  inputs.passes_by_deepep = false;
  inputs.memory_contention = false;
  const Measurement measured = measure_steady(alone, inputs, Keep::FewSteps);
  const Program& program = measured.program;
  StepEstimate estimate = estimate_of(measured);
  estimate.folds = program.folding_problem.empty();
  estimate.exact = !program.ignores_contention && estimate.folds;
  estimate.chooses = chooses_order(program);
  return estimate;
}

}  // namespace

StepEstimate estimate_step(const Plan& plan, Grade grade) {
  CHECK(grade != Grade::LayoutBound, "a layout has no step, but a bound for those of its plans");
  if (grade == Grade::PlanBound) return bound_plan(plan);
  if (grade == Grade::Look) return look_at(plan);
  Plan one_of_many = plan;
  one_of_many.question.simulation.engine = engine_of_many(plan.question.simulation.engine);
  return estimate_of(measure_plan(one_of_many, Keep::Nothing).measurement);
}

}  // namespace interlock
