// What surrounds each compute op: messages, memory and events.
// SPDX-License-Identifier: Apache-2.0
//
// Memory: a forward turns the received activation into stash, which lives until the weight
// gradients are made. An output belongs to its message from the start of the op that makes it to
// the end of the transfer. A received gradient lives until the last op that reads it has run.
#include "sim/run/op_lowering.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

using Message = Wiring::Message;

OpLowering::OpLowering(const LowerInputs& inputs, Wiring& wiring, Program& program)
    : inputs_(inputs),
      wiring_(wiring),
      program_(program),
      ops_of_stage_(inputs.schedule.stages),
      buffers_of_stage_(inputs.schedule.stages),
      window_events_(inputs.schedule.stages, -1),
      update_events_(inputs.schedule.stages, -1) {}

void OpLowering::append(const Op& op) {
  switch (op.kind) {
    case OpKind::F:
      return forward(op);
    case OpKind::H:
      return head(op);
    case OpKind::R:
      return compute(op);
    case OpKind::I:
    case OpKind::B:
    case OpKind::W:
      return backward(op);
    case OpKind::U:
      return update(op);
  }
}

void OpLowering::forward(const Op& op) {
  const StageCost& stage = inputs_.stages[op.stage];
  const bool sends = op.stage + 1 < inputs_.schedule.stages;
  exchange_readout(op);
  wait_for_updates(op);
  if (op.stage > 0) {
    emit(Opcode::Receive,
         wiring_.channel(Message::Activation, op.stage - 1, op.stage, op.micro_batch),
         op.micro_batch);
  }
  allocate(op, MemoryClass::Stash, stage.stash);
  if (sends) allocate(op, MemoryClass::Boundary, stage.output);
  allocate(op, MemoryClass::Workspace, stage.workspace);
  if (op.stage > 0) free(op, MemoryClass::Boundary, input_gradient(op.stage));
  compute(op);
  free(op, MemoryClass::Workspace, stage.workspace);
  if (sends) {
    emit(Opcode::Send, wiring_.channel(Message::Activation, op.stage, op.stage + 1, op.micro_batch),
         op.micro_batch);
  }
}

void OpLowering::head(const Op& op) {
  const StageCost& stage = inputs_.stages[op.stage];
  const StageRole& role = inputs_.roles[op.stage];
  const bool consumed = role.traversals.front().loss == op.stage ||
                        (!role.only_added.empty() && role.only_added.front() == op.stage);
  allocate(op, MemoryClass::Head, stage.head_memory);
  if (consumed) allocate(op, MemoryClass::Boundary, stage.output);
  compute(op);
  free(op, MemoryClass::Head, stage.head_memory);
}

void OpLowering::backward(const Op& op) {
  const StageCost& stage = inputs_.stages[op.stage];
  const Traversal& traversal = traversal_of(op);
  const bool makes_input_gradient = op.kind != OpKind::W;
  if (makes_input_gradient) begin_traversal(op, traversal);
  // What a recompute makes again lives in the workspace: of one traversal, from I until W if split.
  const bool recomputes = stage.recompute.time > Seconds(0);
  const bool keeps_workspace = recomputes && op.kind == OpKind::I && traversal.weights;
  if (recomputes && makes_input_gradient) compute(op, OpKind::R, stage.recompute, false);
  if (!recomputes || makes_input_gradient) allocate(op, MemoryClass::Workspace, stage.workspace);
  compute(op);
  if (!keeps_workspace) free(op, MemoryClass::Workspace, stage.workspace);
  if (makes_input_gradient && drops_input_gradient(traversal)) {
    free(op, MemoryClass::Workspace, input_gradient(op.stage));
  }
  // A split backward reads the gradient of its output twice: I, then W.
  if (op.kind != OpKind::I || !traversal.weights) end_traversal(op, traversal);
  if (makes_input_gradient) send_gradients(op, traversal);
}

/// What a traversal reads and makes: the gradient from above, and one for below or for nobody.
void OpLowering::begin_traversal(const Op& op, const Traversal& traversal) {
  const bool first = op.loss == inputs_.roles[op.stage].traversals.front().loss;
  receive_gradients(op, first);
  if (traversal.to_previous) {
    allocate(op, MemoryClass::Boundary, input_gradient(op.stage));
  } else if (drops_input_gradient(traversal)) {
    allocate(op, MemoryClass::Workspace, input_gradient(op.stage));
  }
}

