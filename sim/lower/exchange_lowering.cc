// Pieces of ops, and the collectives between them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/exchange_lowering.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

namespace {

/// Turns of `count` that are due before piece `piece` of `pieces`, spread evenly.
int turns_before(int count, int piece, int pieces) {
  return static_cast<int>(std::int64_t{count} * piece / pieces);
}

/// Returns the kernels of `piece`, `turns` of whose layers have experts.
PassageChain chain_of(const ComputePiece& piece, int turns) {
  PassageChain chain = {.turns = turns, .back = piece.kind == OpKind::I || piece.kind == OpKind::B};
  if (turns == 0) {
    chain.times.apart = piece.cost.time * piece.share;
  } else if (piece.delayed) {
    OpCost now = piece.cost;
    now -= *piece.delayed;
    chain.times = now.placed(piece.share);
    chain.delayed = piece.delayed->placed(piece.share);
  } else {
    chain.times = piece.cost.placed(piece.share);
  }
  return chain;
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
  std::vector<Progress> ops = {begin(op, piece)};
  run(steps_alone(chain_of(piece, ops.front().turns)), ops);
}

void ExchangeLowering::compute_pair(const Op& forward, const ComputePiece& first,
                                    const Op& backward, const ComputePiece& second) {
  std::vector<Progress> ops = {begin(forward, first), begin(backward, second)};
  run(steps_of_pair(chain_of(first, ops[0].turns), chain_of(second, ops[1].turns)), ops);
}

ExchangeLowering::Progress ExchangeLowering::begin(const Op& op, const ComputePiece& piece) {
  Progress progress = {.op = &op,
                       .parts = parts_of(op, piece),
                       .info = {.kind = piece.kind,
                                .stage = op.stage,
                                .loss = op.loss,
                                .useful = piece.useful,
                                .flops = piece.cost.flops,
                                .compute_bound = piece.cost.compute_bound,
                                .memory_bound = piece.cost.memory_bound,
                                .messages = piece.cost.messages,
                                .counted = piece.cost.counted},
                       .alone = piece.cost.time * piece.share};
  for (const Part& part : progress.parts) {
    if (passes(part.purpose)) progress.turns = part.exchange.count;
    const bool whole = part.purpose == Purpose::Gather && !brevity_.once;
    if (whole) progress.modules = piece.modules;
  }
  return progress;
}

/// Cuts the op's kernels, which are `steps` of its steps, so that each other exchange of the most
/// frequent ones has a piece of its own.
void ExchangeLowering::cut(Progress& progress, int steps) {
  int most = progress.modules;
  for (const Part& part : progress.parts) {
    if (!passes(part.purpose)) most = std::max(most, part.exchange.count);
  }
  steps = std::max(steps, 1);
  progress.cuts = (most + steps - 1) / steps;
  progress.pieces = progress.cuts * steps;
  progress.info.flops = progress.info.flops / progress.pieces;
  progress.info.counted = progress.info.counted / progress.pieces;
}

void ExchangeLowering::run(const std::vector<PassageStep>& steps, std::vector<Progress>& ops) {
  clock_ = {};
  bool known = true;
  std::vector<int> kernels(ops.size());
  for (const PassageStep& step : steps) {
    if (step.kind == PassageStep::Kind::Kernels) ++kernels[static_cast<std::size_t>(step.op)];
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    cut(ops[i], kernels[i]);
    for (const Part& part : ops[i].parts) known = known && part.inside;
  }
  Progress* at_work = &ops.front();
  for (const PassageStep& step : steps) {
    Progress& next = ops[static_cast<std::size_t>(step.op)];
    if (&next != at_work) hand_over(*at_work, next, known);
    at_work = &next;
    step.kind == PassageStep::Kind::Kernels ? run_kernels(step.time, next) : pass(step, next);
  }
  hand_over(*at_work, *at_work, true);
  for (Progress& progress : ops) {
    progress.since = clock_.time;
    write_out(progress);
  }
}

/// Hands the device to the other op of a pair. What is known beforehand is written in the end, one
/// op after the other.
void ExchangeLowering::hand_over(Progress& from, Progress& to, bool known) {
  if (!known) write_out(from);
  from.earlier += clock_.time - from.since;
  to.since = clock_.time;
}

/// Runs the kernels of a step, cut where other exchanges have their turns.
void ExchangeLowering::run_kernels(Seconds time, Progress& progress) {
  const Seconds kernels = time / progress.cuts;
  const bool equal = progress.turns == 0;
  for (int i = 0; i < progress.cuts; ++i, ++progress.piece) {
    gather_weights(progress);
    for (Part& part : progress.parts) {
      if (!passes(part.purpose)) before_piece(part, progress);
    }
    clock_.time += kernels;
    progress.kernels += kernels;
    progress.unwritten += equal ? 1 : kernels / progress.alone * progress.pieces;
    for (Part& part : progress.parts) {
      if (!passes(part.purpose)) after_piece(part, progress);
    }
  }
}

/// Sends tokens to experts, or back, or waits until they have arrived.
void ExchangeLowering::pass(const PassageStep& step, Progress& progress) {
  const bool begins = step.kind == PassageStep::Kind::Begin;
  const Purpose way = step.way == TokenWay::There ? Purpose::There : Purpose::Back;
  for (Part& part : progress.parts) {
    if (part.purpose != way) continue;
    if (!part.inside) {
      write_out(progress);
      put(begins ? Opcode::Record : Opcode::Wait, *progress.op, part, step.turn);
    } else if (begins) {
      pass_inside(part, progress);
    } else {
      clock_.time = std::max(clock_.time, part.done);
    }
  }
}

ExchangeLowering::Purpose ExchangeLowering::purpose_of(const Exchange& exchange) {
  if (exchange.way == TokenWay::There) return Purpose::There;
  if (exchange.way == TokenWay::Back) return Purpose::Back;
  return exchange.overlapped ? Purpose::Beside : Purpose::Apart;
}

std::vector<ExchangeLowering::Part> ExchangeLowering::parts_of(const Op& op,
                                                               const ComputePiece& piece) {
  std::vector<Part> parts;
  const int rank = inputs_.schedule.rank_of_stage[op.stage];
  const auto add = [&](Purpose purpose, const Exchange& exchange, int window) {
    const Mesh& mesh = mesh_of_layers(inputs_, rank, exchange.layout);
    const bool to_host = is_host(exchange.axis);
    if ((group_size(mesh, exchange.axis) == 1 && !to_host) || is_empty(exchange)) return;
    Part& part = parts.emplace_back(part_of(op, purpose, exchange));
    part.window = window;
    if (!sends(purpose)) part.kind = piece.kind;
    const bool own = purpose == Purpose::Apart || purpose == Purpose::Beside || passes(purpose);
    // Copies of updates and of other micro-batches take the same way.
    part.inside = own && !to_host && brevity_.inside[static_cast<int>(exchange.axis)];
    if (to_host && part.exchange.count > 1) {
      part.skipped = exchange.axis == MeshAxis::ToHost ? 0 : part.exchange.count - 1;
    }
  };
  for (const WeightGather& gather : piece.gathers) {
    const std::size_t before = parts.size();
    add(Purpose::Gather, gather.exchange, 1);
    if (parts.size() == before) continue;
    parts.back().places = brevity_.once ? std::vector<int>(1, 0) : gather.places;
    parts.back().begins = brevity_.once ? std::vector<int>(1, 0) : gather.begins;
  }
  for (const Exchange& exchange : piece.cost.exchanges) {
    add(purpose_of(exchange), exchange, 1);
  }
  for (const Exchange& send : piece.sends) {
    const int window = piece.sends_all ? inputs_.policy.update_every : 1;
    add(piece.sends_all ? Purpose::Send : Purpose::SendOne, send, window);
  }
  return parts;
}

/// Waits for the weights of the module whose kernels come next, and begins to gather those that may
/// come beside these kernels.
void ExchangeLowering::gather_weights(Progress& progress) {
  const Op& op = *progress.op;
  const int piece = progress.piece, pieces = progress.pieces, modules = progress.modules;
  const int place = turns_before(modules, piece, pieces);
  if (piece > 0 && place == turns_before(modules, piece - 1, pieces)) return;
  for (const bool due : {true, false}) {
    for (const Part& part : progress.parts) {
      if (std::ranges::binary_search(part.places, place) != due) continue;
      const auto [first, last] = std::ranges::equal_range(part.begins, place);
      if (first == last && !due) continue;
      write_out(progress);
      for (auto begun = first; begun != last; ++begun) {
        put(Opcode::Record, op, part, part.places[begun - part.begins.begin()]);
      }
      if (due) put(Opcode::Wait, op, part, place);
    }
  }
}

void ExchangeLowering::before_piece(Part& part, Progress& progress) {
  const Op& op = *progress.op;
  const int piece = progress.piece, pieces = progress.pieces;
  const int count = part.exchange.count, turn = turns_before(count, piece, pieces);
  if (turn == part.skipped) return;
  const bool begins = piece == 0 || turn != turns_before(count, piece - 1, pieces);
  if (!begins || part.purpose != Purpose::Beside) return;
  if (part.inside) return pass_inside(part, progress);
  write_out(progress);
  put(Opcode::Record, op, part, turn);
}

void ExchangeLowering::after_piece(Part& part, Progress& progress) {
  const Op& op = *progress.op;
  const int piece = progress.piece, pieces = progress.pieces;
  const int count = part.exchange.count, turn = turns_before(count, piece, pieces);
  if (turn == part.skipped) return;
  const bool ends = turn != turns_before(count, piece + 1, pieces);
  if (!ends || part.purpose == Purpose::Gather) return;
  if (part.inside) {
    if (part.purpose == Purpose::Apart) pass_inside(part, progress);
    clock_.time = std::max(clock_.time, part.done);
    return;
  }
  write_out(progress);
  // A bucket can leave only when the one before it has made room.
  const bool reused = part.gives_back && waits_for_buckets(inputs_, inputs_.stages[op.stage]);
  if (reused && turn > 0) put(Opcode::Wait, op, part, turn - 1);
  if (part.purpose != Purpose::Beside) put(Opcode::Record, op, part, turn);
  const bool later = sends(part.purpose) &&
                     (part.purpose == Purpose::Send || inputs_.data_parallel.overlap_gradients);
  if (!later) put(Opcode::Wait, op, part, turn);
}

/// A turn of an exchange whose times are known: after those before it, and not before now.
void ExchangeLowering::pass_inside(Part& part, Progress& progress) {
  const Collective& collective = program_.collectives[part.collective];
  Seconds& free = clock_.communicator_free[collective.communicator];
  free = std::max(free, clock_.time) + collective.occupancy + collective.latency;
  part.done = free;
  ++progress.inside[part.collective];
}

/// A Compute of what has passed since the last one.
void ExchangeLowering::write_out(Progress& progress) {
  const Seconds passed = progress.earlier + (clock_.time - progress.since);
  if (progress.unwritten == 0 && passed == Seconds(0)) return;
  OpInfo info = progress.info;
  info.duration = passed;
  info.communication = info.duration - progress.kernels;
  if (progress.inside.empty()) info.communication = Seconds(0);  // but for rounding
  info.flops = info.flops * progress.unwritten;
  info.counted = info.counted * progress.unwritten;
  const double kernels = info.duration > Seconds(0) ? progress.kernels / info.duration : 0;
  info.compute_bound *= kernels;
  info.memory_bound *= kernels;
  info.messages *= kernels;
  info.inside.assign(progress.inside.begin(), progress.inside.end());
  writer_.compute(*progress.op, info);
  progress.since = clock_.time;
  progress.earlier = progress.kernels = Seconds(0);
  progress.unwritten = 0;
  progress.inside.clear();
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

void ExchangeLowering::answer(const Op& op, const Exchange& exchange, const Exchange& answer,
                              int window) {
  Part first = part_of(op, Purpose::Send, exchange), second = part_of(op, Purpose::Send, answer);
  first.window = second.window = window;
  for (int turn = 0; turn < first.exchange.count; ++turn) {
    const int answered = event_of(op, first, turn);
    program_.events[answered].next = event_of(op, second, turn);
  }
}

void ExchangeLowering::begin_host_copy(const Op& op, const Exchange& copy) {
  put(Opcode::Record, op, part_of(op, Purpose::Copy, copy), 0);
}

void ExchangeLowering::end_host_copy(const Op& op, const Exchange& copy) {
  put(Opcode::Wait, op, part_of(op, Purpose::Copy, copy), 0);
}

ExchangeLowering::Part ExchangeLowering::part_of(const Op& op, Purpose purpose,
                                                 const Exchange& exchange) {
  const int rank = inputs_.schedule.rank_of_stage[op.stage];
  Part part = {purpose, exchange,
               wiring_.collective(exchange, rank, op.stage % stages_of_replica_)};
  if (brevity_.once) part.exchange.count = 1;
  if (sends(purpose) && is_buffered(op.stage, exchange)) {
    part.gives_back = MemoryClass::Communication;
  } else if (purpose == Purpose::Copy && exchange.axis == MeshAxis::ToHost) {
    part.gives_back = MemoryClass::Stash;
  } else if (purpose == Purpose::Copy) {
    part.gives_back = MemoryClass::HostStash;
  }
  return part;
}

/// Every turn of an exchange within an op is an event of its own; members of the group share it.
int ExchangeLowering::event_of(const Op& op, const Part& part, int turn) {
  const bool sent = part.purpose == Purpose::Send, copied = part.purpose == Purpose::Copy;
  const Bytes bytes = part.exchange.bytes;
  // An op that computes something again first has two pieces, one of which may be like another op.
  const bool later = sent || copied;
  const Key key = {.collective = part.collective,
                   .op = later ? 0 : static_cast<int>(op.kind),
                   .kind = static_cast<int>(part.kind),
                   .loss = later ? 0 : op.loss % stages_of_replica_,
                   .purpose = static_cast<int>(part.purpose),
                   .turn = turn,
                   .window = part.window};
  const auto [entry, fresh] = events_.try_emplace(key, static_cast<int>(program_.events.size()));
  if (fresh) {
    Event event = {.recorders = wiring_.members(part.collective),
                   .micro_batches = part.window,
                   .collective = part.collective};
    if (part.gives_back) {
      event.gives_back = writer_.buffer(op.stage, *part.gives_back, bytes);
    }
    // Others in flight may go through theirs while one waits.
    event.kept += std::max(0, inputs_.policy.in_flight);
    if (copied) {
      // Waited for as many micro-batches later as are in flight. One stash at a time leaves: what
      // did not would fill the memory that it should leave.
      event.kept += 2 * inputs_.schedule.micro_batches + 4 * inputs_.schedule.stages;
      event.in_turn = part.exchange.axis == MeshAxis::ToHost;
    }
    program_.events.push_back(event);
  }
  return entry->second;
}

int ExchangeLowering::event_of(const Op& op, const Exchange& exchange, VocabularyExchange what) {
  const int collective = wiring_.collective(exchange, inputs_.schedule.rank_of_stage[op.stage], 0);
  const Key key = {.collective = collective, .purpose = -1 - static_cast<int>(what)};
  const auto [entry, fresh] = events_.try_emplace(key, static_cast<int>(program_.events.size()));
  if (!fresh) return entry->second;
  Event event = {.collective = collective};
  if (exchange.kind == CollectiveKind::AllReduce) {
    event.recorders = wiring_.members(collective);
    // Every rank gives back as much as this one.
    event.gives_back = writer_.buffer(op.stage, MemoryClass::Communication, exchange.bytes);
  }
  event.kept += 4 * inputs_.schedule.stages;  // embeddings come before those forwards
  // Logits of a slice are waited for when all slices behind it have gone back.
  if (inputs_.schedule.slices > 1) event.kept += 3 * inputs_.schedule.slices;
  program_.events.push_back(event);
  return entry->second;
}

void ExchangeLowering::put(Opcode code, const Op& op, const Part& part, int turn) {
  const int event = event_of(op, part, turn);
  if (code == Opcode::Record && sends(part.purpose) && part.gives_back) {
    writer_.allocate(op, *part.gives_back, part.exchange.bytes);
  }
  writer_.emit(code, event, op.micro_batch);
}

}  // namespace interlock
