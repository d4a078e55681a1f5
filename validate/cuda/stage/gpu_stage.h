// GpuStage: one stage of a run on GPUs: its weights, and what its micro-batches hold.
// SPDX-License-Identifier: Apache-2.0
//
// What is taken when, of which class and for how long is what sim/lower/op_lowering.cc says of a
// device. Everything here issues work to the stream of the stage's device and returns.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "validate/cuda/stage/gpu_memory.h"
#include "validate/cuda/stage/gpu_steps.h"
#include "validate/network/job_plan.h"

namespace interlock::cuda {

/// What a stage holds of one micro-batch.
struct GpuMicroBatch {
  Extent input, stash, output;
  std::map<int, Extent> gradients;              // of the output, by loss
  Extent gradient_sum;                          // of several losses: of those gone through so far
  std::deque<std::pair<int, Extent>> outgoing;  // gradients of the input, with their losses
  Extent below, workspace;                      // of the traversal under way
  bool goes_back = false;                       // one is under way, and has its room
  int version = -1;          // of the weights that its forward used; before it, none
  bool sent = false;         // the output has left
  bool head_is_due = false;  // and reads the output
};

/// A weight, its gradient, and what its optimiser keeps.
struct GpuParameter {
  Parameter parameter;
  int number = 0;  // in the whole network
  bool of_head = false;
  DescentState at;
};

/// What the micro-batches of one update add up.
struct GpuSum {
  std::vector<char*> of_stage, of_head;  // by parameter
  int batches = 0, head_batches = 0;     // in them
};

/// Old weights that some backward still needs.
struct GpuWeights {
  char* data = nullptr;
  std::vector<char*> weights;
};

struct GpuStage {
  const Job* job = nullptr;
  int stage = 0;
  StageRole role;
  StageJob plans;
  GpuMemory* memory = nullptr;
  Engine engine;
  cudaEvent_t behind = nullptr;          // is recorded when the op under way has been issued
  std::vector<GpuParameter> parameters;  // of the stage, then of its head
  std::vector<char*> weights, head_weights;
  bool keeps_versions = false;         // else a backward uses the weights that it finds
  std::map<int, GpuWeights> versions;  // but for the newest
  std::vector<char*> spare;            // room for further ones
  int version = 0, steps = 0;          // of the newest; updates so far
  std::map<int, GpuSum> sums;          // by update
  std::vector<GpuSum> spare_sums;      // zeros
  std::map<int, GpuMicroBatch> under_way;
  std::vector<GpuBatch> batches;  // by micro-batch, as far as the stage needs them
  float* losses = nullptr;        // by micro-batch
  bool dumps = false;             // the stream may be waited for
  std::vector<NamedArray> dump;

  std::int64_t output_bytes() const {
    return plans.plan.output.size() * bytes_of(engine.lane.element);
  }
  bool is_first() const { return stage == 0; }
  LastUse now() const { return {engine.lane.stream, behind}; }
  Extent take(std::int64_t bytes, MemoryClass memory_class, const char* what) const;
};

/// Blocks of the resident classes of `stages`, which are those of one rank, and their first values.
void place_parameters(const std::vector<GpuStage*>& stages, const Rank& rank);

void run_forward(GpuStage& stage, int micro_batch);
void run_head(GpuStage& stage, int micro_batch);

void run_update(GpuStage& stage, int micro_batch);

// gpu_backward.cc.
/// R: what a backward by the gradient of a loss reads is computed again.
void run_again(GpuStage& stage, int loss, int micro_batch);
/// I, W or B by the gradient of a loss.
void run_backward(GpuStage& stage, OpKind kind, int loss, int micro_batch);

/// The output has left, by the end of `use`; given back once the head has read it, too.
void release_output(GpuStage& stage, int micro_batch, const LastUse& use);
/// Forgets the micro-batch if nothing is held of it.
void forget(GpuStage& stage, int micro_batch);

/// The weights that a forward of `micro_batch` uses, as a version number.
int version_of_forward(const GpuStage& stage, int micro_batch);
/// What gradients of `micro_batch` are added to.
GpuSum& sum_for(GpuStage& stage, int micro_batch);
const std::vector<char*>& weights_of(const GpuStage& stage, int version);

}  // namespace interlock::cuda
