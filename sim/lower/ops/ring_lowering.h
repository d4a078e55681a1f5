// RingLowering: weights that pass by the micro-batches of a ring of ranks, and their gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <tuple>

#include "sim/lower/instruction_writer.h"
#include "sim/lower/op_cost.h"
#include "sim/lower/wiring.h"

namespace interlock {

/// Writes the messages of a ring around the ops of its ranks. Does nothing where there is none.
class RingLowering {
 public:
  RingLowering(const LowerInputs& inputs, Wiring& wiring, InstructionWriter& writer);
  /// Writes what `op` waits for and hands on before it runs.
  void before(const Op& op);
  /// Writes what follows it: sums of gradients on their way, and turns without kernels.
  void after(const Op& op);

 private:
  enum class Flow { Forward, Backward, Gradients };
  void forward_turn(const Op& op, int turn);
  void begin_backward_turn(const Op& op, int turn);
  void end_backward_turn(const Op& op, int turn);
  void bring_home(const Op& op);
  void receive(const Op& op, Flow flow, int chunk, int turn);
  void send(const Op& op, Flow flow, int chunk, int turn);
  int number(const Op& op, int receiver, int turn) const;
  int channel(Flow flow, int from, int to, int chunk);
  int rank_of(const Op& op) const { return op.stage / ranks_; }
  int chunk_of(const Op& op) const { return op.stage % ranks_; }
  int round_of(const Op& op) const;
  int next(int rank) const { return (rank + 1) % ranks_; }
  int before(int rank) const { return (rank + ranks_ - 1) % ranks_; }

  const LowerInputs& inputs_;
  Wiring& wiring_;
  InstructionWriter& writer_;
  int ranks_, rounds_, turns_;                               // turns: of a step, of each flow
  std::map<std::tuple<Flow, int, int, int>, int> channels_;  // by ranks and chunk
};

}  // namespace interlock
