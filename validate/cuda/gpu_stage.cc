// Forwards, heads and backwards of a stage on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/gpu_stage.h"

#include <algorithm>

#include "base/error.h"
#include "validate/cuda/cuda_call.h"

namespace interlock::cuda {

namespace {

void set(GpuTensors& tensors, Place place, const Extent& extent, std::int64_t bytes = 0) {
  if (extent) tensors.places[static_cast<std::size_t>(place)] = extent.data + bytes;
}

GpuTensors tensors_of(const GpuStage& stage, const GpuMicroBatch& batch, int micro_batch) {
  GpuTensors tensors;
  tensors.samples = stage.job->network.samples_per_micro_batch;
  tensors.rows_per_sample = stage.job->network.rows_per_sample;
  tensors.weights = &weights_of(stage, stage.keeps_versions ? batch.version : stage.version);
  tensors.batch = stage.batches[static_cast<std::size_t>(micro_batch)];
  tensors.loss = stage.losses + micro_batch;
  set(tensors, Place::Input, batch.input);
  set(tensors, Place::Stash, batch.stash);
  set(tensors, Place::Output, batch.output);
  return tensors;
}

const Traversal& traversal_of(const StageRole& role, int loss) {
  for (const Traversal& traversal : role.traversals) {
    if (traversal.loss == loss) return traversal;
  }
  CHECK(false, "a backward of a loss that reaches the stage");
}

std::int64_t numbers_in(const GpuStage& stage, const Extent& extent) {
  return extent.bytes / bytes_of(stage.engine.lane.element);
}

void copy(const GpuStage& stage, const Extent& to, const Extent& from, std::int64_t bytes) {
  scale(stage.engine.lane, to.data, from.data, 1, bytes / bytes_of(stage.engine.lane.element));
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

void go_back(const GpuStage& stage, GpuMicroBatch& batch, OpKind kind, const Traversal& traversal,
             const GpuTensors& tensors) {
  const bool reads_input_gradient =
      traversal.to_previous || !stage.job->strategy.skip_unneeded_input_gradients;
  const StagePlan& plan = reads_input_gradient ? stage.plans.plan : stage.plans.plan_without;
  if (!traversal.weights) return run_steps(stage.engine, plan.passing, tensors);
  const GpuPart part = kind == OpKind::I ? GpuPart::ButLate : GpuPart::All;
  const bool sums = stage.role.summed_gradients > 0;
  // What goes further down is the gradient of the furthest loss alone.
  if (sums && traversal.to_previous) run_steps(stage.engine, plan.passing, tensors);
  if (sums) sum_gradients(stage, batch, traversal.loss);
  run_steps(stage.engine,
            sums && traversal.to_previous ? stage.plans.plan_without.backward : plan.backward,
            tensors, part);
}

void run_weight_half(GpuStage& stage, int micro_batch, const Traversal& traversal,
                     const GpuTensors& tensors) {
  Extent workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
  run_steps(stage.engine, stage.plans.plan.backward, tensors, GpuPart::Late);
  give_back(workspace, stage.now());
  end_traversal(stage, micro_batch, traversal);
}

/// Features of the micro-batch; tokens are read where they are.
void read_input(const GpuStage& stage, const Extent& input, int micro_batch) {
  const GpuBatch& batch = stage.batches[static_cast<std::size_t>(micro_batch)];
  if (batch.features == nullptr) return;
  from_fp32(stage.engine.lane, input.data, batch.features, numbers_in(stage, input));
}

}  // namespace

Extent GpuStage::take(std::int64_t bytes, MemoryClass memory_class, const char* what) const {
  return memory->take(bytes, memory_class, engine.lane.stream,
                      std::string(what) + " of stage " + std::to_string(stage));
}

void run_forward(GpuStage& stage, int micro_batch) {
  GpuMicroBatch& batch = stage.under_way[micro_batch];
  batch.version = version_of_forward(stage, micro_batch);
  const bool last = stage.plans.layers->back().kind == LayerKind::CrossEntropy;
  if (stage.is_first()) {
    batch.input = stage.take(stage.plans.plan.input, MemoryClass::Stash, "the input");
    read_input(stage, batch.input, micro_batch);
  } else {
    CHECK(batch.input.bytes == stage.plans.plan.input, "a stage reads what the one before made");
    batch.input.memory->retag(batch.input, MemoryClass::Stash);
  }
  batch.stash = stage.take(stage.plans.plan.stash, MemoryClass::Stash, "the stash");
  if (!last) batch.output = stage.take(stage.output_bytes(), MemoryClass::Boundary, "the output");
  Extent workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
  run_steps(stage.engine, stage.plans.plan.forward, tensors_of(stage, batch, micro_batch));
  give_back(workspace, stage.now());
  batch.head_is_due = stage.role.head;
}

void run_head(GpuStage& stage, int micro_batch) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  const StagePlan& plan = stage.plans.head_plan;
  Extent own = stage.take(stage.plans.head, MemoryClass::Head, "the head");
  GpuTensors tensors = tensors_of(stage, batch, micro_batch);
  const bool read = std::any_of(plan.backward.begin(), plan.backward.end(), [](const Step& step) {
    return step.dx.place == Place::InputGradient;
  });
  if (read) {
    batch.gradients[stage.stage] =
        stage.take(stage.output_bytes(), MemoryClass::Boundary, "the head's gradient");
    set(tensors, Place::InputGradient, batch.gradients[stage.stage]);
  }
  copy(stage, own, batch.output, plan.input);
  batch.head_is_due = false;
  if (batch.sent) {
    give_back(batch.output, stage.now());
  } else {
    batch.output.memory->note_use(batch.output, stage.now());
  }
  set(tensors, Place::Input, own);
  set(tensors, Place::Stash, own, plan.input);
  set(tensors, Place::Workspace, own, plan.input + plan.stash);
  tensors.weights = &stage.head_weights;
  GpuSum& sum = sum_for(stage, micro_batch);
  tensors.gradients = &sum.of_head;
  run_steps(stage.engine, plan.forward, tensors);
  run_steps(stage.engine, plan.backward, tensors);
  ++sum.head_batches;
  give_back(own, stage.now());
  forget(stage, micro_batch);
}

void run_backward(GpuStage& stage, OpKind kind, int loss, int micro_batch) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  const Traversal& traversal = traversal_of(stage.role, loss);
  GpuTensors tensors = tensors_of(stage, batch, micro_batch);
  if (const auto gradient = batch.gradients.find(loss); gradient != batch.gradients.end()) {
    set(tensors, Place::OutputGradient, gradient->second);
  }
  if (traversal.weights) tensors.gradients = &sum_for(stage, micro_batch).of_stage;
  if (kind == OpKind::W) {
    run_weight_half(stage, micro_batch, traversal, tensors);
    return forget(stage, micro_batch);
  }
  const bool dropped = !traversal.to_previous && !stage.job->strategy.skip_unneeded_input_gradients;
  Extent below;
  if (!stage.is_first() && (traversal.to_previous || dropped)) {
    below =
        stage.take(stage.plans.plan.input, dropped ? MemoryClass::Workspace : MemoryClass::Boundary,
                   "the input's gradient");
  }
  Extent workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
  set(tensors, Place::InputGradient, below);
  set(tensors, Place::Workspace, workspace);
  go_back(stage, batch, kind, traversal, tensors);
  give_back(workspace, stage.now());
  if (dropped) give_back(below, stage.now());
  if (kind == OpKind::B || !traversal.weights) end_traversal(stage, micro_batch, traversal);
  if (traversal.to_previous) batch.outgoing.emplace_back(loss, below);
  forget(stage, micro_batch);
}

void release_output(GpuStage& stage, int micro_batch, const LastUse& use) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  batch.sent = true;
  if (!batch.head_is_due) {
    give_back(batch.output, use);
  } else {
    batch.output.memory->note_use(batch.output, use);
  }
  forget(stage, micro_batch);
}

void forget(GpuStage& stage, int micro_batch) {
  const auto found = stage.under_way.find(micro_batch);
  const GpuMicroBatch& batch = found->second;
  const bool holds = batch.input || batch.stash || batch.output || !batch.outgoing.empty();
  if (!holds && batch.gradients.empty()) stage.under_way.erase(found);
}

}  // namespace interlock::cuda
