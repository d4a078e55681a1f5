// Peers of a swarm that move to where they are needed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/swarm/swarm_state.h"

namespace interlock {
namespace {

constexpr double kGain = 1.01;  // speeds are measured, so equal ones differ

}  // namespace

/// One peer of the least loaded stage goes to the most loaded one, where that stage gains more than
/// the other one's becoming the slower of the two would cost.
void Swarm::rebalance() {
  schedule(now_ + inputs_.rebalance_every->value(), Kind::Rebalance, 0);
  const std::vector<int> stages = stages_by_load();
  const int to = stages.back();
  if (capacity(to) <= 0 && move_leaver(to)) return;
  move_idlest(stages, to);
  for (Peer& peer : peers_) {
    count_queue(peer);
    peer.queued = 0;
  }
}

/// The stages, by the mean queue of their peers since the last rebalancing.
std::vector<int> Swarm::stages_by_load() {
  std::vector<std::pair<double, int>> loads;
  for (int stage = 0; stage < stages_; ++stage) {
    double queued = 0;
    for (const int id : serving_[stage]) {
      count_queue(peers_[id]);
      queued += peers_[id].queued;
    }
    const auto peers = static_cast<double>(serving_[stage].size());
    loads.push_back({peers > 0 ? queued / peers : kForever, stage});
  }
  std::stable_sort(loads.begin(), loads.end());
  std::vector<int> stages;
  stages.reserve(loads.size());
  for (const auto& [queued, stage] : loads) stages.push_back(stage);
  return stages;
}

/// Sends a peer that is leaving its stage anyway to `to`. Returns false if there is none.
bool Swarm::move_leaver(int to) {
  for (int id = 0; id < static_cast<int>(peers_.size()); ++id) {
    if (peers_[id].life != Life::Draining || !is_alive(id)) continue;
    drain(id, to);
    return true;
  }
  return false;
}

/// The peer with the shortest queue of the first stage of `from` that can spare it.
void Swarm::move_idlest(const std::vector<int>& from, int to) {
  for (const int stage : from) {
    if (stage == to || serving_[stage].size() < 2) continue;
    int idlest = serving_[stage].front();
    for (const int id : serving_[stage]) {
      if (peers_[id].queued < peers_[idlest].queued) idlest = id;
    }
    const double taken = 1 / peers_[idlest].slowness;
    const double left = capacity(stage) - taken / swarm_work(inputs_.stages, stage).value();
    if (left <= kGain * capacity(to)) continue;
    drain(idlest, to);
    return;
  }
}

}  // namespace interlock
