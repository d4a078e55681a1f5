// Turns of a ring: which chunks pass by a rank when, and where gradients are added up.
// SPDX-License-Identifier: Apache-2.0
//
// Three flows go from rank r to rank r + 1, one chunk of each a turn: weights for forwards, weights
// for backwards, and sums of gradients. A step has n = m + p - 1 turns of each, from 0 on.
//   forward:    in turn t rank r has chunk (t - r) mod p; its own in turns 0, p, 2p, ..., which it
//               takes from where it keeps it, so that the rank before sends nothing for these
//   backward:   in turn t rank r has chunk (r - 1 - t) mod p; that of turn 0 it has kept when it
//               came by for forwards, in turn 2r - 1 mod p
//   gradients:  with the chunk of the backward: who has it adds its own to what came
// So in turns r to r + m - 1 rank r has the chunks that its micro-batches need, in order; in those
// before and after it hands chunks on. Weights leave beside the kernels of their turn, gradients
// behind them. At the end rank r has the sum of chunk r + 1 mod p, which rank p - 1 - r owns: the
// two exchange theirs.
//
// The order of turns on a rank is that of its ops. Turns of backwards without kernels come before
// the last r forwards of its first micro-batch, those of forwards behind the first p - 1 - r
// backwards of its last one, and others at either end, as in the authors' code. Chunks travel on to
// the last turn, needed or not.
//
// A chunk leaves when both ranks have come to its turn: the one has it, the other has a buffer free
// for it. Neither begins its next turn of the flow before what it sends has left and what it is
// sent has come. Messages of a rank leave in the order of its turns, from a line beside its ops:
//   ops, turn t   Receive (from t - 1)  Wait left (t - 1)  Record met in (t)  Record met out (t)
//   line          Wait met (t)  Send (t)  Record left (t)
//
// Example: rank 1 of 3, a micro-batch each. <c and c> take and send weights of chunk c for
// forwards, [c and c] for backwards, (c and c) gradients.
//   2>  <0 0> F0  <1 F1  0] 0)  2> F2  [2 2] B2 (2 2)  <0  [1 1] B1 (1 1)  [0 0] B0 (0 0)  [2 (2
#include "sim/lower/ops/ring_lowering.h"

#include "base/error.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

RingLowering::RingLowering(const LowerInputs& inputs, Wiring& wiring, Program& program)
    : inputs_(inputs),
      wiring_(wiring),
      program_(program),
      ranks_(is_ring(inputs) ? inputs.schedule.copies : 1),
      rounds_(inputs.schedule.micro_batches / ranks_),
      turns_(inputs.schedule.micro_batches + ranks_ - 1) {}

void RingLowering::before(const Op& op) {
  if (ranks_ == 1) return;
  const int rank = rank_of(op), chunk = chunk_of(op), round = round_of(op);
  if (op.kind == OpKind::B) {
    return begin_backward_turn(op, rank + round * ranks_ + ranks_ - 1 - chunk);
  }
  if (op.kind != OpKind::F) return;
  if (round == 0 && chunk == 0) {
    for (int turn = 0; turn < rank; ++turn) forward_turn(op, turn);
  }
  if (const int turn = chunk - (ranks_ - rank); round == 0 && turn >= 0) {
    begin_backward_turn(op, turn);
    end_backward_turn(op, turn);
  }
  forward_turn(op, rank + round * ranks_ + chunk);
}

void RingLowering::after(const Op& op) {
  if (ranks_ == 1 || op.kind != OpKind::B) return;
  const int rank = rank_of(op), round = round_of(op), done = ranks_ - 1 - chunk_of(op);
  end_backward_turn(op, rank + round * ranks_ + done);
  if (round < rounds_ - 1) return;
  const int end = rank + rounds_ * ranks_;  // of the turns with kernels
  if (end + done < turns_) forward_turn(op, end + done);
  if (done < ranks_ - 1) return;
  for (int turn = end; turn < turns_; ++turn) {
    begin_backward_turn(op, turn);
    end_backward_turn(op, turn);
  }
  bring_home(op);
}

void RingLowering::add_line(int index) {
  if (ranks_ == 1) return;
  Rank& rank = program_.ranks[index];
  const Stream ops = program_.streams[rank.first_stream];
  CHECK(rank.streams == 1 && ops.lead == 0 && ops.tail == 0, "a loop over steps");
  Stream line = ops;
  line.first = static_cast<int>(program_.segments.size());
  line.count = 0;
  for (int s = ops.first; s < ops.first + ops.count; ++s) {
    Segment segment = program_.segments[s];
    const int first = segment.first, end = first + segment.count;
    segment.first = static_cast<int>(program_.instructions.size());
    for (int i = first; i < end; ++i) write_departure(index, program_.instructions[i]);
    segment.count = static_cast<int>(program_.instructions.size()) - segment.first;
    if (segment.count == 0) continue;
    program_.segments.push_back(segment);
    ++line.count;
  }
  program_.streams.push_back(line);
  ++rank.streams;
}

