// Stage: one stage of a training: its weights, what its micro-batches hold, and its ops.
// SPDX-License-Identifier: Apache-2.0
//
// It allocates and frees when sim/lower/op_lowering.cc says that a device does, blocks of the same
// class and size. For example, a stage in the middle under 1F1B: a forward reads `input`, which a
// message brought, and makes `stash` and `output`; the output is freed when it has been sent. A
// message then brings a gradient of the output. B reads it, adds to the gradient accumulation of
// the weights, makes `below`, which is sent on, and frees input, stash and gradient.
//
// Calls for the stages of one rank come from one thread at a time, see Workload.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/program/program.h"
#include "validate/network/job_plan.h"
#include "validate/stage/stage_weights.h"

namespace interlock {

/// Frees the memory that an op held. To be called once, when the op has ended.
using EndOfOp = std::function<void()>;

/// The tensors of a message, each with the loss whose gradient it is.
using MessageBlocks = std::vector<std::pair<int, Block>>;

class Stage {
 public:
  /// Makes the stage; `job` and `device` must outlive it. REQUIRES: `rank` has the stage.
  Stage(const Job& job, const Rank& rank, int stage, StageDevice& device);

  /// Runs an op. What it returns is to be called once, when the op ends.
  EndOfOp run(const OpInfo& op, int micro_batch);

  /// Returns what `channel` carries to another rank. Gradients are the caller's from now on; an
  /// output stays with the stage.
  MessageBlocks pack(const Channel& channel, int micro_batch);
  /// Returns what `channel` carries to a stage of the same rank: everything changes hands, but of
  /// an output that the head is yet to read, a copy.
  MessageBlocks hand_over(const Channel& channel, int micro_batch);
  /// Frees what pack() returned, once it has left; an output once the head has read it, too.
  void release(const Channel& channel, int micro_batch, MessageBlocks& blocks);
  /// Takes over the tensors of a message: the input, or gradients of the output by loss.
  void receive(const Channel& channel, int micro_batch, const MessageBlocks& blocks);

  /// Returns the sum of the gradients of the update that covers `micro_batch`, which replicas add
  /// up before it.
  Block gradients(int micro_batch) { return weights_.gradients(micro_batch); }
  /// Returns its newest weights, and the bytes of them that each replica updates.
  Block newest_weights() const { return weights_.newest(); }
  std::int64_t shard_bytes() const { return weights_.shard_bytes(); }

  const std::vector<NamedArray>& dump() const { return weights_.dump(); }

  friend void place_parameters(const std::vector<Stage*>& stages, const Rank& rank);

 private:
  /// The tensors of one micro-batch that the stage holds.
  struct MicroBatch {
    Block input, stash, output;
    Block input_message, output_message, below_message;  // casts of what comes and goes
    std::map<int, Block> gradient_messages;              // by loss
    char* lent = nullptr;                        // an input that it reads, and does not hold
    std::map<int, Block> gradients;              // of the output, by loss
    Block gradient_sum;                          // of several losses: of those gone through so far
    std::deque<std::pair<int, Block>> outgoing;  // gradients of the input, with their losses
    Block below, workspace;    // of the traversal under way: its gradient of the input, its room
    bool goes_back = false;    // a traversal is under way
    int version = -1;          // of the weights that its forward used; before it, none
    bool sent = false;         // the output has left
    bool head_is_due = false;  // and reads the output
  };
  /// An input that the stage may learn from again.
  struct OldInput {
    int micro_batch = 0;
    int turns = 0;  // that were made on it
    char* data = nullptr;
  };

  EndOfOp run_forward(int micro_batch);
  EndOfOp run_head(int micro_batch);
  EndOfOp run_again(int loss, int micro_batch);
  EndOfOp run_backward(OpKind kind, int loss, int micro_batch);
  EndOfOp run_weight_half(int micro_batch, const Traversal& traversal);
  EndOfOp run_update(int micro_batch);

  void keep_input(int micro_batch, const Block& input);
  OldInput& next_old_input();
  EndOfOp run_replay();
  void run_turn(int micro_batch);

  bool casts_output() const { return up_ != SentFormat::Computed && !replays_; }
  std::int64_t cast_size(SentFormat format, std::int64_t bytes) const;
  void take_room(MicroBatch& batch, const Traversal& traversal);
  void read_gradients(MicroBatch& batch);
  void go_back(int micro_batch, OpKind kind, const Traversal& traversal,
               const StageTensors& tensors);
  void keep_for_sum(int micro_batch, int loss);
  void sum_gradients(int micro_batch, int loss);
  void end_traversal(int micro_batch, const Traversal& traversal);
  bool drops_input_gradient(const Traversal& traversal) const;
  const StagePlan& plan_for(const Traversal& traversal) const;
  StageTensors tensors_of(int micro_batch) const;
  StageTensors tensors_of_traversal(int micro_batch, const Traversal& traversal);
  void set_workspace(StageTensors& tensors, const Block& workspace) const;

  void forget(int micro_batch);
  std::set<int> versions_read() const;
  bool reads_own_batch() const { return reads_batch(job_, stage_); }
  bool ends_in_loss() const { return plans_.layers->back().kind == LayerKind::CrossEntropy; }
  std::int64_t output_bytes() const { return plans_.plan.output.size() * device_.number_bytes(); }
  std::int64_t sent_down_bytes() const;
  std::int64_t tensors_in(const Channel& channel) const;

  const Job& job_;
  const int stage_;
  const StageRole& role_;  // of() says that of a micro-batch
  StageDevice& device_;
  const SentFormat up_, down_;  // of outputs, and of gradients of the input, that leave the rank
  const StageJob plans_;
  StageWeights weights_;
  std::map<int, MicroBatch> under_way_;
  std::vector<char*> input_room_;     // of the inputs to come that it may learn from again
  std::vector<OldInput> old_inputs_;  // oldest first
  bool replays_ = false;              // a turn on one of them is under way
};

/// Places what the stages of `rank` hold from start to end, and the first values of their weights.
void place_parameters(const std::vector<Stage*>& stages, const Rank& rank);

}  // namespace interlock
