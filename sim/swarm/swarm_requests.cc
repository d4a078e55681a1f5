// The way of a micro-batch through a swarm: routing, requests, and what to do when a peer is lost.
// SPDX-License-Identifier: Apache-2.0
//
// What comes next follows from who holds what. The goal is the next backward (or the turn of the
// last stage, as long as there is no gradient). If its input is at none of that stage's peers, the
// last peer below that still holds an input sends its output to the stage above it, and so on up.
#include <algorithm>

#include "sim/swarm/swarm_state.h"

namespace interlock {
namespace {

constexpr double kNewest = 0.1;  // weight in the average of service times

}  // namespace

/// A peer that serves `stage`, which is charged `work` seconds of speed 1; kNobody if none does.
int Swarm::route(int stage, double work) {
  const std::vector<int>& serving = serving_[stage];
  if (serving.empty()) return kNobody;
  if (inputs_.routing == SwarmRouting::RoundRobin) {
    return serving[static_cast<std::size_t>(turns_[stage]++) % serving.size()];
  }
  if (inputs_.routing == SwarmRouting::Random) {
    double left = 0;
    for (const int peer : serving) left += 1 / peers_[peer].slowness;
    left *= random_.uniform();
    for (const int peer : serving) {
      left -= 1 / peers_[peer].slowness;
      if (left < 0) return peer;
    }
    return serving.back();
  }
  int best = serving.front(), ties = 1;
  for (std::size_t i = 1; i < serving.size(); ++i) {
    const double assigned = peers_[serving[i]].assigned, least = peers_[best].assigned;
    if (assigned > least) continue;
    ties = assigned < least ? 1 : ties + 1;
    if (ties == 1 || random_.integer(1, ties) == 1) best = serving[i];
  }
  peers_[best].assigned += work * peers_[best].slowness;
  return best;
}

/// Puts `peer` into a place of a micro-batch that keeps it from leaving its stage.
void Swarm::place(int& slot, int peer) {
  const int before = slot;
  if (peer >= 0) ++peers_[peer].held;
  slot = peer;
  if (before >= 0 && --peers_[before].held == 0) try_leave(before);
}

/// Asks for the next op of a micro-batch that is in flight and does not wait.
void Swarm::advance(int id) {
  MicroBatch& batch = batches_[id];
  const bool has_gradient = batch.back < stages_;
  const int goal = has_gradient ? batch.back : stages_ - 1;
  if (has_gradient && batch.holder[goal] != kNobody) {
    request(id, goal, Op::Backward, batch.holder[goal], kNobody);
    return;
  }
  int below = goal - 1;
  while (below >= 0 && batch.holder[below] == kNobody) --below;
  const int stage = below + 1;
  const Op op = stage < goal ? Op::Forward : has_gradient ? Op::Backward : Op::Turn;
  // A peer that takes a forward will be asked for the backward as well.
  const SwarmStage& cost = inputs_.stages[stage];
  const Seconds work =
      op == Op::Backward ? cost.forward + cost.backward : swarm_work(inputs_.stages, stage);
  const int executor = route(stage, work.value());
  if (executor == kNobody) {
    waiting_[stage].push_back(id);
    return;
  }
  request(id, stage, op, executor, below < 0 ? kSource : batch.holder[below]);
}

void Swarm::request(int id, int stage, Op op, int executor, int input_from) {
  MicroBatch& batch = batches_[id];
  ++batch.token;
  batch.op = op;
  batch.stage = stage;
  place(batch.executor, executor);
  batch.input_from = input_from;
  batch.gradient_from = op == Op::Backward ? batch.gradient_at : kNobody;
  if (input_from != kNobody) {
    send({.from = input_from,
          .to = executor,
          .bytes = inputs_.stages[stage].input.value(),
          .kind = SwarmMessage::Activation,
          .about = id,
          .token = batch.token});
  }
  if (batch.gradient_from != kNobody) {
    send({.from = batch.gradient_from,
          .to = executor,
          .bytes = inputs_.stages[stage + 1].gradient_message.value(),
          .kind = SwarmMessage::Gradient,
          .about = id,
          .token = batch.token});
  }
}

void Swarm::arrived(int id, bool gradient) {
  MicroBatch& batch = batches_[id];
  (gradient ? batch.gradient_from : batch.input_from) = kNobody;
  if (batch.input_from != kNobody || batch.gradient_from != kNobody) return;
  Peer& peer = peers_[batch.executor];
  count_queue(peer);
  peer.queue.push_back(id);
  start_next(batch.executor);
}

void Swarm::count_queue(Peer& peer) {
  peer.queued += static_cast<double>(peer.queue.size()) * (now_ - peer.queue_since);
  peer.queue_since = now_;
}

void Swarm::start_next(int id) {
  Peer& peer = peers_[id];
  if (peer.running || peer.queue.empty()) return;
  const MicroBatch& batch = batches_[peer.queue.front()];
  const SwarmStage& cost = inputs_.stages[batch.stage];
  const Seconds work = batch.op == Op::Forward ? cost.forward : cost.forward + cost.backward;
  count_queue(peer);
  peer.running = true;
  peer.began = now_;
  schedule(now_ + work.value() / peer.speed, Kind::Done, id, peer.dropped);
}

/// The service time of a request is what it takes of the scarcest: the device, or the own link.
void Swarm::learn_speed(Peer& peer, const MicroBatch& batch) {
  const SwarmStage& cost = inputs_.stages[batch.stage];
  const bool forward = batch.op == Op::Forward, last = batch.stage + 1 == stages_;
  Bytes in, out;
  if (batch.op != Op::Backward) in += cost.input;
  if (batch.op == Op::Backward) in += inputs_.stages[batch.stage + 1].gradient_message;
  if (forward && !last) out += inputs_.stages[batch.stage + 1].input;
  if (!forward && batch.stage > 0) out += cost.gradient_message;
  const double taken = std::max({now_ - peer.began, in.value() / peer.down, out.value() / peer.up});
  const Seconds work = forward ? cost.forward : cost.forward + cost.backward;
  double& average = forward ? peer.forward_slowness : peer.backward_slowness;
  average += kNewest * (taken / work.value() - average);
  const double share = last ? 0 : cost.forward / swarm_work(inputs_.stages, batch.stage);
  peer.slowness = share * peer.forward_slowness + (1 - share) * peer.backward_slowness;
}

void Swarm::done(int id, std::int64_t dropped) {
  Peer& peer = peers_[id];
  if (peer.died < kForever || peer.dropped != dropped) return;
  const int number = peer.queue.front();
  MicroBatch& batch = batches_[number];
  count_queue(peer);
  peer.queue.pop_front();
  peer.running = false;
  const double busy = in_window(peer.began, now_);
  machine_busy_[peer.machine] += busy;
  stage_busy_[batch.stage] += busy;
  learn_speed(peer, batch);
  start_next(id);
  const int stage = batch.stage;
  if (batch.op != Op::Backward) {
    ++(batch.forward_ran[stage] ? out_.forwards_redone : out_.forwards);
    batch.forward_ran[stage] = 1;
  }
  if (batch.op == Op::Forward) {
    place(batch.holder[stage], id);
    place(batch.executor, kNobody);
    advance(number);
    return;
  }
  ++(batch.backward_ran[stage] ? out_.backwards_redone : out_.backwards);
  batch.backward_ran[stage] = 1;
  add_gradient(number, stage, id);
  batch.back = stage - 1;
  place(batch.gradient_at, id);
  place(batch.holder[stage], kNobody);
  place(batch.executor, kNobody);
  if (lacks(number, stage)) {
    advance(number);
  } else {
    end_pass(number);
  }
}

/// Takes `dead` out of all micro-batches, and asks others for what it was asked or had to send.
void Swarm::recover(int dead) {
  for (int id = 0; id < static_cast<int>(batches_.size()); ++id) {
    MicroBatch& batch = batches_[id];
    if (!batch.in_flight) continue;
    for (int& holder : batch.holder) {
      if (holder == dead) place(holder, kNobody);
    }
    if (batch.gradient_at == dead) {
      // Only this peer had the gradient: back to the loss, from the highest input that is left.
      batch.back = stages_;
      place(batch.gradient_at, kNobody);
    }
    if (batch.executor != dead && batch.input_from != dead && batch.gradient_from != dead) continue;
    ++batch.token;  // messages under way are void, even if no peer can be asked now
    batch.input_from = batch.gradient_from = kNobody;
    place(batch.executor, kNobody);
    advance(id);
  }
}

}  // namespace interlock