/// Writes what the line of `rank` does when its ops have come to `instruction`.
void RingLowering::write_departure(int rank, Instruction instruction) {
  const auto [code, event, micro_batch] = instruction;
  const auto way = ways_of_meetings_.find(event);
  if (code != Opcode::Record || way == ways_of_meetings_.end()) return;
  const Way& leaving = way->second;
  if (program_.channels[leaving.channel].from_rank != rank) return;
  emit(Opcode::Wait, leaving.met, micro_batch);
  emit(Opcode::Send, leaving.channel, micro_batch);
  emit(Opcode::Record, leaving.left, micro_batch);
}

void RingLowering::forward_turn(const Op& op, int turn) {
  begin_turn(op, Flow::Forward, turn);
  hand_on(op, Flow::Forward, turn);
}

void RingLowering::begin_backward_turn(const Op& op, int turn) {
  begin_turn(op, Flow::Backward, turn);
  hand_on(op, Flow::Backward, turn);
}

void RingLowering::end_backward_turn(const Op& op, int turn) {
  begin_turn(op, Flow::Gradients, turn);
  hand_on(op, Flow::Gradients, turn);
}

bool RingLowering::hands_on(Flow flow, int turn) const {
  const bool own_next = flow == Flow::Forward && (turn + 1) % ranks_ == 0;
  return 0 <= turn && turn < turns_ - 1 && !own_next;
}

/// Waits for both ends of what the turn before has handed on.
void RingLowering::begin_turn(const Op& op, Flow flow, int turn) {
  if (!hands_on(flow, turn - 1)) return;
  take(message(op, flow, before(rank_of(op)), turn - 1), message(op, flow, rank_of(op), turn - 1));
}

void RingLowering::hand_on(const Op& op, Flow flow, int turn) {
  if (!hands_on(flow, turn)) return;
  meet(message(op, flow, before(rank_of(op)), turn), message(op, flow, rank_of(op), turn));
}

/// Exchanges sums with the owner of the one that has come to the rank of `op`, which has that of
/// the rank's own chunk.
void RingLowering::bring_home(const Op& op) {
  const int rank = rank_of(op), owner = ranks_ - 1 - rank;
  if (owner == rank) return;
  const int micro_batch = step_of(op) + inputs_.schedule.micro_batches - 1;
  const auto home = [&](int from, int to) {
    return Message{way({Flow::Home, from, to, chunk_of_rank(to, ranks_), false}), micro_batch};
  };
  const Message in = home(owner, rank), out = home(rank, owner);
  meet(in, out);
  take(in, out);
}

void RingLowering::meet(const Message& in, const Message& out) {
  emit(Opcode::Record, in.way.met, in.micro_batch);
  emit(Opcode::Record, out.way.met, out.micro_batch);
}

void RingLowering::take(const Message& in, const Message& out) {
  emit(Opcode::Receive, in.way.channel, in.micro_batch);
  emit(Opcode::Wait, out.way.left, out.micro_batch);
}

void RingLowering::emit(Opcode code, int index, int micro_batch) {
  program_.instructions.push_back({code, index, micro_batch});
}

/// Returns what rank `from` hands on in `turn`. Its number is the micro-batch that the next rank
/// has it for, or the first one of that rank if it will only pass on.
RingLowering::Message RingLowering::message(const Op& op, Flow flow, int from, int turn) {
  const int to = next(from), since = turn + 1 - to;
  const int chunk = flow == Flow::Forward ? (turn - from + ranks_) % ranks_
                                          : (from + ranks_ - 1 - turn % ranks_) % ranks_;
  const bool passes = since < 0 || since >= rounds_ * ranks_;
  return {way({flow, from, to, chunk, passes}),
          step_of(op) + (passes ? 0 : since / ranks_ * ranks_) + to};
}

int RingLowering::step_of(const Op& op) const {
  return op.micro_batch - op.micro_batch % inputs_.schedule.micro_batches;
}

/// Returns which of a rank's micro-batches in a step that of `op` is.
int RingLowering::round_of(const Op& op) const {
  return op.micro_batch % inputs_.schedule.micro_batches / ranks_;
}

const RingLowering::Way& RingLowering::way(const Key& key) {
  const auto [entry, fresh] = ways_.try_emplace(key);
  if (!fresh) return entry->second;
  const auto& [flow, from, to, chunk, passes] = key;
  const Footprint& state = inputs_.stages[chunk].state;
  const bool weights = flow == Flow::Forward || flow == Flow::Backward;
  // Chunks on their way lie in the buffers of the flows, which are there from start to end.
  const int channel = wiring_.add_channel({.cargo = weights ? Cargo::Weights : Cargo::Sums,
                                           .from_rank = from,
                                           .to_rank = to,
                                           .from_stage = from * ranks_ + chunk,
                                           .to_stage = to * ranks_ + chunk,
                                           .sender_waits = true,
                                           .in_line = true,
                                           .from_resident = true,
                                           .bytes = weights ? state.weights : state.gradients,
                                           .held = Bytes(0)});
  const auto met = static_cast<int>(program_.events.size());
  program_.events.push_back({.recorders = 2});
  program_.events.push_back({.message = channel});
  entry->second = {channel, met, met + 1};
  ways_of_meetings_.emplace(met, entry->second);
  return entry->second;
}

}  // namespace interlock
