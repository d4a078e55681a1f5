// OpLowering: the instructions of one compute op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/lower/exchange_lowering.h"
#include "sim/lower/instruction_writer.h"
#include "sim/lower/op_cost.h"
#include "sim/lower/ops/ring_lowering.h"
#include "sim/lower/wiring.h"

namespace interlock {

/// Appends the instructions of ops to a program, making ops, buffers and events as needed.
class OpLowering {
 public:
  OpLowering(const LowerInputs& inputs, const Brevity& brevity, Wiring& wiring, Program& program);
  void append(const Op& op);
  /// Comes before the next op, or pair, of a rank of one stream: what follows it.
  void expect(std::vector<Op> next) { next_ = std::move(next); }
  /// Comes before an op that `next` follows in every turn: holds what arrives for that beside it.
  void receive_ahead(const Op& next);
  /// Appends two ops that overlap: both have what they need before either starts, and send when
  /// both are done. Drawn and counted one after the other, each in its share of the time of the
  /// pair; or, if tokens of one pass beside kernels of the other, as they take turns.
  void append_pair(const Op& first, const Op& second);
  /// Comes before the first of `updates` in a row. None of them may wait at the barrier before all
  /// have said that they are due, because they are of stages that share the stream.
  void begin_updates(const Op& first, int updates);
  /// Adds streams beside the ops of `rank`, which are all written.
  void finish_rank(int rank) { ring_.add_line(rank); }

 private:
  void begin(const Op& op);
  void run(const Op& op, double share);
  void append_in_turns(const Op& forward, const Op& backward);
  Bytes hand_stash_over(const Op& forward, const Op& backward);
  /// The pieces of an op, and the buffers that it takes for them.
  struct Prepared {
    std::optional<ComputePiece> again;
    ComputePiece piece;
    Bytes buffers;
  };
  Prepared prepare(const Op& op, double share);
  bool takes_turns(const Op& first, const Op& second) const;
  void end(const Op& op);
  void begin_forward(const Op& op);
  void begin_head(const Op& op);
  void end_forward(const Op& op);
  void begin_traversal(const Op& op);
  void end_backward(const Op& op);
  void end_traversal(const Op& op);
  /// Returns the time of an op, what it first computes again included.
  Seconds whole_time(const Op& op) const;
  bool recomputes_early(const Op& op) const;
  void recompute_early(const Op& op);
  bool drops_input_gradient(const Traversal& traversal) const;
  void receive_gradients(const Op& op);
  void send_gradients(const Op& op, const Traversal& traversal);
  void begin_update(const Op& op);
  void end_update(const Op& op);
  ComputePiece piece_of(const Op& op, double share) const;
  void add_gathers(const Op& op, ComputePiece& piece) const;
  void add_sends(const Op& op, ComputePiece& piece) const;
  std::vector<Exchange> gradients_in_buckets(const Op& op) const;
  std::vector<Exchange> whole_weights(const Op& op) const;
  /// Returns true if gradients leave with the last backward before the update of the stage.
  bool sends_early(int stage) const {
    return inputs_.data_parallel.overlap_gradients && completes_[stage];
  }
  void wait_for_weights(const Op& op);
  void add_up_copies(const Op& op);
  void wait_for_updates(const Op& op);
  void exchange_readout(const Op& op);
  void begin_of_vocabulary(const Op& op);
  void end_of_vocabulary(const Op& op);
  void wait_for_vocabulary(const Op& op);
  void hand_to_vocabulary(const Op& op);
  bool reads_broadcast(const Op& op) const;
  void wait_for_broadcast(const Op& op, VocabularyExchange what);
  void emit_of_vocabulary(Opcode code, const Op& op, VocabularyExchange what);
  void begin_trade(const Op& op);
  void end_trade(const Op& op);
  int trade_channel(const Op& op, const Trade& trade, bool answers);
  bool divides_vocabulary() const { return inputs_.policy.vocabulary != VocabularySplit::Whole; }
  bool reads_stash_first(const Op& op) const;
  const Op* backward_after(const Op& forward) const;
  bool passes_in_layers(const Op& forward) const;
  Bytes kept_stash(const StageCost& stage) const;
  void allocate_stash(const Op& op);
  void free_stash(const Op& op);
  void add_layer_copies(const Op& op, ComputePiece& piece) const;
  void send_stash(const Op& op);
  void fetch_ahead(const Op& first, const Op& last);
  void fetch(const Op& op);
  void wait_for_stash(const Op& op);
  void begin_copies(const Op& op);
  void finish_copies(const Op& op);
  std::vector<Exchange> copies_of_update(const Op& op, MeshAxis way) const;
  Bytes buffers_of(const Op& op, const ComputePiece& piece) const;
  Bytes unsent_gradients(const Op& op) const;
  void message(Opcode code, Cargo cargo, const Op& op, int from, int to);

  const Mesh& mesh_of(const Op& op, const StageCost& part) const {
    const int rank = inputs_.schedule.rank_of_stage[op.stage];
    return mesh_of_layers(inputs_, rank, part.layout);
  }
  /// Returns the copies that updates of all stages of the rank make: they stay until the next step
  /// begins, so that all are there in the last update, and each update has room for all.
  Bytes update_copies(const Op& op) const {
    return ranks_[inputs_.schedule.rank_of_stage[op.stage]].update_copies;
  }
  int update_every() const { return inputs_.policy.update_every; }
  /// Returns true if several micro-batches are in flight and one of them does the update for all.
  bool has_windows() const;
  int barrier();
  int window_event(int stage);
  int update_event(int stage);

  const LowerInputs& inputs_;
  const std::vector<Rank>& ranks_;  // of the program
  Wiring& wiring_;
  OpCosts costs_;
  InstructionWriter writer_;
  ExchangeLowering exchanges_;
  RingLowering ring_;
  std::vector<bool> completes_;  // (stages) some backward of it completes its gradients
  std::vector<int> window_events_, update_events_;
  /// Events and channels of trades by 0 or 1 (backward) and the stages of giver and maker; channels
  /// also by 0 or 1 (an answer) and their bytes.
  std::map<std::array<int, 3>, int> trade_events_;
  std::map<std::pair<std::array<int, 4>, Bytes>, int> trade_channels_;
  std::vector<Op> next_;      // see expect()
  bool stays_ = false;        // the stash that the next backward reads is not copied as a whole
  bool in_layers_ = false;    // it leaves and comes back layer by layer
  bool handed_over_ = false;  // the stash of the backward of a pair has been freed
  bool fetched_ = false;      // the stash that it reads is on its way back
  std::set<std::pair<OpKind, int>> received_;  // S and G by micro-batch, see receive_ahead()
  bool recomputed_ = false;                    // what the next backward computes again has been
  Bytes gathered_;                             // buffers that this left for it
  int barrier_event_ = -1;
};

}  // namespace interlock
