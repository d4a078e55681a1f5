// What a swarm could do at best, in closed form.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sim/dynamics/swarm_state.h"

namespace interlock {

Seconds swarm_work(const std::vector<SwarmStage>& stages, int stage) {
  const SwarmStage& own = stages[stage];
  const bool last = stage + 1 == static_cast<int>(stages.size());
  return own.forward * (last ? 1 : 2) + own.backward;
}

double swarm_rate(const std::vector<SwarmStage>& stages, const std::vector<int>& peers) {
  double rate = std::numeric_limits<double>::infinity();
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    rate = std::min(rate, peers[stage] / swarm_work(stages, stage).value());
  }
  return rate;
}

double best_swarm_rate(const std::vector<SwarmStage>& stages, int peers) {
  const int count = static_cast<int>(stages.size());
  if (peers < count) return 0;
  // Each further peer goes to the slowest stage. Whoever beats that must have more peers there.
  std::vector<int> dealt(stages.size(), 1);
  const auto rate = [&](int stage) { return dealt[stage] / swarm_work(stages, stage).value(); };
  for (int left = peers - count; left > 0; --left) {
    int slowest = 0;
    for (int stage = 1; stage < count; ++stage) {
      if (rate(stage) < rate(slowest)) slowest = stage;
    }
    ++dealt[slowest];
  }
  return swarm_rate(stages, dealt);
}

int enough_in_flight(const SwarmInputs& inputs) {
  const int count = static_cast<int>(inputs.stages.size());
  std::vector<double> speed(inputs.stages.size(), 0);
  double slowest_link = 0, latency = 0, peers = 0, speeds = 0;  // seconds a byte
  for (const SwarmPeer& peer : inputs.peers) {
    slowest_link = std::max(slowest_link, 1 / std::min(peer.up, peer.down).value());
    latency = std::max(latency, 2 * peer.latency.value());
    speeds += peer.speed;
    ++peers;
    if (peer.stage) speed[*peer.stage] += peer.speed;
  }
  CHECK(peers > 0, "a swarm has a peer");
  double rate = std::numeric_limits<double>::infinity(), way = 0;
  for (int stage = 0; stage < count; ++stage) {
    const SwarmStage& own = inputs.stages[stage];
    rate = std::min(rate, speed[stage] / swarm_work(inputs.stages, stage).value());
    way += swarm_work(inputs.stages, stage).value() * peers / speeds + 2 * latency;
    way += (own.input + own.gradient_message).value() * slowest_link;
  }
  return static_cast<int>(std::min(std::max(std::ceil(2 * rate * way), peers), 1e6));
}

Bytes int8_message(Bytes bytes, double element) {
  constexpr double kBlock = 4096, kScale = 4;
  const double elements = bytes.value() / element;
  return Bytes(elements + kScale * std::ceil(elements / kBlock));
}

}  // namespace interlock