/// The gradient of the output has been read for the last time; with the weight gradients the stash
/// has, too. Comes before the send, which may have to stand.
void OpLowering::end_traversal(const Op& op, const Traversal& traversal) {
  const StageCost& stage = inputs_.stages[op.stage];
  const bool held = op.loss != op.stage || inputs_.roles[op.stage].head;
  if (held) free(op, MemoryClass::Boundary, stage.output);
  if (!traversal.weights) return;
  for (std::size_t i = 0; i < inputs_.roles[op.stage].only_added.size(); ++i) {
    free(op, MemoryClass::Boundary, stage.output);
  }
  free(op, MemoryClass::Stash, stage.stash);
  if (inputs_.policy.in_flight > 1 && inputs_.policy.update_every > 1) {
    emit(Opcode::Record, event(window_events_[op.stage], inputs_.policy.update_every),
         op.micro_batch);
  }
}

/// An input gradient that nobody needs is made all the same, unless it is skipped.
bool OpLowering::drops_input_gradient(const Traversal& traversal) const {
  return !traversal.to_previous && !inputs_.strategy.skip_unneeded_input_gradients;
}

void OpLowering::receive_gradients(const Op& op, bool first) {
  const StageRole& role = inputs_.roles[op.stage];
  const bool list = inputs_.policy.kind == ScheduleKind::List;
  const bool last = op.loss == role.traversals.back().loss;
  int messages = op.loss > op.stage ? 1 : 0;
  if (list) {
    messages = first && role.traversals.back().loss > op.stage ? 1 : 0;
  } else if (last) {
    messages += static_cast<int>(std::count_if(role.only_added.begin(), role.only_added.end(),
                                               [&](int loss) { return loss > op.stage; }));
  }
  for (; messages > 0; --messages) {
    emit(Opcode::Receive,
         wiring_.channel(Message::Gradient, op.stage + 1, op.stage, op.micro_batch),
         op.micro_batch);
  }
}

void OpLowering::send_gradients(const Op& op, const Traversal& traversal) {
  const auto& traversals = inputs_.roles[op.stage].traversals;
  const bool list = inputs_.policy.kind == ScheduleKind::List;
  const bool any = std::any_of(traversals.begin(), traversals.end(),
                               [](const Traversal& t) { return t.to_previous; });
  if (!(list ? any && traversal.weights : traversal.to_previous)) return;
  emit(Opcode::Send, wiring_.channel(Message::Gradient, op.stage, op.stage - 1, op.micro_batch),
       op.micro_batch);
}

void OpLowering::update(const Op& op) {
  const auto& policy = inputs_.policy;
  if (policy.in_flight > 1 && policy.update_every > 1) {
    emit(Opcode::Wait, event(window_events_[op.stage], policy.update_every), op.micro_batch);
  }
  if (policy.barrier) {
    emit(Opcode::Record, event(barrier_event_, inputs_.schedule.stages), op.micro_batch);
    emit(Opcode::Wait, event(barrier_event_, inputs_.schedule.stages), op.micro_batch);
  }
  compute(op);
  if (policy.in_flight > 1 && policy.update_every > 1) {
    emit(Opcode::Record, event(update_events_[op.stage], 1), op.micro_batch);
  }
}

/// A micro-batch may begin once all updates are done that were due `in_flight` micro-batches
/// before. Another stream of the stage may have to do the last one.
void OpLowering::wait_for_updates(const Op& op) {
  const int window = inputs_.policy.update_every, in_flight = inputs_.policy.in_flight;
  if (in_flight == 1 || window == 1) return;
  const int before = op.micro_batch - in_flight;
  // The last micro-batch, at or before that one, which ends a window; below 0 there is none yet.
  const int due = before - ((before + 1) % window + window) % window;
  emit(Opcode::Wait, event(update_events_[op.stage], 1), due);
}

