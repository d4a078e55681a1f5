// Backwards of a stage: gradients of losses, and what is computed again for them.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "base/error.h"
#include "validate/cpu/cpu_tensors.h"
#include "validate/cpu/layers/dense_kernels.h"
#include "validate/network/job_plan.h"

namespace interlock {
namespace {

/// The gradient of the input is made, and nobody reads it.
template <class T>
bool drops_input_gradient(const CpuStage<T>& stage, const Traversal& traversal) {
  return !traversal.to_previous && !stage.job->strategy.skip_unneeded_input_gradients;
}

template <class T>
void add_block(const Block& from, const Block& to) {
  const auto count = from.bytes / static_cast<std::int64_t>(sizeof(T));
  add_to(numbers<T>(from), count, numbers<T>(to));
}

/// The gradient of a loss that trains the stage beside others has gone through it: the first
/// becomes the sum that later ones are added to.
template <class T>
void keep_for_sum(CpuStage<T>& stage, MicroBatch& batch, int loss) {
  if (stage.role.summed_gradients == 0) return;
  Block& gradient = batch.gradients.at(loss);
  if (batch.gradient_sum) return add_block<T>(gradient, batch.gradient_sum);
  batch.gradient_sum = std::exchange(gradient, {});
}

/// Adds up, in the place of the furthest loss's, all gradients that train the stage.
template <class T>
void sum_gradients(CpuStage<T>& stage, MicroBatch& batch, int loss) {
  const Block& furthest = batch.gradients.at(loss);
  if (batch.gradient_sum) add_block<T>(batch.gradient_sum, furthest);
  for (const int added : stage.role.only_added) add_block<T>(batch.gradients.at(added), furthest);
  if (stage.job->strategy.gradient != GradientMode::Mean) return;
  const T share = T(1) / static_cast<T>(stage.role.summed_gradients + 1);
  T* all = numbers<T>(furthest);
  for (std::size_t i = 0; i < furthest.bytes / sizeof(T); ++i) all[i] *= share;
}

/// The gradient of `loss` has been read for the last time; of the last one, so has the stash.
template <class T>
void end_traversal(CpuStage<T>& stage, int micro_batch, const Traversal& traversal) {
  MicroBatch& batch = stage.under_way.at(micro_batch);
  if (!traversal.weights) keep_for_sum(stage, batch, traversal.loss);
  if (const auto held = batch.gradients.find(traversal.loss); held != batch.gradients.end()) {
    stage.memory->give_back(held->second);
    batch.gradients.erase(held);
  }
  if (!traversal.weights) return;
  for (auto& [loss, gradient] : batch.gradients) stage.memory->give_back(gradient);
  batch.gradients.clear();
  stage.memory->give_back(batch.gradient_sum);
  stage.memory->give_back(batch.stash);
  stage.memory->give_back(batch.input);
  ++sum_for(stage, micro_batch).batches;
}

/// Without the gradient of its input where that is skipped.
template <class T>
const StagePlan& plan_for(const CpuStage<T>& stage, const Traversal& traversal) {
  const bool skips = stage.job->strategy.skip_unneeded_input_gradients;
  return traversal.to_previous || !skips ? stage.plan : stage.plan_without;
}

template <class T>
void go_back(CpuStage<T>& stage, MicroBatch& batch, OpKind kind, const Traversal& traversal,
             StageTensors<T>& tensors) {
  const StagePlan& plan = plan_for(stage, traversal);
  if (!traversal.weights) {
    run_steps(plan.passing, tensors);
    return;
  }
  const StepPart part = kind == OpKind::I ? StepPart::ButLate : StepPart::All;
  const bool sums = stage.role.summed_gradients > 0;
  // What goes further down is the gradient of the furthest loss alone.
  if (sums && traversal.to_previous) {
    run_steps(plan.passing, tensors);
    run_steps(plan.again, tensors);
  }
  if (sums) sum_gradients(stage, batch, traversal.loss);
  run_steps(sums && traversal.to_previous ? stage.plan_without.backward : plan.backward, tensors,
            part);
}

/// What a traversal writes, from its first op on: that which computes again, if there is one.
template <class T>
void take_room(CpuStage<T>& stage, MicroBatch& batch, const Traversal& traversal) {
  if (std::exchange(batch.goes_back, true)) return;
  const bool dropped = drops_input_gradient(stage, traversal);
  if (!stage.is_first() && (traversal.to_previous || dropped)) {
    batch.below = stage.memory->take(stage.sent_down_bytes(),
                                     dropped ? MemoryClass::Workspace : MemoryClass::Boundary);
  }
  // A backward that does nothing, of the first layer alone, takes no time in a program either.
  const bool idle = !traversal.weights && plan_for(stage, traversal).passing.empty();
  if (idle && !stage.runs_again) return;
  batch.workspace = stage.memory->take(stage.bytes.workspace, MemoryClass::Workspace);
}

/// What the steps of a traversal work on.
template <class T>
StageTensors<T> tensors_of_traversal(CpuStage<T>& stage, int micro_batch,
                                     const Traversal& traversal) {
  const MicroBatch& batch = stage.under_way.at(micro_batch);
  StageTensors<T> tensors = tensors_of(stage, batch);
  const auto gradient = batch.gradients.find(traversal.loss);
  if (gradient != batch.gradients.end()) {
    const std::int64_t returned = stage.rebuilds ? stage.output_bytes() : 0;
    if (returned > 0) set(tensors, Place::Returned, numbers<T>(gradient->second));
    set(tensors, Place::OutputGradient, numbers<T>(gradient->second, returned));
  }
  const std::int64_t input = stage.returns_input ? stage.plan.input : 0;
  set(tensors, Place::InputGradient, numbers<T>(batch.below, input));
  set_workspace(stage, tensors, batch.workspace);
  if (stage.rebuilds && input > 0) set(tensors, Place::Input, numbers<T>(batch.below));
  if (traversal.weights) tensors.gradients = &sum_for(stage, micro_batch).of_stage;
  return tensors;
}

/// The second half of a backward. What was computed again is there still.
template <class T>
EndOfOp run_weight_half(CpuStage<T>& stage, int micro_batch, const Traversal& traversal) {
  MicroBatch& batch = stage.under_way.at(micro_batch);
  if (!batch.workspace) {
    batch.workspace = stage.memory->take(stage.bytes.workspace, MemoryClass::Workspace);
  }
  run_steps(stage.plan.backward, tensors_of_traversal(stage, micro_batch, traversal),
            StepPart::Late);
  return [&stage, micro_batch, &traversal] {
    stage.memory->give_back(stage.under_way.at(micro_batch).workspace);
    end_traversal(stage, micro_batch, traversal);
    forget(stage, micro_batch);
  };
}

}  // namespace

template <class T>
EndOfOp run_again(CpuStage<T>& stage, int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(stage.role, loss);
  take_room(stage, stage.under_way.at(micro_batch), traversal);
  StageTensors<T> tensors = tensors_of_traversal(stage, micro_batch, traversal);
  const bool reads_targets = stage.layers->back().kind == LayerKind::CrossEntropy;
  Batch data;
  if (stage.rereads_input || reads_targets) data = stage.job->batch(micro_batch);
  if (stage.rereads_input) {
    read_input(stage, data, stage.under_way.at(micro_batch).workspace.data);
  }
  tensors.targets = data.targets.data();
  run_steps(stage.plan.again, tensors);
  return [] {};
}

template <class T>
EndOfOp run_backward(CpuStage<T>& stage, OpKind kind, int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(stage.role, loss);
  if (kind == OpKind::W) return run_weight_half(stage, micro_batch, traversal);
  MicroBatch& batch = stage.under_way.at(micro_batch);
  take_room(stage, batch, traversal);
  StageTensors<T> tensors = tensors_of_traversal(stage, micro_batch, traversal);
  // Who keeps no targets asks for them again; a loss in the stage is its own.
  Batch data;
  if (stage.layers->back().kind == LayerKind::CrossEntropy) data = stage.job->batch(micro_batch);
  tensors.targets = data.targets.data();
  if (stage.returns_input && !stage.rebuilds) {
    std::memcpy(batch.below.data, batch.input.data, static_cast<std::size_t>(batch.input.bytes));
  }
  go_back(stage, batch, kind, traversal, tensors);
  return [&stage, micro_batch, kind, &traversal] {
    MicroBatch& own = stage.under_way.at(micro_batch);
    const bool half = kind == OpKind::I && traversal.weights;
    if (!half || !stage.runs_again) stage.memory->give_back(own.workspace);
    if (drops_input_gradient(stage, traversal)) stage.memory->give_back(own.below);
    if (!half) end_traversal(stage, micro_batch, traversal);
    Block below = std::exchange(own.below, {});
    if (traversal.to_previous) own.outgoing.emplace_back(traversal.loss, below);
    own.goes_back = false;
    forget(stage, micro_batch);
  };
}

#define INTERLOCK_BACKWARD(T)                            \
  template EndOfOp run_again<T>(CpuStage<T>&, int, int); \
  template EndOfOp run_backward<T>(CpuStage<T>&, OpKind, int, int)
INTERLOCK_BACKWARD(float);
INTERLOCK_BACKWARD(double);
#undef INTERLOCK_BACKWARD

}  // namespace interlock
