// Pieces of ops, and the collectives between them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/run/exchange_lowering.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

namespace {

/// Turns of `count` that are due before piece `piece` of `pieces`, spread evenly.
int turns_before(int count, int piece, int pieces) {
  return static_cast<int>(std::int64_t{count} * piece / pieces);
}

}  // namespace

ExchangeLowering::ExchangeLowering(const LowerInputs& inputs, const Brevity& brevity,
                                   Wiring& wiring, InstructionWriter& writer, Program& program)
    : inputs_(inputs),
      brevity_(brevity),
      wiring_(wiring),
      writer_(writer),
      program_(program),
      stages_of_replica_(inputs.schedule.stages / inputs.schedule.replicas) {}

void ExchangeLowering::compute(const Op& op, const ComputePiece& piece) {
  OpInfo info = {.kind = piece.kind,
                 .stage = op.stage,
                 .loss = op.loss,
                 .useful = piece.useful,
                 .duration = piece.cost.time * piece.share,
                 .flops = piece.cost.flops};
  const std::vector<Part> parts = parts_of(op, piece, info);
  int pieces = 1;
  for (const Part& part : parts) pieces = std::max(pieces, part.exchange.count);
  info.duration = (info.duration + info.communication) / pieces;
  info.communication = info.communication / pieces;
  info.flops = info.flops / pieces;
  for (auto& [collective, count] : info.inside) count /= pieces;
  for (int i = 0; i < pieces; ++i) {
    for (const Part& part : parts) before_piece(op, part, i, pieces);
    writer_.compute(op, info);
    for (const Part& part : parts) after_piece(op, part, i, pieces);
  }
}

/// What must be written out; what need not be is added to `info`.
std::vector<ExchangeLowering::Part> ExchangeLowering::parts_of(const Op& op,
                                                               const ComputePiece& piece,
                                                               OpInfo& info) {
  std::vector<Part> parts;
  const auto add = [&](Purpose purpose, const Exchange& exchange, int window) {
    if (group_size(inputs_.mesh, exchange.axis) == 1 || exchange.bytes <= Bytes(0)) return;
    parts.push_back(part_of(op, purpose, exchange));
    parts.back().window = window;
    if (purpose != Purpose::Send) parts.back().kind = piece.kind;
  };
  for (const Exchange& gather : piece.gathers) add(Purpose::Gather, gather, 1);
  for (const Exchange& exchange : piece.cost.exchanges) {
    if (brevity_.inside[static_cast<int>(exchange.axis)]) continue;
    add(exchange.overlapped ? Purpose::Beside : Purpose::Apart, exchange, 1);
  }
  for (const Exchange& send : piece.sends) add(Purpose::Send, send, piece.sends_window);
  info.communication = wait_inside(op, piece, info);
  return parts;
}

/// How long the op waits for exchanges that are part of it.
Seconds ExchangeLowering::wait_inside(const Op& op, const ComputePiece& piece, OpInfo& info) {
  Seconds apart(0), beside(0);
  for (const Exchange& exchange : piece.cost.exchanges) {
    if (!brevity_.inside[static_cast<int>(exchange.axis)]) continue;
    if (group_size(inputs_.mesh, exchange.axis) == 1 || exchange.bytes <= Bytes(0)) continue;
    const Part part = part_of(op, Purpose::Apart, exchange);
    const Collective& collective = program_.collectives[part.collective];
    const Seconds whole = exchange.count * (collective.occupancy + collective.latency);
    (exchange.overlapped ? beside : apart) += whole;
    info.inside.push_back({part.collective, exchange.count});
  }
  return apart + std::max(Seconds(0), beside - piece.cost.time * piece.share);
}

void ExchangeLowering::before_piece(const Op& op, const Part& part, int piece, int pieces) {
  const int count = part.exchange.count, turn = turns_before(count, piece, pieces);
  const bool begins = piece == 0 || turn != turns_before(count, piece - 1, pieces);
  if (!begins) return;
  if (part.purpose == Purpose::Beside) put(Opcode::Record, op, part, turn);
  if (part.purpose != Purpose::Gather) return;
  // So many are on their way while the kernels before them run.
  const int ahead = inputs_.data_parallel.prefetch;
  for (int next = turn == 0 ? 0 : turn + ahead; next <= std::min(turn + ahead, count - 1); ++next) {
    put(Opcode::Record, op, part, next);
  }
  put(Opcode::Wait, op, part, turn);
}

void ExchangeLowering::after_piece(const Op& op, const Part& part, int piece, int pieces) {
  const int count = part.exchange.count, turn = turns_before(count, piece, pieces);
  const bool ends = turn != turns_before(count, piece + 1, pieces);
  if (!ends || part.purpose == Purpose::Gather) return;
  if (part.purpose != Purpose::Beside) put(Opcode::Record, op, part, turn);
  if (part.purpose != Purpose::Send) put(Opcode::Wait, op, part, turn);
}

void ExchangeLowering::begin(const Op& op, const std::vector<Exchange>& exchanges, int window) {
  for (const Exchange& exchange : exchanges) {
    Part part = part_of(op, Purpose::Send, exchange);
    part.window = window;
    for (int turn = 0; turn < part.exchange.count; ++turn) put(Opcode::Record, op, part, turn);
  }
}

void ExchangeLowering::end(const Op& op, const std::vector<Exchange>& exchanges, int window,
                           int micro_batch) {
  Op at = op;
  at.micro_batch = micro_batch;
  for (const Exchange& exchange : exchanges) {
    Part part = part_of(op, Purpose::Send, exchange);
    part.window = window;
    for (int turn = 0; turn < part.exchange.count; ++turn) put(Opcode::Wait, at, part, turn);
  }
}

ExchangeLowering::Part ExchangeLowering::part_of(const Op& op, Purpose purpose,
                                                 const Exchange& exchange) {
  const int rank = inputs_.schedule.rank_of_stage[op.stage];
  Part part = {purpose, exchange,
               wiring_.collective(exchange, rank, op.stage % stages_of_replica_)};
  if (brevity_.once) part.exchange.count = 1;
  return part;
}

/// Every turn of an exchange within an op is an event of its own; members of the group share it.
void ExchangeLowering::put(Opcode code, const Op& op, const Part& part, int turn) {
  const bool sent = part.purpose == Purpose::Send;
  const Key key = {.collective = part.collective,
                   .kind = static_cast<int>(part.kind),
                   .loss = sent ? 0 : op.loss % stages_of_replica_,
                   .purpose = static_cast<int>(part.purpose),
                   .turn = turn,
                   .window = part.window};
  const auto [entry, fresh] = events_.try_emplace(key, static_cast<int>(program_.events.size()));
  if (fresh) {
    program_.events.push_back({.recorders = wiring_.members(part.collective),
                               .micro_batches = part.window,
                               .collective = part.collective});
  }
  writer_.emit(code, entry->second, op.micro_batch);
}

}  // namespace interlock
