// Bounds of what a swarm can do, in closed form.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "sim/swarm/swarm_state.h"

namespace interlock {

Seconds swarm_work(const std::vector<SwarmStage>& stages, int stage) {
  const SwarmStage& own = stages[stage];
  const bool last = stage + 1 == static_cast<int>(stages.size());
  return own.forward * (last ? 1 : 2) + own.backward;
}

double swarm_rate(const std::vector<SwarmStage>& stages, const std::vector<int>& peers) {
  double rate = kInfinity;
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    rate = std::min(rate, peers[stage] / swarm_work(stages, stage).value());
  }
  return rate;
}

double best_swarm_rate(const std::vector<SwarmStage>& stages, int peers) {
  const int count = static_cast<int>(stages.size());
  if (peers < count) return 0;
  // Each further peer goes to the slowest stage. A better deal must have more peers there.
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

namespace {

/// Micro-batches per second that a stage's peers can serve, and can receive and send.
double stage_rate(const SwarmInputs& inputs, int stage) {
  double speed = 0;
  BytesPerSecond up, down;
  for (const SwarmPeer& peer : inputs.peers) {
    if (peer.stage != stage) continue;
    speed += peer.speed;
    up += peer.up;
    down += peer.down;
  }
  const SwarmStage& own = inputs.stages[stage];
  Bytes in = own.input, out = own.gradient_message;
  if (stage + 1 < static_cast<int>(inputs.stages.size())) {
    in += inputs.stages[stage + 1].gradient_message;
    out += inputs.stages[stage + 1].input;
  }
  double rate = speed / swarm_work(inputs.stages, stage).value();
  if (in > Bytes(0)) rate = std::min(rate, 1 / (in / down).value());
  if (out > Bytes(0)) rate = std::min(rate, 1 / (out / up).value());
  return rate;
}

}  // namespace

int enough_in_flight(const SwarmInputs& inputs) {
  CHECK(!inputs.peers.empty(), "a swarm has a peer");
  const auto peers = static_cast<double>(inputs.peers.size());
  Seconds latency;
  double seconds_per_byte = 0, speeds = 0;
  for (const SwarmPeer& peer : inputs.peers) {
    latency = std::max(latency, 2 * peer.latency);
    seconds_per_byte = std::max(seconds_per_byte, 1 / std::min(peer.up, peer.down).value());
    speeds += peer.speed;
  }
  double rate = kInfinity;
  Seconds way;
  for (int stage = 0; stage < static_cast<int>(inputs.stages.size()); ++stage) {
    const SwarmStage& own = inputs.stages[stage];
    const Bytes messages = own.input + own.gradient_message;
    rate = std::min(rate, stage_rate(inputs, stage));
    way += swarm_work(inputs.stages, stage) * (peers / speeds) + 2 * latency;
    way += Seconds(messages.value() * seconds_per_byte);
  }
  return static_cast<int>(std::min(std::max(std::ceil(2 * rate * way.value()), peers), 1e6));
}

}  // namespace interlock
