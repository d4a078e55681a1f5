// Outputs and gradients between stages, as ops receive, make and send them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/lower/op_lowering.h"

namespace interlock {

namespace {

/// Returns where an output lies that is cast: a head reads it as it was made.
MemoryClass class_of_cast_output(const StageRole& role) {
  return role.head ? MemoryClass::Boundary : MemoryClass::Workspace;
}

}  // namespace

void OpLowering::begin_forward(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  exchange_readout(op);
  wait_for_vocabulary(op);
  wait_for_updates(op);
  wait_for_weights(op);
  if (const int from = costs_.before(op.stage); from >= 0) {
    message(Opcode::Receive, Cargo::Activation, op, from, op.stage);
  }
  allocate_stash(op);
  const std::vector<int> readers = costs_.after(op.stage);
  for (const int reader : readers) {
    writer_.allocate(op, MemoryClass::Boundary,
                     costs_.sent_output(op.stage, reader, op.micro_batch));
  }
  const bool for_head_alone = readers.empty() && costs_.role(op).head;
  if (for_head_alone) writer_.allocate(op, MemoryClass::Boundary, stage.output);
  writer_.allocate(op, MemoryClass::Workspace, stage.workspace);
  if (costs_.casts_output(op)) {
    writer_.allocate(op, class_of_cast_output(costs_.role(op)), stage.output);
  }
  writer_.free(op, MemoryClass::Boundary, costs_.input(op));
}

void OpLowering::end_forward(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  writer_.free(op, MemoryClass::Workspace, stage.workspace);
  if (costs_.casts_output(op) && !costs_.role(op).head) {
    writer_.free(op, MemoryClass::Workspace, stage.output);
  }
  send_stash(op);
  hand_to_vocabulary(op);
  for (const int next : costs_.after(op.stage)) {
    message(Opcode::Send, Cargo::Activation, op, op.stage, next);
  }
}

/// The memory of a head has room for what it reads, so that the output is the message's alone from
/// here on.
void OpLowering::begin_head(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  const StageRole& role = costs_.role(op);
  const bool consumed = role.traversals.front().loss == op.stage ||
                        (!role.only_added.empty() && role.only_added.front() == op.stage);
  const std::vector<int> readers = costs_.after(op.stage);
  if (readers.empty()) writer_.free(op, MemoryClass::Boundary, stage.output);
  writer_.allocate(op, MemoryClass::Head, stage.head_memory);
  if (consumed) writer_.allocate(op, MemoryClass::Boundary, stage.output_gradient());
  if (readers.empty()) return;
  if (costs_.casts_output(op)) return writer_.free(op, MemoryClass::Boundary, stage.output);
  const int channel = wiring_.channel(Cargo::Activation, op.stage, readers.front(), op.micro_batch);
  writer_.free_message(op, stage.output, channel);
}

/// Writes what a traversal reads and makes: the gradient from above, and the one for the stage
/// below, if there is a stage below.
void OpLowering::begin_traversal(const Op& op) {
  const Traversal& traversal = costs_.traversal(op);
  receive_gradients(op);
  wait_for_vocabulary(op);
  if (!recomputed_) wait_for_stash(op);
  if (traversal.to_previous) {
    writer_.allocate(op, MemoryClass::Boundary, costs_.sent_input_gradient(op));
    if (costs_.casts_input_gradient(op)) {
      writer_.allocate(op, MemoryClass::Workspace, costs_.input_gradient(op));
    }
  } else if (drops_input_gradient(traversal)) {
    writer_.allocate(op, MemoryClass::Workspace, costs_.input_gradient(op));
  }
}

void OpLowering::end_backward(const Op& op) {
  const Traversal& traversal = costs_.traversal(op);
  const bool makes_input_gradient = op.kind != OpKind::W;
  // Recomputed activations live in the workspace: those of one traversal, from I until W if split.
  const bool keeps_workspace = costs_.recomputes(op) && op.kind == OpKind::I && traversal.weights;
  if (!keeps_workspace) {
    writer_.free(op, MemoryClass::Workspace, costs_.of_stage(op).workspace);
  }
  if (makes_input_gradient &&
      (drops_input_gradient(traversal) || costs_.casts_input_gradient(op))) {
    writer_.free(op, MemoryClass::Workspace, costs_.input_gradient(op));
  }
  // A split backward reads the gradient of its output twice: I, then W.
  if (op.kind != OpKind::I || !traversal.weights) end_traversal(op);
  if (makes_input_gradient) send_gradients(op, traversal);
  hand_to_vocabulary(op);
}

/// The gradient of the output has been read for the last time; with the weight gradients the stash
/// has, too. Comes before the send, which may have to stand.
void OpLowering::end_traversal(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  const StageRole& role = costs_.role(op);
  const bool last = op.loss == role.traversals.back().loss;
  const bool sums = role.summed_gradients > 0 && role.traversals.size() > 1;
  const bool becomes_sum = sums && op.loss == role.traversals.front().loss;
  const bool held = op.loss != op.stage || role.head;
  if (held && !becomes_sum) writer_.free(op, MemoryClass::Boundary, stage.output_gradient());
  if (!last) return;
  const std::size_t others = role.only_added.size() + (sums ? 1 : 0);
  for (std::size_t i = 0; i < others; ++i) {
    writer_.free(op, MemoryClass::Boundary, stage.output_gradient());
  }
  if (!std::exchange(handed_over_, false)) free_stash(op);
  if (op.defers) writer_.allocate(op, MemoryClass::Stash, stage.deferred);
  if (has_windows()) writer_.emit(Opcode::Record, window_event(op.stage), op.micro_batch);
}

/// Returns true if the input gradient of a traversal is dropped: no stage needs it. It is made all
/// the same, unless it is skipped; a gradient that stops inside the stage is not one of its input.
bool OpLowering::drops_input_gradient(const Traversal& traversal) const {
  if (traversal.partial || inputs_.strategy.kind == StrategyKind::ForwardForward) return false;
  return !traversal.to_previous && !inputs_.strategy.skip_unneeded_input_gradients;
}

void OpLowering::receive_gradients(const Op& op) {
  const StageRole& role = costs_.role(op);
  const bool list = inputs_.policy.kind->sends_lists;
  const bool first = op.loss == role.traversals.front().loss;
  const bool whole_list = first && role.traversals.back().loss > op.stage;
  const int messages = list ? int{whole_list} : costs_.gradients_read(op);
  for (int left = messages; left > 0; --left) {
    message(Opcode::Receive, Cargo::Gradient, op, op.stage + 1, op.stage);
    const auto cast = costs_.cast_gradient(op.stage + 1, op.stage, op.micro_batch);
    if (!cast) continue;
    writer_.allocate(op, MemoryClass::Boundary, costs_.of_stage(op).output_gradient());
    writer_.free(op, MemoryClass::Boundary, *cast);
  }
}

void OpLowering::send_gradients(const Op& op, const Traversal& traversal) {
  const auto& traversals = costs_.role(op).traversals;
  const bool list = inputs_.policy.kind->sends_lists;
  const bool any = std::any_of(traversals.begin(), traversals.end(),
                               [](const Traversal& t) { return t.to_previous; });
  if (!(list ? any && traversal.weights : traversal.to_previous)) return;
  message(Opcode::Send, Cargo::Gradient, op, op.stage, op.stage - 1);
}

void OpLowering::message(Opcode code, Cargo cargo, const Op& op, int from, int to) {
  writer_.emit(code, wiring_.channel(cargo, from, to, op.micro_batch), op.micro_batch);
}

}  // namespace interlock
