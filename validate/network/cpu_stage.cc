// Forwards, heads and backwards of a stage.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/cpu_stage.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"

namespace interlock {
namespace {

template <class T>
T* numbers(const Block& block, std::int64_t bytes = 0) {
  return block ? reinterpret_cast<T*>(block.data + bytes) : nullptr;
}

template <class T>
void set(StageTensors<T>& tensors, Place place, T* begin) {
  tensors.places[static_cast<std::size_t>(place)] = begin;
}

template <class T>
StageTensors<T> tensors_of(const CpuStage<T>& stage, const MicroBatch& batch) {
  StageTensors<T> tensors;
  tensors.samples = stage.job->network.samples_per_micro_batch;
  tensors.rows_per_sample = stage.job->network.rows_per_sample;
  tensors.weights = &weights_of(stage, stage.keeps_versions ? batch.version : stage.version);
  set(tensors, Place::Input, numbers<T>(batch.input));
  set(tensors, Place::Stash, numbers<T>(batch.stash));
  set(tensors, Place::Output, numbers<T>(batch.output));
  return tensors;
}

/// Tokens or features of the micro-batch.
template <class T>
void read_input(const CpuStage<T>& stage, const Batch& data, const Block& block) {
  if (stage.job->network.samples == SampleKind::Tokens) {
    auto* to = reinterpret_cast<std::int64_t*>(block.data);
    CHECK(block.bytes == static_cast<std::int64_t>(data.tokens.size() * sizeof(*to)),
          "a batch has a token for each row of the input");
    std::copy(data.tokens.begin(), data.tokens.end(), to);
  } else {
    CHECK(block.bytes == static_cast<std::int64_t>(data.features.size() * sizeof(T)),
          "a batch has the features of each row of the input");
    std::copy(data.features.begin(), data.features.end(), numbers<T>(block));
  }
}

template <class T>
void note_loss(const CpuStage<T>& stage, int micro_batch, double loss) {
  if (!std::isfinite(loss)) {
    const int last = stage.job->first_module[static_cast<std::size_t>(stage.stage) + 1] - 1;
    throw Error("the loss at module " + stage.job->network.modules[last].name +
                " is not a number at step " +
                std::to_string(step_of(stage.job->program, micro_batch)) +
                "; expected a smaller rate");
  }
  (*stage.losses)[micro_batch] = loss;
}

const Traversal& traversal_of(const StageRole& role, int loss) {
  for (const Traversal& traversal : role.traversals) {
    if (traversal.loss == loss) return traversal;
  }
  CHECK(false, "a backward of a loss that reaches the stage");
}

template <class T>
void add_to(const Block& from, const Block& to) {
  const T* a = numbers<T>(from);
  T* b = numbers<T>(to);
  for (std::size_t i = 0; i < from.bytes / sizeof(T); ++i) b[i] += a[i];
}

/// The gradient of a loss that trains the stage beside others has gone through it: the first
/// becomes the sum that later ones are added to.
template <class T>
void keep_for_sum(CpuStage<T>& stage, MicroBatch& batch, int loss) {
  if (stage.role.summed_gradients == 0) return;
  Block& gradient = batch.gradients.at(loss);
  if (batch.gradient_sum) return add_to<T>(gradient, batch.gradient_sum);
  batch.gradient_sum = std::exchange(gradient, {});
}

/// Adds up, in the place of the furthest loss's, all gradients that train the stage.
template <class T>
void sum_gradients(CpuStage<T>& stage, MicroBatch& batch, int loss) {
  const Block& furthest = batch.gradients.at(loss);
  if (batch.gradient_sum) add_to<T>(batch.gradient_sum, furthest);
  for (const int added : stage.role.only_added) add_to<T>(batch.gradients.at(added), furthest);
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
  if (sums && traversal.to_previous) run_steps(plan.passing, tensors);
  if (sums) sum_gradients(stage, batch, traversal.loss);
  run_steps(sums && traversal.to_previous ? stage.plan_without.backward : plan.backward, tensors,
            part);
}

template <class T>
EndOfOp run_weight_half(CpuStage<T>& stage, int micro_batch, const Traversal& traversal,
                        StageTensors<T>& tensors) {
  Block workspace = stage.memory->take(stage.bytes.workspace, MemoryClass::Workspace);
  run_steps(stage.plan.backward, tensors, StepPart::Late);
  return [&stage, micro_batch, &traversal, workspace]() mutable {
    stage.memory->give_back(workspace);
    end_traversal(stage, micro_batch, traversal);
    forget(stage, micro_batch);
  };
}

}  // namespace

template <class T>
EndOfOp run_forward(CpuStage<T>& stage, int micro_batch) {
  MicroBatch& batch = stage.under_way[micro_batch];
  batch.version = version_of_forward(stage, micro_batch);
  const bool last = stage.layers->back().kind == LayerKind::CrossEntropy;
  const Batch data = stage.is_first() || last ? stage.job->batch(micro_batch) : Batch();
  CpuMemory& memory = *stage.memory;
  if (stage.is_first()) {
    batch.input = memory.take(stage.plan.input, MemoryClass::Stash);
    read_input(stage, data, batch.input);
  } else {
    CHECK(batch.input.bytes == stage.plan.input, "a stage reads what the one before it made");
    memory.retag(batch.input, MemoryClass::Stash);
  }
  batch.stash = memory.take(stage.plan.stash, MemoryClass::Stash);
  if (!last) batch.output = memory.take(stage.output_bytes(), MemoryClass::Boundary);
  Block workspace = memory.take(stage.bytes.workspace, MemoryClass::Workspace);
  StageTensors<T> tensors = tensors_of(stage, batch);
  tensors.targets = data.targets.data();
  const double loss = run_steps(stage.plan.forward, tensors);
  if (last) note_loss(stage, micro_batch, loss);
  batch.head_is_due = stage.role.head;
  return [&memory, workspace]() mutable { memory.give_back(workspace); };
}

template <class T>
EndOfOp run_head(CpuStage<T>& stage, int micro_batch) {
  MicroBatch& batch = stage.under_way.at(micro_batch);
  CpuMemory& memory = *stage.memory;
  const StagePlan& plan = stage.head_plan;
  StageTensors<T> tensors = tensors_of(stage, batch);
  // Its memory has room for what it reads: the output itself if it has left, else a copy.
  Block input = batch.sent ? std::exchange(batch.output, {}) : Block();
  memory.retag(input, MemoryClass::Head);
  Block own = memory.take(stage.bytes.head - input.bytes, MemoryClass::Head);
  for (const Step& step : plan.backward) {
    if (step.dx.place != Place::InputGradient || batch.gradients.count(stage.stage) > 0) continue;
    batch.gradients[stage.stage] = memory.take(stage.output_bytes(), MemoryClass::Boundary);
    set(tensors, Place::InputGradient, numbers<T>(batch.gradients[stage.stage]));
  }
  const std::int64_t copied = batch.sent ? 0 : plan.input;
  if (copied > 0) std::memcpy(own.data, batch.output.data, static_cast<std::size_t>(copied));
  batch.head_is_due = false;
  set(tensors, Place::Input, numbers<T>(batch.sent ? input : own));
  set(tensors, Place::Stash, numbers<T>(own, copied));
  set(tensors, Place::Workspace, numbers<T>(own, copied + plan.stash));
  tensors.weights = &stage.head_weights;
  GradientSum<T>& sum = sum_for(stage, micro_batch);
  tensors.gradients = &sum.of_head;
  const Batch data = stage.job->batch(micro_batch);
  tensors.targets = data.targets.data();
  note_loss(stage, micro_batch, run_steps(plan.forward, tensors));
  run_steps(plan.backward, tensors);
  ++sum.head_batches;
  return [&memory, own, input]() mutable {
    memory.give_back(own);
    memory.give_back(input);
  };
}

template <class T>
EndOfOp run_backward(CpuStage<T>& stage, OpKind kind, int loss, int micro_batch) {
  MicroBatch& batch = stage.under_way.at(micro_batch);
  CpuMemory& memory = *stage.memory;
  const Traversal& traversal = traversal_of(stage.role, loss);
  StageTensors<T> tensors = tensors_of(stage, batch);
  const auto gradient = batch.gradients.find(loss);
  if (gradient != batch.gradients.end()) {
    set(tensors, Place::OutputGradient, numbers<T>(gradient->second));
  }
  if (traversal.weights) tensors.gradients = &sum_for(stage, micro_batch).of_stage;
  if (kind == OpKind::W) return run_weight_half(stage, micro_batch, traversal, tensors);
  const bool dropped = !traversal.to_previous && !stage.job->strategy.skip_unneeded_input_gradients;
  Block below;
  if (!stage.is_first() && (traversal.to_previous || dropped)) {
    below = memory.take(stage.plan.input, dropped ? MemoryClass::Workspace : MemoryClass::Boundary);
  }
  // A backward that does nothing, of the first layer alone, takes no time in a program either.
  const bool idle = !traversal.weights && plan_for(stage, traversal).passing.empty();
  Block workspace = memory.take(idle ? 0 : stage.bytes.workspace, MemoryClass::Workspace);
  set(tensors, Place::InputGradient, numbers<T>(below));
  set(tensors, Place::Workspace, numbers<T>(workspace));
  // Who keeps no targets asks for them again; a loss in the stage is its own.
  Batch data;
  if (stage.layers->back().kind == LayerKind::CrossEntropy) data = stage.job->batch(micro_batch);
  tensors.targets = data.targets.data();
  go_back(stage, batch, kind, traversal, tensors);
  return [&stage, micro_batch, kind, &traversal, dropped, below, workspace]() mutable {
    MicroBatch& own = stage.under_way.at(micro_batch);
    stage.memory->give_back(workspace);
    if (dropped) stage.memory->give_back(below);
    if (kind == OpKind::B || !traversal.weights) end_traversal(stage, micro_batch, traversal);
    if (traversal.to_previous) own.outgoing.emplace_back(traversal.loss, below);
    forget(stage, micro_batch);
  };
}

template <class T>
void release_output(CpuStage<T>& stage, int micro_batch) {
  MicroBatch& batch = stage.under_way.at(micro_batch);
  batch.sent = true;
  if (!batch.head_is_due) stage.memory->give_back(batch.output);
  forget(stage, micro_batch);
}

template <class T>
void forget(CpuStage<T>& stage, int micro_batch) {
  const auto found = stage.under_way.find(micro_batch);
  const MicroBatch& batch = found->second;
  const bool holds = batch.input || batch.stash || batch.output || !batch.outgoing.empty();
  if (!holds && batch.gradients.empty()) stage.under_way.erase(found);
}

#define INTERLOCK_STAGE(T)                                          \
  template EndOfOp run_forward<T>(CpuStage<T>&, int);               \
  template EndOfOp run_head<T>(CpuStage<T>&, int);                  \
  template EndOfOp run_backward<T>(CpuStage<T>&, OpKind, int, int); \
  template void release_output<T>(CpuStage<T>&, int);               \
  template void forget<T>(CpuStage<T>&, int)
INTERLOCK_STAGE(float);
INTERLOCK_STAGE(double);
#undef INTERLOCK_STAGE

}  // namespace interlock
