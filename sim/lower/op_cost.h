// OpCosts: what an op of a schedule costs, and the bytes of what it reads and makes.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a middle stage under global training whose forward takes 1 ms, the two halves of its
// backward 1 ms each, what the backward first computes again 1 ms, and its update 0.1 ms. of() its
// B is 2 ms, recompute() 1 ms, turn() 1 + 2 + 1 + 0.1 = 4.1 ms.
#pragma once

#include <optional>
#include <vector>

#include "sim/lower/lower.h"

namespace interlock {

/// Attention of one op that the rank of another makes, see ContextTrade: in as many layers as the
/// stages of both have. Bytes are of all these layers; those held are of one layer.
struct Trade {
  Op giver, maker;  // whose it is, and who makes it: their stages and micro-batches
  int slices = 0, layers = 0;
  Bytes request, answer;            // to the maker, and back
  Bytes request_held, answer_held;  // on either device; of a backward's two passes, the larger
};

class OpCosts {
 public:
  explicit OpCosts(const LowerInputs& inputs)
      : inputs_(inputs),
        stages_(inputs.schedule.stages),
        stages_of_replica_(stages_ / inputs.schedule.replicas),
        stages_of_copy_(stages_of_replica_ / inputs.schedule.copies) {}

  /// Returns the stage whose output `stage` reads; -1 for the first of a copy.
  int before(int stage) const;
  /// Returns the stages that read the output of `stage`.
  std::vector<int> after(int stage) const;
  /// Returns the stage that holds the same part of the model, `copies` copies on.
  int in_copy_after(int stage, int copies) const {
    const int own = stage % stages_of_replica_;
    return stage - own + (own + copies * stages_of_copy_) % stages_of_replica_;
  }

  int first_of_replica(int stage) const { return stage - stage % stages_of_replica_; }
  /// Returns the last stage of the replica that `stage` belongs to.
  int last_of_replica(int stage) const {
    return stage - stage % stages_of_replica_ + stages_of_replica_ - 1;
  }

  /// Returns the costs of `stage` for the slice that `micro_batch` is.
  const StageCost& of_stage(int stage, int micro_batch) const {
    return inputs_.stages[micro_batch % inputs_.schedule.slices * stages_ + stage];
  }
  /// Returns the role of an op's stage for its micro-batch.
  const StageRole& role(const Op& op) const { return inputs_.roles[op.stage].of(op.micro_batch); }
  const StageCost& of_stage(const Op& op) const { return of_stage(op.stage, op.micro_batch); }
  /// Returns the bytes of the output, or gradient, of `from` on its way to `to`; nothing if it is
  /// not cast.
  std::optional<Bytes> cast_output(int from, int to, int micro_batch) const;
  std::optional<Bytes> cast_gradient(int from, int to, int micro_batch) const;
  /// Returns whether an op casts what it makes for another stage.
  bool casts_output(const Op& op) const;
  bool casts_input_gradient(const Op& op) const;
  /// Returns the bytes of the output of a stage as it comes to another.
  Bytes sent_output(int from, int to, int micro_batch) const;
  /// Returns the bytes that a forward makes for other stages, or for its head alone.
  Bytes sent_outputs(const Op& op) const;
  /// Returns the bytes of the gradient of an op's input as it goes to the stage below, and as the
  /// op makes it.
  Bytes sent_input_gradient(const Op& op) const;
  Bytes input_gradient(const Op& op) const;
  /// Returns the activation that a forward receives.
  Bytes input(const Op& op) const;
  /// Returns how many gradients an I or B receives from the stage above.
  int gradients_read(const Op& op) const;
  /// Returns the traversal of an I, B or W. CHECKs that the op's loss reaches its stage.
  const Traversal& traversal(const Op& op) const;
  /// Returns the cost of what an I, B or W first computes again.
  OpCost recompute(const Op& op) const;
  bool recomputes(const Op& op) const {
    return recompute_cost(of_stage(op), traversal(op)).time > Seconds(0);
  }
  /// Returns what an F, I or B trades; nothing if it is no attention of a model.
  std::optional<Trade> trade(const Op& op) const;
  /// Returns the part of the cost of a B that makes gradients of weights.
  OpCost weight_gradients(const Op& op) const;
  /// Returns a whole turn of a stage on one input: forward, head, backward, update.
  OpCost turn(int stage, int micro_batch) const;
  /// Returns the op alone, without what a backward first computes again.
  OpCost of(const Op& op) const;

 private:
  OpCost before_trade(const Op& op) const;
  bool apart(int one, int other) const {
    const std::vector<int>& ranks = inputs_.schedule.rank_of_stage;
    return ranks[one] != ranks[other];
  }
  OpCost computing(const Op& op) const;
  OpCost casts(const Op& op) const;
  bool attends_again(const Trade& trade) const;
  OpCost attention(const Trade& trade, int stage, OpCost ContextCost::*pass) const;
  void move_attention(const Op& op, OpCost ContextCost::*pass, OpCost& cost) const;

  const LowerInputs& inputs_;
  int stages_, stages_of_replica_, stages_of_copy_;
};

/// Returns true if `inputs` has a ring of ranks that each run all stages, see weipipe.cc.
bool is_ring(const LowerInputs& inputs);
/// Returns whether one of all copies of a stage has its states.
bool updates_one_copy(const LowerInputs& inputs);
/// Returns whether its rank keeps the states of `stage`, and updates it.
bool keeps_state(const LowerInputs& inputs, int stage);
/// Returns what each rank of a ring holds, from start to end, of chunks that pass by: two buffers
/// of each flow, as large as the largest chunk, one to send from while the other receives, and the
/// gradients that a backward makes before they are added up. Nothing if there is no ring.
Bytes ring_buffers(const LowerInputs& inputs);

/// An exchange that brings the weights of some modules of an op, one of its count for each of them.
struct WeightGather {
  Exchange exchange;
  std::vector<int> places;  // of these modules among those of the op, as it comes to them
  std::vector<int> begins;  // places of the modules beside which they begin, likewise
};

/// A compute and what goes with it.
struct ComputePiece {
  OpKind kind = OpKind::F;
  OpCost cost;
  bool useful = false;
  double share = 1;                        // of the time that its kernels take alone
  std::vector<WeightGather> gathers = {};  // kernels of a module wait for its weights
  int modules = 1;                         // of the op
  std::vector<Exchange> sends = {};        // one of their count begins after so much of the op
  bool sends_all = false;              // `sends` are of all micro-batches of an update, not of one
  std::optional<OpCost> delayed = {};  // of `cost`: kernels that no message of a pair waits for
};

}  // namespace interlock
