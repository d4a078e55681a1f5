// Forwards and heads of a stage, and what their micro-batches hold.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_stage.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "validate/cpu/cpu_tensors.h"

namespace interlock {
namespace {

template <class T>
void note_loss(const CpuStage<T>& stage, int micro_batch, double loss) {
  if (!std::isfinite(loss)) throw Error(loss_problem(*stage.job, stage.stage, micro_batch));
  (*stage.losses)[micro_batch] = loss;
}

}  // namespace

template <class T>
void read_input(const CpuStage<T>& stage, const Batch& data, std::byte* to) {
  const bool tokens = stage.job->network.samples == SampleKind::Tokens;
  const std::size_t bytes =
      tokens ? data.tokens.size() * sizeof(std::int64_t) : data.features.size() * sizeof(T);
  CHECK(stage.plan.input == static_cast<std::int64_t>(bytes),
        "a batch has a token, or the features, of each row of the input");
  if (tokens) {
    std::copy(data.tokens.begin(), data.tokens.end(), reinterpret_cast<std::int64_t*>(to));
  } else {
    std::copy(data.features.begin(), data.features.end(), reinterpret_cast<T*>(to));
  }
}

template <class T>
EndOfOp run_forward(CpuStage<T>& stage, int micro_batch) {
  MicroBatch& batch = stage.under_way[micro_batch];
  batch.version = version_of_forward(stage, micro_batch);
  const bool last = stage.layers->back().kind == LayerKind::CrossEntropy;
  const Batch data = stage.is_first() || last ? stage.job->batch(micro_batch) : Batch();
  CpuMemory& memory = *stage.memory;
  if (stage.is_first() && !stage.rereads_input) {
    batch.input = memory.take(stage.plan.input, MemoryClass::Stash);
    read_input(stage, data, batch.input.data);
  } else if (!stage.is_first() && batch.lent == nullptr) {
    CHECK(batch.input.bytes == stage.plan.input, "a stage reads what the one before it made");
  }
  if (batch.input && !stage.is_first() && !stage.rebuilds) {
    memory.retag(batch.input, MemoryClass::Stash);
    keep_input(stage, micro_batch, batch.input);
  }
  batch.stash = memory.take(stage.plan.stash, MemoryClass::Stash);
  if (!last) batch.output = memory.take(stage.output_bytes(), MemoryClass::Boundary);
  Block workspace = memory.take(stage.bytes.workspace, MemoryClass::Workspace);
  if (stage.rereads_input) read_input(stage, data, workspace.data);
  if (stage.rebuilds && !stage.is_first()) {
    std::memcpy(workspace.data, batch.input.data, static_cast<std::size_t>(stage.plan.input));
    memory.give_back(batch.input);
  }
  StageTensors<T> tensors = tensors_of(stage, batch);
  set_workspace(stage, tensors, workspace);
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

#define INTERLOCK_STAGE(T)                                                   \
  template void read_input<T>(const CpuStage<T>&, const Batch&, std::byte*); \
  template EndOfOp run_forward<T>(CpuStage<T>&, int);                        \
  template EndOfOp run_head<T>(CpuStage<T>&, int);                           \
  template void release_output<T>(CpuStage<T>&, int);                        \
  template void forget<T>(CpuStage<T>&, int)
INTERLOCK_STAGE(float);
INTERLOCK_STAGE(double);
#undef INTERLOCK_STAGE

}  // namespace interlock