// The last stage hands its readout on at the begin of each period; the other stages take it over
// before the last micro-batch of that period, by when it has long arrived.
void OpLowering::exchange_readout(const Op& op) {
  const int period = inputs_.strategy.readout_every * inputs_.schedule.micro_batches;
  if (period == 0) return;
  CHECK(period > 1, "a readout period of one micro-batch would wait for itself");
  const int last = inputs_.schedule.stages - 1;
  if (op.stage == last && op.micro_batch % period == 0) {
    for (int stage = 0; stage < last; ++stage) {
      if (!inputs_.roles[stage].head) continue;
      const int taken_before = op.micro_batch + period - 1;
      emit(Opcode::Send, wiring_.channel(Message::Readout, last, stage, taken_before),
           op.micro_batch);
    }
  } else if (op.stage < last && inputs_.roles[op.stage].head &&
             op.micro_batch % period == period - 1) {
    emit(Opcode::Receive, wiring_.channel(Message::Readout, last, op.stage, op.micro_batch),
         op.micro_batch);
    free(op, MemoryClass::Boundary, inputs_.stages[op.stage].readout);
  }
}

void OpLowering::emit(Opcode code, int index, int micro_batch) {
  program_.instructions.push_back({code, index, micro_batch});
}

void OpLowering::compute(const Op& op) {
  const bool main_backward =
      (op.kind == OpKind::I || op.kind == OpKind::B || op.kind == OpKind::W) &&
      traversal_of(op).weights;
  compute(op, op.kind, cost_of(op), op.kind == OpKind::F || main_backward);
}

void OpLowering::compute(const Op& op, OpKind kind, OpCost cost, bool useful) {
  auto& known = ops_of_stage_[op.stage];
  auto found = std::find_if(known.begin(), known.end(), [&](int index) {
    const OpInfo& info = program_.ops[index];
    return info.kind == kind && info.loss == op.loss && info.duration == cost.time &&
           info.flops == cost.flops;
  });
  if (found == known.end()) {
    program_.ops.push_back({kind, op.stage, op.loss, useful, cost.time, cost.flops});
    known.push_back(static_cast<int>(program_.ops.size()) - 1);
    found = known.end() - 1;
  }
  emit(Opcode::Compute, *found, op.micro_batch);
}

void OpLowering::allocate(const Op& op, MemoryClass memory_class, Bytes bytes) {
  if (bytes > Bytes(0)) {
    emit(Opcode::Allocate, buffer(op.stage, memory_class, bytes), op.micro_batch);
  }
}

void OpLowering::free(const Op& op, MemoryClass memory_class, Bytes bytes) {
  if (bytes > Bytes(0)) {
    emit(Opcode::Free, buffer(op.stage, memory_class, bytes), op.micro_batch);
  }
}

int OpLowering::buffer(int stage, MemoryClass memory_class, Bytes bytes) {
  for (const int index : buffers_of_stage_[stage]) {
    const Buffer& known = program_.buffers[index];
    if (known.memory_class == memory_class && known.bytes == bytes) return index;
  }
  program_.buffers.push_back({memory_class, stage, bytes});
  buffers_of_stage_[stage].push_back(static_cast<int>(program_.buffers.size()) - 1);
  return buffers_of_stage_[stage].back();
}

int OpLowering::event(int& known, int recorders) {
  if (known < 0) {
    program_.events.push_back(
        {.recorders = recorders, .micro_batches = inputs_.policy.update_every});
    known = static_cast<int>(program_.events.size()) - 1;
  }
  return known;
}

const Traversal& OpLowering::traversal_of(const Op& op) const {
  for (const Traversal& traversal : inputs_.roles[op.stage].traversals) {
    if (traversal.loss == op.loss) return traversal;
  }
  CHECK(false, "an op for a loss that does not reach its stage");
}

OpCost OpLowering::cost_of(const Op& op) const {
  const StageCost& stage = inputs_.stages[op.stage];
  OpCost additions{inputs_.roles[op.stage].summed_gradients * stage.gradient_addition, Flops(0)};
  switch (op.kind) {
    case OpKind::F:
      return stage.forward;
    case OpKind::H:
      return stage.head;
    case OpKind::R:
      return stage.next_forward;
    case OpKind::I: {
      Traversal input_only = traversal_of(op);
      input_only.weights = false;
      return traversal_cost(stage, inputs_.strategy, input_only);
    }
    case OpKind::B:
      return additions += traversal_cost(stage, inputs_.strategy, traversal_of(op));
    case OpKind::W:
      return additions += stage.backward_weight;
    case OpKind::U:
      return {stage.update.time + stage.head_update.time, Flops(0)};
  }
  return {};
}

Bytes OpLowering::input_gradient(int stage) const {
  return stage > 0 ? inputs_.stages[stage - 1].output : Bytes(0);
}

}  // namespace interlock
