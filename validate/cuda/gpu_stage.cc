// Forwards and heads of a stage on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/gpu_stage.h"

#include <algorithm>

#include "base/error.h"
#include "validate/cuda/gpu_tensors.h"

namespace interlock::cuda {

namespace {

void copy(const GpuStage& stage, const Extent& to, const Extent& from, std::int64_t bytes) {
  scale(stage.engine.lane, to.data, from.data, 1, bytes / bytes_of(stage.engine.lane.element));
}

/// Features of the micro-batch; tokens are read where they are.
void read_input(const GpuStage& stage, const Extent& input, int micro_batch) {
  const GpuBatch& batch = stage.batches[static_cast<std::size_t>(micro_batch)];
  if (batch.features == nullptr) return;
  from_fp32(stage.engine.lane, input.data, batch.features,
            input.bytes / bytes_of(stage.engine.lane.element));
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
  GpuTensors tensors = tensors_of(stage, batch, micro_batch);
  set_workspace(tensors, workspace);
  run_steps(stage.engine, stage.plans.plan.forward, tensors);
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
