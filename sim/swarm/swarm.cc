// The event loop of a swarm: what happens when, and what comes of it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm/swarm.h"

#include <algorithm>

#include "base/error.h"
#include "sim/swarm/swarm_state.h"

namespace interlock {
namespace {

/// Machines whose first event is to come up are not there before.
std::vector<bool> come_later(const SwarmInputs& inputs) {
  std::vector<bool> later(inputs.peers.size()), seen(inputs.peers.size());
  for (std::size_t i = 0; i < later.size(); ++i) later[i] = !inputs.peers[i].stage;
  for (const DeviceEvent& event : inputs.failures.trace) {
    for (int device = event.first; device < event.first + event.count; ++device) {
      if (device >= static_cast<int>(later.size()) || seen[device]) continue;
      seen[device] = true;
      if (event.up) later[device] = true;
    }
  }
  return later;
}

}  // namespace

Swarm::Swarm(const SwarmInputs& inputs, std::uint64_t seed, std::vector<SwarmRecord>* records)
    : inputs_(inputs),
      records_(records),
      stages_(static_cast<int>(inputs.stages.size())),
      window_(inputs.in_flight.value_or(0)),
      random_(seed, 0),
      outages_(inputs.failures, seed),
      end_(inputs.duration.value()),
      life_of_(inputs.peers.size(), kNobody),
      serving_(stages_),
      waiting_(stages_),
      turns_(stages_),
      handing_over_(stages_),
      batches_(2 * static_cast<std::size_t>(inputs.micro_batches)),
      averaging_(2 * static_cast<std::size_t>(stages_)),
      machine_busy_(inputs.peers.size()),
      machine_present_(inputs.peers.size()),
      stage_busy_(stages_),
      stage_present_(stages_) {
  if (!inputs.in_flight) window_ = enough_in_flight(inputs);
  out_.sent.resize(inputs.peers.size());
  out_.received.resize(inputs.peers.size());
  for (const DeviceEvent& event : inputs.failures.trace) {
    if (event.up) last_up_ = std::max(last_up_, event.time.value());
  }
  for (MicroBatch& batch : batches_) {
    batch.holder.resize(stages_, kNobody);
    batch.owner.resize(stages_, kNobody);
    batch.forward_ran.resize(stages_);
    batch.backward_ran.resize(stages_);
  }
  const std::vector<bool> later = come_later(inputs);
  for (std::size_t machine = 0; machine < inputs.peers.size(); ++machine) {
    if (later[machine]) continue;
    const SwarmPeer& peer = inputs.peers[machine];
    const int life = static_cast<int>(peers_.size());
    peers_.push_back({.machine = static_cast<int>(machine),
                      .stage = *peer.stage,
                      .speed = peer.speed,
                      .up = peer.up.value(),
                      .down = peer.down.value(),
                      .latency = peer.latency.value()});
    life_of_[machine] = life;
    serving_[*peer.stage].push_back(life);
  }
}

void Swarm::schedule(double time, Kind kind, int about, std::int64_t generation) {
  if (time >= end_) return;
  events_.push_back({time, order_++, kind, about, generation});
  std::push_heap(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  });
}

SwarmOutcome Swarm::run() {
  for (int stage = 0; stage < stages_; ++stage) {
    if (serving_[stage].empty()) check_hope(stage);
  }
  schedule(inputs_.warm_up.value(), Kind::WarmUp, 0);
  if (outages_.next()) schedule(outages_.next()->time.value(), Kind::Outage, 0);
  if (inputs_.rebalance_every) {
    schedule(inputs_.rebalance_every->value(), Kind::Rebalance, 0);
  }
  issue();
  while (!events_.empty()) {
    std::pop_heap(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    });
    const Event event = events_.back();
    events_.pop_back();
    now_ = event.time;
    handle(event);
  }
  now_ = end_;
  return outcome();
}

void Swarm::handle(const Event& event) {
  switch (event.kind) {
    case Kind::Done:
      done(event.about, event.generation);
      break;
    case Kind::FirstByte:
      first_byte(event.about);
      break;
    case Kind::Delivered:
      delivered(event.about);
      break;
    case Kind::Sent:
      send_slice(event.about);
      break;
    case Kind::Outage:
      outage();
      break;
    case Kind::Noticed:
      noticed(event.about);
      break;
    case Kind::Rebalance:
      rebalance();
      break;
    case Kind::WarmUp:
      finished_before_ = finished_;
      break;
    case Kind::Updated:
      updated(event.about, event.generation);
      break;
  }
}

double Swarm::in_window(double begin, double end) const {
  return std::max(0.0, std::min(end, end_) - std::max(begin, inputs_.warm_up.value()));
}

/// Adds up what depends on who is there, since the last change of that; call it before each.
void Swarm::account_presence() {
  const double time = in_window(present_since_, now_);
  present_since_ = now_;
  if (time <= 0) return;
  double speeds = 0;
  int there = 0;
  for (const int life : life_of_) {
    if (life == kNobody) continue;
    ++there;
    speeds += peers_[life].speed;
  }
  if (there > 0) best_ += time * best_swarm_rate(inputs_.stages, there) * speeds / there;
  std::vector<char> served(stages_);
  for (const Peer& peer : peers_) {
    if (peer.died == kForever && peer.life != Life::Loading) served[peer.stage] = 1;
  }
  if (std::count(served.begin(), served.end(), 0) > 0) out_.without_a_peer += Seconds(time);
}

SwarmOutcome Swarm::outcome() {
  account_presence();
  for (Peer& peer : peers_) {
    const double last = std::min(peer.died, end_);
    machine_present_[peer.machine] += in_window(peer.born, last);
    stage_present_[peer.stage] += in_window(peer.at_stage_since, last);
    if (!peer.running) continue;
    machine_busy_[peer.machine] += in_window(peer.began, last);
    stage_busy_[peer.stage] += in_window(peer.began, last);
  }
  const auto share = [](double busy, double there) { return there > 0 ? busy / there : 0; };
  for (std::size_t i = 0; i < machine_busy_.size(); ++i) {
    out_.peer_busy.push_back(share(machine_busy_[i], machine_present_[i]));
  }
  for (int stage = 0; stage < stages_; ++stage) {
    out_.stage_utilisation.push_back(share(stage_busy_[stage], stage_present_[stage]));
  }
  const double window = in_window(0, end_), samples = inputs_.samples_per_micro_batch;
  out_.micro_batches_per_s = static_cast<double>(finished_ - finished_before_) / window;
  out_.samples_per_s = out_.micro_batches_per_s * samples;
  out_.best_samples_per_s = best_ / window * samples;
  return out_;
}

SwarmOutcome simulate_swarm(const SwarmInputs& inputs, std::uint64_t seed,
                            std::vector<SwarmRecord>* records) {
  CHECK(!inputs.stages.empty() && inputs.micro_batches > 0, "a swarm has stages and work");
  CHECK(inputs.warm_up < inputs.duration, "a swarm is measured for some time");
  return Swarm(inputs, seed, records).run();
}

}  // namespace interlock
