// CpuStage: one stage of a run on the CPU: its weights, and what its micro-batches hold.
// SPDX-License-Identifier: Apache-2.0
//
// What is taken when, of which class and for how long is what sim/lower/op_lowering.cc says of a
// device; the numbers lie in these blocks and nowhere else.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "validate/cpu/cpu_memory.h"
#include "validate/cpu/cpu_weights.h"
#include "validate/cpu/cpu_workload.h"
#include "validate/cpu/stage_network.h"

namespace interlock {

/// What a stage holds of one micro-batch.
struct MicroBatch {
  Block input, stash, output;
  std::byte* lent = nullptr;                   // an input that it reads, and does not hold
  std::map<int, Block> gradients;              // of the output, by loss
  Block gradient_sum;                          // of several losses: of those gone through so far
  std::deque<std::pair<int, Block>> outgoing;  // gradients of the input, with their losses
  std::size_t leaving = 0;                     // of these, the first so many are on their way
  Block below, workspace;    // of the traversal under way: its gradient of the input, its room
  bool goes_back = false;    // a traversal is under way
  int version = -1;          // of the weights that its forward used; before it, none
  bool sent = false;         // the output has left
  bool head_is_due = false;  // and reads the output
};

/// An input that a stage may learn from again.
struct OldInput {
  int micro_batch = 0;
  int turns = 0;  // that were made on it
  std::byte* data = nullptr;
};

/// The sizes that the program gives a stage.
struct StageBytes {
  std::int64_t workspace = 0, head = 0;
};

template <class T>
struct CpuStage {
  const Job* job = nullptr;
  int stage = 0;
  CpuMemory* memory = nullptr;
  const CpuOptions* options = nullptr;
  std::map<int, double>* losses = nullptr;  // of its own
  StageRole role;
  std::shared_ptr<const std::vector<Layer>> layers, head_layers;
  StagePlan plan, plan_without, head_plan;  // without: the gradient of its input
  bool runs_again = false;                  // the program has R before I and B
  bool rereads_input = false, rebuilds = false, returns_input = false;  // see StageJob
  StageBytes bytes;
  std::vector<TrainedParameter<T>> parameters;  // of the stage, then of its head
  std::vector<T*> weights, head_weights;
  bool keeps_versions = false;               // else a backward uses the weights that it finds
  std::map<int, WeightVersion<T>> versions;  // but for the newest
  std::vector<Block> spare;                  // room for further ones
  int version = 0, steps = 0;                // of the newest; updates so far
  std::map<int, GradientSum<T>> sums;        // by update
  std::vector<GradientSum<T>> spare_sums;    // zeros
  std::map<int, MicroBatch> under_way;
  std::vector<std::byte*> input_room;  // of the inputs to come that it may learn from again
  std::vector<OldInput> old_inputs;    // oldest first
  bool replays = false;                // a turn on one of them is under way
  std::vector<NamedArray> dump;

  std::int64_t output_bytes() const {
    return plan.output.size() * static_cast<std::int64_t>(sizeof(T));
  }
  bool is_first() const { return stage == 0; }
  bool drops_input() const { return rereads_input || rebuilds; }
  /// What goes down at a time: a gradient of the input, and before it the input if that returns.
  std::int64_t sent_down_bytes() const { return returns_input ? 2 * plan.input : plan.input; }
};

/// Blocks of the resident classes of `stages`, which are those of one rank, and their first values.
template <class T>
void place_parameters(const std::vector<CpuStage<T>*>& stages, const Rank& rank);

/// Fills `to` with the tokens or features of a micro-batch.
template <class T>
void read_input(const CpuStage<T>& stage, const Batch& data, std::byte* to);

// Each runs an op and returns what ends it: what gives back the memory that it held.
template <class T>
EndOfOp run_forward(CpuStage<T>& stage, int micro_batch);
template <class T>
EndOfOp run_head(CpuStage<T>& stage, int micro_batch);
/// R, before I or B by the gradient of a loss.
template <class T>
EndOfOp run_again(CpuStage<T>& stage, int loss, int micro_batch);
/// I, W or B by the gradient of a loss.
template <class T>
EndOfOp run_backward(CpuStage<T>& stage, OpKind kind, int loss, int micro_batch);
template <class T>
EndOfOp run_update(CpuStage<T>& stage, int micro_batch);

/// A whole turn on an old input: of those with the fewest turns, the newest. Its loss is not noted.
template <class T>
EndOfOp run_replay(CpuStage<T>& stage);

/// Keeps the input of a new micro-batch for turns to come, in the place of the oldest if need be.
template <class T>
void keep_input(CpuStage<T>& stage, int micro_batch, const Block& input);

/// Gives the output back once nobody reads it any more.
template <class T>
void release_output(CpuStage<T>& stage, int micro_batch);
/// Forgets the micro-batch if nothing is held of it.
template <class T>
void forget(CpuStage<T>& stage, int micro_batch);

/// The weights that a forward of `micro_batch` uses, as a version number.
template <class T>
int version_of_forward(const CpuStage<T>& stage, int micro_batch);
/// What gradients of `micro_batch` are added to.
template <class T>
GradientSum<T>& sum_for(CpuStage<T>& stage, int micro_batch);
template <class T>
const std::vector<T*>& weights_of(const CpuStage<T>& stage, int version);

/// Step `micro_batch` belongs to.
inline int step_of(const Program& program, int micro_batch) {
  return micro_batch / program.micro_batches;
}

}  // namespace interlock
