// Ops on a rank's part of the vocabulary, and what all ranks exchange for them.
// SPDX-License-Identifier: Apache-2.0
//
// Outline, of a micro-batch under OneBarrier (TwoBarriers: what differs).
//   E on every rank; the sum of all outputs; F on the first stage
//   F on the last stage; its output to all ranks; S on every rank; the sum of logits, and of the
//     gradients that S made; B on the last stage, and T on every rank
//     (the sum of logits; T on every rank; the sum of gradients; B on the last stage)
//   B on the first stage; its gradient to all ranks; G on every rank
// Sums have a communicator, and broadcasts of each rank that sends some; in a V the first rank has
// both ends of the model. A broadcast leaves when its sender has made it:
// those who receive it join it a whole op before they need it, so that the sender comes last, and
// none of their kernels waits for it before S or G. What ranks send in a sum is held until that is
// done; what a broadcast brings is held from the op before the one that reads it, but for the first
// S of a step, and G after G at the end of 1F1B, where stashes are few. What a broadcast takes from
// its own sender is not held from there to the S or G that reads it: the first rank of a V has
// other ops in between, and an output or a gradient more (hidden, of one micro-batch each) than is
// counted.
// Source: Yeung et al., arXiv 2411.05288, section 4, and sail-sg/VocabularyParallelism.
#include "sim/lower/op_lowering.h"

namespace interlock {

/// Records `what` of the micro-batch of `op`, or waits for it.
void OpLowering::emit_of_vocabulary(Opcode code, const Op& op, VocabularyExchange what) {
  using enum VocabularyExchange;
  const VocabularyCost& cost = costs_.of_stage(op).vocabulary;
  const bool sums = what == Embedded || what == Logits || what == HiddenGradient;
  const std::vector<int>& ranks = inputs_.schedule.rank_of_stage;
  const int first = costs_.first_of_replica(op.stage), last = costs_.last_of_replica(op.stage);
  const bool v = ranks[first] == ranks[last];
  const MeshAxis from = what == Hidden && !v ? MeshAxis::FromLast : MeshAxis::FromFirst;
  Exchange exchange = {.kind = sums ? CollectiveKind::AllReduce : CollectiveKind::Broadcast,
                       .axis = sums ? MeshAxis::Pipeline : from,
                       .bytes = what == Logits ? cost.statistics : cost.hidden};
  if (what == Logits && inputs_.policy.vocabulary == VocabularySplit::OneBarrier) {
    exchange.bytes += cost.hidden;
  }
  if (is_empty(exchange)) return;
  if (sums && code == Opcode::Record) {
    writer_.allocate(op, MemoryClass::Communication, exchange.bytes);
  }
  writer_.emit(code, exchanges_.event_of(op, exchange, what), op.micro_batch);
}

/// Returns whether `op` reads what another rank broadcasts.
bool OpLowering::reads_broadcast(const Op& op) const {
  const std::vector<int>& ranks = inputs_.schedule.rank_of_stage;
  const int last = costs_.last_of_replica(op.stage), first = costs_.first_of_replica(op.stage);
  return (op.kind == OpKind::S && ranks[op.stage] != ranks[last]) ||
         (op.kind == OpKind::G && ranks[op.stage] != ranks[first]);
}

void OpLowering::receive_ahead(const Op& next) {
  if (!divides_vocabulary() || !reads_broadcast(next)) return;
  writer_.allocate(next, MemoryClass::Communication, costs_.of_stage(next).vocabulary.hidden);
  received_.emplace(next.kind, next.micro_batch);
}

/// Waits for `what`, if another rank sends it, and takes it over from the buffer that it came to.
void OpLowering::wait_for_broadcast(const Op& op, VocabularyExchange what) {
  if (!reads_broadcast(op)) return;
  emit_of_vocabulary(Opcode::Wait, op, what);
  if (received_.erase({op.kind, op.micro_batch}) == 0) return;
  writer_.free(op, MemoryClass::Communication, costs_.of_stage(op).vocabulary.hidden);
}

void OpLowering::begin_of_vocabulary(const Op& op) {
  const VocabularyCost& cost = costs_.of_stage(op).vocabulary;
  switch (op.kind) {
    case OpKind::S:
      wait_for_broadcast(op, VocabularyExchange::Hidden);
      writer_.allocate(op, MemoryClass::Stash, cost.kept);
      return writer_.allocate(op, MemoryClass::Workspace, cost.workspace);
    case OpKind::T:
      emit_of_vocabulary(Opcode::Wait, op, VocabularyExchange::Logits);
      return writer_.allocate(op, MemoryClass::Workspace, cost.workspace);
    case OpKind::G:
      wait_for_broadcast(op, VocabularyExchange::EmbeddedGradient);
      return writer_.allocate(op, MemoryClass::Workspace, cost.hidden);
    default:
      return;
  }
}

void OpLowering::end_of_vocabulary(const Op& op) {
  const VocabularyCost& cost = costs_.of_stage(op).vocabulary;
  switch (op.kind) {
    case OpKind::E:
      return emit_of_vocabulary(Opcode::Record, op, VocabularyExchange::Embedded);
    case OpKind::S:
      writer_.free(op, MemoryClass::Workspace, cost.workspace);
      return emit_of_vocabulary(Opcode::Record, op, VocabularyExchange::Logits);
    case OpKind::T:
      writer_.free(op, MemoryClass::Workspace, cost.workspace);
      writer_.free(op, MemoryClass::Stash, cost.kept);
      if (inputs_.policy.vocabulary == VocabularySplit::TwoBarriers) {
        emit_of_vocabulary(Opcode::Record, op, VocabularyExchange::HiddenGradient);
      }
      return;
    case OpKind::G:
      return writer_.free(op, MemoryClass::Workspace, cost.hidden);
    default:
      return;
  }
}

/// Writes what a forward of the first stage, or a backward of the last, waits for.
void OpLowering::wait_for_vocabulary(const Op& op) {
  if (!divides_vocabulary()) return;
  if (op.kind == OpKind::F && op.stage == costs_.first_of_replica(op.stage)) {
    emit_of_vocabulary(Opcode::Wait, op, VocabularyExchange::Embedded);
  }
  if (op.kind != OpKind::F && op.stage == costs_.last_of_replica(op.stage)) {
    const bool one = inputs_.policy.vocabulary == VocabularySplit::OneBarrier;
    emit_of_vocabulary(Opcode::Wait, op,
                       one ? VocabularyExchange::Logits : VocabularyExchange::HiddenGradient);
  }
}

/// Writes what a forward of the last stage, or a backward of the first, sends to all ranks.
void OpLowering::hand_to_vocabulary(const Op& op) {
  if (!divides_vocabulary()) return;
  if (op.kind == OpKind::F && op.stage == costs_.last_of_replica(op.stage)) {
    emit_of_vocabulary(Opcode::Record, op, VocabularyExchange::Hidden);
  }
  const bool sends_gradient = op.kind == OpKind::I || op.kind == OpKind::B;
  if (sends_gradient && op.stage == costs_.first_of_replica(op.stage)) {
    emit_of_vocabulary(Opcode::Record, op, VocabularyExchange::EmbeddedGradient);
  }
}

}  // namespace interlock
