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
// before and after it hands chunks on. A turn begins when what came in the turn before is there: it
// is sent on at once, beside the kernels of the turn. Gradients leave behind the kernels. At the
// end rank r has the sum of chunk r + 1 mod p, which rank p - 1 - r owns.
//
// The order of turns on a rank is that of its ops. Turns of backwards without kernels come before
// the last r forwards of its first micro-batch, those of forwards behind the first p - 1 - r
// backwards of its last one, and others at either end, as in the authors' code. Chunks travel on to
// the last turn, needed or not. Messages have room: see docs/design.md.
//
// Example: rank 1 of 3, a micro-batch each. <c and c> take and send weights of chunk c for
// forwards, [c and c] for backwards, (c and c) gradients.
//   2>  <0 0> F0  <1 F1  0] 0)  2> F2  [2 2] B2 (2 2)  <0  [1 1] B1 (1 1)  [0 0] B0 (0 0)  [2 (2
#include "sim/lower/ops/ring_lowering.h"

#include <algorithm>

#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

RingLowering::RingLowering(const LowerInputs& inputs, Wiring& wiring, InstructionWriter& writer)
    : inputs_(inputs),
      wiring_(wiring),
      writer_(writer),
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

void RingLowering::forward_turn(const Op& op, int turn) {
  const int chunk = (turn - rank_of(op) + ranks_) % ranks_;
  if (turn % ranks_ != 0) receive(op, Flow::Forward, chunk, turn);
  if (turn < turns_ - 1 && (turn + 1) % ranks_ != 0) send(op, Flow::Forward, chunk, turn);
}

namespace {

/// Returns the chunk that rank `rank` of a ring has in a turn of backwards.
int backward_chunk(int rank, int turn, int ranks) {
  return (rank + ranks - 1 - turn % ranks) % ranks;
}

}  // namespace

void RingLowering::begin_backward_turn(const Op& op, int turn) {
  const int chunk = backward_chunk(rank_of(op), turn, ranks_);
  if (turn > 0) receive(op, Flow::Backward, chunk, turn);
  if (turn < turns_ - 1) send(op, Flow::Backward, chunk, turn);
}

void RingLowering::end_backward_turn(const Op& op, int turn) {
  const int chunk = backward_chunk(rank_of(op), turn, ranks_);
  if (turn > 0) receive(op, Flow::Gradients, chunk, turn);
  if (turn < turns_ - 1) send(op, Flow::Gradients, chunk, turn);
}

/// Sends the sum that has come to the rank of `op` to its owner, which has that of the rank's own
/// chunk.
void RingLowering::bring_home(const Op& op) {
  const int rank = rank_of(op), owner = ranks_ - 1 - rank,
            last = inputs_.schedule.micro_batches - 1;
  if (owner == rank) return;
  const int micro_batch = op.micro_batch - rank - (rounds_ - 1) * ranks_ + last;
  writer_.emit(Opcode::Send, channel(Flow::Gradients, rank, owner, chunk_of_rank(owner, ranks_)),
               micro_batch);
  writer_.emit(Opcode::Receive, channel(Flow::Gradients, owner, rank, chunk_of_rank(rank, ranks_)),
               micro_batch);
}

void RingLowering::receive(const Op& op, Flow flow, int chunk, int turn) {
  const int rank = rank_of(op);
  writer_.emit(Opcode::Receive, channel(flow, before(rank), rank, chunk), number(op, rank, turn));
}

void RingLowering::send(const Op& op, Flow flow, int chunk, int turn) {
  const int rank = rank_of(op), to = next(rank);
  writer_.emit(Opcode::Send, channel(flow, rank, to, chunk), number(op, to, turn + 1));
}

/// Returns the number of a message: the micro-batch that its receiver has it for in `turn`, or the
/// nearest one.
int RingLowering::number(const Op& op, int receiver, int turn) const {
  const int step = op.micro_batch - op.micro_batch % inputs_.schedule.micro_batches;
  return step + std::clamp((turn - receiver) / ranks_, 0, rounds_ - 1) * ranks_ + receiver;
}

/// Returns which of a rank's micro-batches in a step that of `op` is.
int RingLowering::round_of(const Op& op) const {
  return op.micro_batch % inputs_.schedule.micro_batches / ranks_;
}

int RingLowering::channel(Flow flow, int from, int to, int chunk) {
  const auto [entry, fresh] = channels_.try_emplace({flow, from, to, chunk}, -1);
  if (!fresh) return entry->second;
  const Footprint& state = inputs_.stages[chunk].state;
  const bool weights = flow != Flow::Gradients;
  // Chunks on their way lie in the buffers of the flows, which are there from start to end.
  entry->second = wiring_.add_channel({.cargo = weights ? Cargo::Weights : Cargo::Copy,
                                       .from_rank = from,
                                       .to_rank = to,
                                       .from_stage = from * ranks_ + chunk,
                                       .to_stage = to * ranks_ + chunk,
                                       .from_resident = true,
                                       .bytes = weights ? state.weights : state.gradients,
                                       .held = Bytes(0)});
  return entry->second;
}

}  // namespace interlock
