// RingLowering: weights that pass by the micro-batches of a ring of ranks, and their gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <tuple>

#include "sim/lower/op_cost.h"
#include "sim/lower/wiring.h"
#include "sim/program/program.h"

namespace interlock {

/// Writes the messages of a ring around the ops of its ranks, and a line of departures beside those
/// of each rank. Does nothing where there is no ring.
class RingLowering {
 public:
  RingLowering(const LowerInputs& inputs, Wiring& wiring, Program& program);
  /// Writes what `op` waits for and hands on before it runs.
  void before(const Op& op);
  /// Writes what follows it: sums of gradients on their way, and turns without kernels.
  void after(const Op& op);
  /// Adds the line of `rank`, whose ops are written.
  void add_line(int rank);

 private:
  enum class Flow { Forward, Backward, Gradients, Home };
  using Key = std::tuple<Flow, int, int, int, bool>;  // from, to, chunk; passes, see message()
  /// A channel, and events: both ranks have come to a turn; a message has left.
  struct Way {
    int channel = -1, met = -1, left = -1;
  };
  struct Message {
    Way way;
    int micro_batch = 0;
  };
  void forward_turn(const Op& op, int turn);
  void begin_backward_turn(const Op& op, int turn);
  void end_backward_turn(const Op& op, int turn);
  bool hands_on(Flow flow, int turn) const;
  void begin_turn(const Op& op, Flow flow, int turn);
  void hand_on(const Op& op, Flow flow, int turn);
  void bring_home(const Op& op);
  void meet(const Message& in, const Message& out);
  void take(const Message& in, const Message& out);
  void write_departure(int rank, Instruction instruction);
  void emit(Opcode code, int index, int micro_batch);
  Message message(const Op& op, Flow flow, int from, int turn);
  const Way& way(const Key& key);
  int step_of(const Op& op) const;
  int round_of(const Op& op) const;
  int rank_of(const Op& op) const { return op.stage / ranks_; }
  int chunk_of(const Op& op) const { return op.stage % ranks_; }
  int next(int rank) const { return (rank + 1) % ranks_; }
  int before(int rank) const { return (rank + ranks_ - 1) % ranks_; }

  const LowerInputs& inputs_;
  Wiring& wiring_;
  Program& program_;
  int ranks_, rounds_, turns_;  // turns: of a step, of each flow
  std::map<Key, Way> ways_;
  std::map<int, Way> ways_of_meetings_;  // by event
};

}  // namespace interlock
