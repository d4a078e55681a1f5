// Backwards of a stage on a GPU: gradients of losses, and what is computed again for them.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/error.h"
#include "validate/cuda/gpu_tensors.h"

namespace interlock::cuda {

namespace {

std::int64_t numbers_in(const GpuStage& stage, const Extent& extent) {
  return extent.bytes / bytes_of(stage.engine.lane.element);
}

void add_to(const GpuStage& stage, const Extent& from, const Extent& to) {
  add(stage.engine.lane, to.data, to.data, from.data, numbers_in(stage, from));
}

/// The gradient of a loss that trains the stage beside others has gone through it: the first
/// becomes the sum that later ones are added to.
void keep_for_sum(const GpuStage& stage, GpuMicroBatch& batch, int loss) {
  if (stage.role.summed_gradients == 0) return;
  Extent& gradient = batch.gradients.at(loss);
  if (batch.gradient_sum) return add_to(stage, gradient, batch.gradient_sum);
  batch.gradient_sum = std::exchange(gradient, {});
}

/// Adds up, in the place of the furthest loss's, all gradients that train the stage.
void sum_gradients(const GpuStage& stage, GpuMicroBatch& batch, int loss) {
  const Extent& furthest = batch.gradients.at(loss);
  if (batch.gradient_sum) add_to(stage, batch.gradient_sum, furthest);
  for (const int added : stage.role.only_added) {
    add_to(stage, batch.gradients.at(added), furthest);
  }
  if (stage.job->strategy.gradient != GradientMode::Mean) return;
  const float share = 1 / static_cast<float>(stage.role.summed_gradients + 1);
  scale(stage.engine.lane, furthest.data, furthest.data, share, numbers_in(stage, furthest));
}

/// The gradient of `loss` has been read for the last time; of the last one, so has the stash.
void end_traversal(GpuStage& stage, int micro_batch, const Traversal& traversal) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  if (!traversal.weights) keep_for_sum(stage, batch, traversal.loss);
  if (const auto held = batch.gradients.find(traversal.loss); held != batch.gradients.end()) {
    give_back(held->second, stage.now());
    batch.gradients.erase(held);
  }
  if (!traversal.weights) return;
  for (auto& [loss, gradient] : batch.gradients) give_back(gradient, stage.now());
  batch.gradients.clear();
  for (Extent* extent : {&batch.gradient_sum, &batch.stash, &batch.input}) {
    give_back(*extent, stage.now());
  }
  ++sum_for(stage, micro_batch).batches;
}

/// The gradient of the input is made, and nobody reads it.
bool drops_input_gradient(const GpuStage& stage, const Traversal& traversal) {
  return !traversal.to_previous && !stage.job->strategy.skip_unneeded_input_gradients;
}

/// Without the gradient of its input where that is skipped.
const StagePlan& plan_for(const GpuStage& stage, const Traversal& traversal) {
  const bool skips = stage.job->strategy.skip_unneeded_input_gradients;
  return traversal.to_previous || !skips ? stage.plans.plan : stage.plans.plan_without;
}

void go_back(const GpuStage& stage, GpuMicroBatch& batch, OpKind kind, const Traversal& traversal,
             const GpuTensors& tensors) {
  const StagePlan& plan = plan_for(stage, traversal);
  if (!traversal.weights) return run_steps(stage.engine, plan.passing, tensors);
  const GpuPart part = kind == OpKind::I ? GpuPart::ButLate : GpuPart::All;
  const bool sums = stage.role.summed_gradients > 0;
  // What goes further down is the gradient of the furthest loss alone.
  if (sums && traversal.to_previous) {
    run_steps(stage.engine, plan.passing, tensors);
    run_steps(stage.engine, plan.again, tensors);
  }
  if (sums) sum_gradients(stage, batch, traversal.loss);
  run_steps(stage.engine,
            sums && traversal.to_previous ? stage.plans.plan_without.backward : plan.backward,
            tensors, part);
}

/// What a traversal writes, from its first op on: that which computes again, if there is one.
void take_room(const GpuStage& stage, GpuMicroBatch& batch, const Traversal& traversal) {
  if (std::exchange(batch.goes_back, true)) return;
  const bool dropped = drops_input_gradient(stage, traversal);
  if (!stage.is_first() && (traversal.to_previous || dropped)) {
    batch.below =
        stage.take(stage.plans.plan.input, dropped ? MemoryClass::Workspace : MemoryClass::Boundary,
                   "the input's gradient");
  }
  // A backward that does nothing, of the first layer alone, takes no time in a program either.
  const bool idle = !traversal.weights && plan_for(stage, traversal).passing.empty();
  if (idle && !stage.plans.runs_again) return;
  batch.workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
}

/// What the steps of a traversal work on.
GpuTensors tensors_of_traversal(GpuStage& stage, int micro_batch, const Traversal& traversal) {
  const GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  GpuTensors tensors = tensors_of(stage, batch, micro_batch);
  if (const auto held = batch.gradients.find(traversal.loss); held != batch.gradients.end()) {
    set(tensors, Place::OutputGradient, held->second);
  }
  set(tensors, Place::InputGradient, batch.below);
  set_workspace(tensors, batch.workspace);
  if (traversal.weights) tensors.gradients = &sum_for(stage, micro_batch).of_stage;
  return tensors;
}

/// The second half of a backward. What was computed again is there still.
void run_weight_half(GpuStage& stage, int micro_batch, const Traversal& traversal) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  if (!batch.workspace) {
    batch.workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
  }
  run_steps(stage.engine, stage.plans.plan.backward,
            tensors_of_traversal(stage, micro_batch, traversal), GpuPart::Late);
  give_back(batch.workspace, stage.now());
  end_traversal(stage, micro_batch, traversal);
  forget(stage, micro_batch);
}

}  // namespace

void run_again(GpuStage& stage, int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(stage.role, loss);
  take_room(stage, stage.under_way.at(micro_batch), traversal);
  run_steps(stage.engine, stage.plans.plan.again,
            tensors_of_traversal(stage, micro_batch, traversal));
}

void run_backward(GpuStage& stage, OpKind kind, int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(stage.role, loss);
  if (kind == OpKind::W) return run_weight_half(stage, micro_batch, traversal);
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  take_room(stage, batch, traversal);
  go_back(stage, batch, kind, traversal, tensors_of_traversal(stage, micro_batch, traversal));
  const bool half = kind == OpKind::I && traversal.weights;
  if (!half || !stage.plans.runs_again) give_back(batch.workspace, stage.now());
  if (drops_input_gradient(stage, traversal)) give_back(batch.below, stage.now());
  if (!half) end_traversal(stage, micro_batch, traversal);
  const Extent below = std::exchange(batch.below, {});
  if (traversal.to_previous) batch.outgoing.emplace_back(loss, below);
  batch.goes_back = false;
  forget(stage, micro_batch);
}

}  // namespace interlock::cuda
