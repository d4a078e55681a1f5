// Peers of a swarm that fail, join, and change to the stage that needs them most.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "sim/swarm/swarm_state.h"

namespace interlock {

void Swarm::outage() {
  const DeviceEvent event = *outages_.next();
  outages_.pop();
  if (outages_.next()) schedule(outages_.next()->time.value(), Kind::Outage, 0);
  const int machines = static_cast<int>(life_of_.size());
  for (int i = event.first; i < std::min(event.first + event.count, machines); ++i) {
    if (event.up && life_of_[i] == kNobody) join(i);
    if (!event.up && life_of_[i] != kNobody) fail(i);
  }
}

void Swarm::fail(int machine) {
  account_presence();
  const int life = std::exchange(life_of_[machine], kNobody);
  peers_[life].died = now_;
  ++out_.failures;
  record(SwarmRecord::Kind::Gone, life);
  schedule(now_ + inputs_.detection.value(), Kind::Noticed, life);
}

/// Everyone learns of a failure at once: the cost of the peer is infinite from now on.
void Swarm::noticed(int dead) {
  const int stage = peers_[dead].stage;
  peers_[dead].life = Life::Dead;
  std::erase(serving_[stage], dead);
  const std::vector<int> cut_off = end_transfers(dead);
  lose_gradients(dead);
  for (const int peer : cut_off) {
    if (peer == kSource || !is_alive(peer)) continue;
    if (peers_[peer].life == Life::Loading) {
      load(peer);
    } else {
      try_leave(peer);
    }
  }
  if (serving_[stage].empty()) keep_leavers(stage);
  recover(dead);
  check_hope(stage);
  issue();  // what it had added to its gradients is run again
}

/// States that go to or come from `dead` do not arrive. Returns the peers at their other ends.
std::vector<int> Swarm::end_transfers(int dead) {
  std::vector<int> cut_off;
  for (Bulk& bulk : bulks_) {
    if (!bulk.open || bulk.purpose == Purpose::Averaging) continue;
    if (bulk.from != dead && bulk.to != dead) continue;
    bulk.open = false;
    cut_off.push_back(bulk.from == dead ? bulk.to : bulk.from);
    if (bulk.purpose == Purpose::Load) continue;
    --handing_over_[peers_[dead].stage];
    --peers_[bulk.to].held;
    if (bulk.to == dead) peers_[bulk.from].life = Life::Draining;
  }
  return cut_off;
}

/// Keeps the peers that were about to leave the stage: they are needed there.
void Swarm::keep_leavers(int stage) {
  for (int peer = 0; peer < static_cast<int>(peers_.size()); ++peer) {
    if (peers_[peer].life == Life::Draining && peers_[peer].stage == stage) serve(peer);
  }
}

/// Throws: Error if no peer is, or ever comes, at `stage`.
void Swarm::check_hope(int stage) const {
  int there = 0;
  for (const int life : life_of_) {
    if (life == kNobody) continue;
    ++there;
    const Peer& peer = peers_[life];
    if (peer.stage == stage && peer.life != Life::HandingOver) return;
  }
  const FailureModel& failures = inputs_.failures;
  if (now_ < last_up_ || (failures.replacement && !failures.kinds.empty())) return;
  if (inputs_.rebalance_every && there >= stages_) return;
  const std::string what = inputs_.rebalance_every
                               ? "too few are left to serve all " + std::to_string(stages_) +
                                     " stages: " + std::to_string(there)
                               : "none moves there without rebalancing";
  const std::string when =
      now_ > 0 ? " lost its last peer after " + format(Seconds(now_)) : " has no peer";
  throw Error("stage " + std::to_string(stage) + " of the swarm" + when +
              ", no peer joins later, and " + what +
              "; expected more peers, or failures with a \"replacement\"");
}

/// Requests per second that the peers of `stage`, there or on their way, can serve.
double Swarm::capacity(int stage) const {
  double speed = 0;
  for (const int life : life_of_) {
    if (life == kNobody) continue;
    const Peer& peer = peers_[life];
    const bool counts = peer.life == Life::Serving || peer.life == Life::Loading;
    if (counts && peer.stage == stage) speed += 1 / peer.slowness;
  }
  return speed / swarm_work(inputs_.stages, stage).value();
}

void Swarm::join(int machine) {
  account_presence();
  const SwarmPeer& own = inputs_.peers[machine];
  int stage = 0;
  for (int other = 1; other < stages_; ++other) {
    if (capacity(other) < capacity(stage)) stage = other;
  }
  const int life = static_cast<int>(peers_.size());
  peers_.push_back({.machine = machine,
                    .stage = stage,
                    .speed = own.speed,
                    .up = own.up.value(),
                    .down = own.down.value(),
                    .latency = own.latency.value(),
                    .life = Life::Loading,
                    .born = now_,
                    .at_stage_since = now_,
                    .up_free = now_,
                    .down_free = now_,
                    .queue_since = now_});
  life_of_[machine] = life;
  ++out_.joins;
  load(life);
}

/// Downloads the state of its stage from the neighbour with the shortest queue; from the source's
/// saved one if the stage has no peer.
void Swarm::load(int id) {
  const int stage = peers_[id].stage;
  int from = kSource;
  for (const int other : serving_[stage]) {
    if (from == kSource || peers_[other].queue.size() < peers_[from].queue.size()) from = other;
  }
  start_bulk({.purpose = Purpose::Load, .from = from, .to = id},
             inputs_.stages[stage].state.value());
}

/// A peer is announced, near the head of the router's order so that it is soon tried.
void Swarm::serve(int id) {
  account_presence();
  Peer& peer = peers_[id];
  std::vector<int>& serving = serving_[peer.stage];
  peer.assigned = serving.empty() ? 0 : peers_[serving.front()].assigned;
  for (const int other : serving) peer.assigned = std::min(peer.assigned, peers_[other].assigned);
  peer.life = Life::Serving;
  serving.push_back(id);
  for (int slot = 0; slot < 2; ++slot) try_averaging(slot, peer.stage);
  const std::vector<int> woken = std::exchange(waiting_[peer.stage], {});
  for (const int batch : woken) advance(batch);
}

/// A peer that is to leave takes no new requests and ends those that it was asked. For backwards
/// that it would be asked, the peers before it send their outputs again.
void Swarm::drain(int id, int next_stage) {
  Peer& peer = peers_[id];
  peer.life = Life::Draining;
  peer.next_stage = next_stage;
  std::erase(serving_[peer.stage], id);
  ++peer.held;
  for (MicroBatch& batch : batches_) {
    int& holder = batch.holder[peer.stage];
    if (holder == id) place(holder, kNobody);
  }
  if (serving_[next_stage].empty()) drop_requests(id);  // they may wait for that stage
  --peer.held;
  try_leave(id);
}

/// A peer that cannot wait leaves its requests to others, as if it had died, but hands its
/// gradients over.
void Swarm::drop_requests(int id) {
  Peer& peer = peers_[id];
  if (peer.running) {
    machine_busy_[peer.machine] += in_window(peer.began, now_);
    stage_busy_[peer.stage] += in_window(peer.began, now_);
  }
  count_queue(peer);
  peer.queue.clear();
  peer.running = false;
  ++peer.dropped;
  recover(id);
}

void Swarm::try_leave(int id) {
  Peer& peer = peers_[id];
  if (peer.life != Life::Draining || peer.held > 0 || !is_alive(id)) return;
  const int stage = peer.stage;
  bool owns = false;
  for (int slot = 0; slot < 2; ++slot) {
    const Averaging& one = averaging(slot, stage);
    if (step_of_[slot] < 0 || one.phase == Phase::Averaged) continue;
    if (one.phase == Phase::Averaging) return;  // it takes part
    for (int i = 0; i < inputs_.micro_batches; ++i) {
      owns = owns || batches_[slot * inputs_.micro_batches + i].owner[stage] == id;
    }
  }
  if (serving_[stage].empty()) {
    serve(id);
    return;
  }
  if (!owns) {
    leave(id);
    return;
  }
  peer.life = Life::HandingOver;
  ++handing_over_[stage];
  const int to = serving_[stage].front();
  ++peers_[to].held;
  start_bulk({.purpose = Purpose::HandOver, .from = id, .to = to},
             inputs_.stages[stage].gradients.value());
}

void Swarm::handed_over(const Bulk& bulk) {
  const int stage = peers_[bulk.from].stage;
  --handing_over_[stage];
  const bool may_leave = --peers_[bulk.to].held == 0;
  if (!is_alive(bulk.from)) {  // it died after the last byte had left, and cannot confirm
    peers_[bulk.from].life = Life::Draining;
    if (may_leave) try_leave(bulk.to);
    return;
  }
  record(SwarmRecord::Kind::HandedOver, bulk.from);
  if (records_) records_->back().to = bulk.to;
  for (MicroBatch& batch : batches_) {
    if (batch.owner[stage] == bulk.from) batch.owner[stage] = bulk.to;
  }
  leave(bulk.from);
  if (may_leave) try_leave(bulk.to);
  for (int slot = 0; slot < 2; ++slot) try_averaging(slot, stage);
}

void Swarm::leave(int id) {
  account_presence();
  Peer& peer = peers_[id];
  stage_present_[peer.stage] += in_window(peer.at_stage_since, now_);
  peer.at_stage_since = now_;
  peer.stage = peer.next_stage;
  peer.forward_slowness = peer.backward_slowness = peer.slowness;  // for all that is known
  peer.life = Life::Loading;
  ++out_.moves;
  load(id);
}

}  // namespace interlock
