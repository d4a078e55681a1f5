// Attention of slices that another rank makes, and the messages for it.
// SPDX-License-Identifier: Apache-2.0
//
// Two ops that trade run layer by layer beside each other: in each layer the giver sends keys,
// values and queries, both attend to what is left to them, the maker sends outputs back, and the
// giver merges them with its own. So both ops begin when both are ready; what goes to the maker
// passes beside their kernels, and both wait for what comes back, a latency for each layer. It is
// written as one message each way. The maker holds what it receives for one layer, and both hold
// its answer; what the giver sends it keeps anyway.
//
// Example: forwards of slice 7 on rank 0 and slice 4 on rank 3 (sliced/slim_pipe.cc).
//   rank 0:  Record e, Wait e, Send request, F, Receive answer
//   rank 3:  Record e, Wait e, F, Receive request, Send answer
// Source: attn_forward_pair and attn_backward_pair in megatron/core/kv_cache/attention.py
// (kwai/Megatron-Kwai).
#include "sim/lower/op_lowering.h"

namespace interlock {

/// Returns the channel of a trade to who makes the attention, or back.
int OpLowering::trade_channel(const Op& op, const Trade& trade, bool answers) {
  const Op &from = answers ? trade.maker : trade.giver, &to = answers ? trade.giver : trade.maker;
  const Bytes bytes = answers ? trade.answer : trade.request;
  const std::array key = {op.kind == OpKind::F ? 0 : 1, answers ? 1 : 0, trade.giver.stage,
                          trade.maker.stage};
  const auto [entry, fresh] = trade_channels_.try_emplace({key, bytes}, -1);
  if (!fresh) return entry->second;
  Channel channel = {.cargo = Cargo::Context,
                     .from_rank = inputs_.schedule.rank_of_stage[from.stage],
                     .to_rank = inputs_.schedule.rank_of_stage[to.stage],
                     .from_stage = from.stage,
                     .to_stage = to.stage,
                     .sender_waits = answers,
                     .from_resident = !answers,
                     .bytes = bytes,
                     .held = answers ? trade.answer_held : trade.request_held};
  entry->second = wiring_.add_channel(channel, answers ? trade.layers : 1);
  return entry->second;
}

void OpLowering::begin_trade(const Op& op) {
  const std::optional<Trade> trade = costs_.trade(op);
  if (!trade) return;
  const std::array key = {op.kind == OpKind::F ? 0 : 1, trade->giver.stage, trade->maker.stage};
  int& known = trade_events_.try_emplace(key, -1).first->second;
  const int event = writer_.event(known, 2, 1);
  writer_.emit(Opcode::Record, event, trade->giver.micro_batch);
  writer_.emit(Opcode::Wait, event, trade->giver.micro_batch);
  const bool gives = op.trade.slices < 0;
  if (gives) writer_.emit(Opcode::Send, trade_channel(op, *trade, false), trade->giver.micro_batch);
}

void OpLowering::end_trade(const Op& op) {
  const std::optional<Trade> trade = costs_.trade(op);
  if (!trade) return;
  const bool gives = op.trade.slices < 0;
  writer_.emit(Opcode::Receive, trade_channel(op, *trade, gives), trade->giver.micro_batch);
  writer_.free(op, MemoryClass::Boundary, gives ? trade->answer_held : trade->request_held);
  if (gives) return;
  writer_.allocate(op, MemoryClass::Boundary, trade->answer_held);
  writer_.emit(Opcode::Send, trade_channel(op, *trade, true), trade->giver.micro_batch);
}

}  // namespace interlock
