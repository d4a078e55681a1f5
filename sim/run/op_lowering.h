// OpLowering: the instructions of one compute op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/run/lower.h"
#include "sim/run/wiring.h"

namespace interlock {

/// Appends the instructions of ops to a program, making ops, buffers and events as needed.
class OpLowering {
 public:
  OpLowering(const LowerInputs& inputs, Wiring& wiring, Program& program);
  void append(const Op& op);

 private:
  void forward(const Op& op);
  void head(const Op& op);
  void backward(const Op& op);
  void begin_traversal(const Op& op, const Traversal& traversal);
  void end_traversal(const Op& op, const Traversal& traversal);
  bool drops_input_gradient(const Traversal& traversal) const;
  void update(const Op& op);
  void wait_for_updates(const Op& op);
  void receive_gradients(const Op& op, bool first);
  void send_gradients(const Op& op, const Traversal& traversal);
  void exchange_readout(const Op& op);

  void emit(Opcode code, int index, int micro_batch);
  void compute(const Op& op);
  void compute(const Op& op, OpKind kind, OpCost cost, bool useful);
  void allocate(const Op& op, MemoryClass memory_class, Bytes bytes);
  void free(const Op& op, MemoryClass memory_class, Bytes bytes);
  int buffer(int stage, MemoryClass memory_class, Bytes bytes);
  /// The event remembered in `known`, made at the first call.
  int event(int& known, int recorders);
  const Traversal& traversal_of(const Op& op) const;
  OpCost cost_of(const Op& op) const;
  /// Bytes of the gradient at the stage's input: the output of the stage below.
  Bytes input_gradient(int stage) const;

  const LowerInputs& inputs_;
  Wiring& wiring_;
  Program& program_;
  std::vector<std::vector<int>> ops_of_stage_, buffers_of_stage_;
  std::vector<int> window_events_, update_events_;
  int barrier_event_ = -1;
};

}  // namespace interlock
