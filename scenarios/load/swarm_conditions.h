// SwarmConditions: what a scenario says about a swarm of peers that would train its stages.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {"peers": 6, "speed": [1, 0.75], "up": "1 Gb/s"} gives each stage six peers, of which
// every second one is three quarters as fast, and which send and receive 125 MB/s.
#pragma once

#include <optional>
#include <vector>

#include "scenarios/load/run_conditions.h"
#include "sim/swarm/swarm.h"

namespace interlock {

struct SwarmConditions {
  std::vector<int> peers;  // of each stage; one number: of every stage
  // Peers take the values of a list in turn.
  std::vector<double> speeds = {1};
  std::vector<BytesPerSecond> up, down;  // down: empty if as up
  std::vector<Seconds> latencies = {Seconds(0)};
  SwarmRouting routing = SwarmRouting::Weighted;
  std::optional<Seconds> rebalance_every;
  bool int8 = false;
  std::optional<int> in_flight;
  bool delayed_update = true, redo_lost = true;
  FailureConditions failures;
  Seconds detection = Seconds(10);
  Seconds duration = Seconds(3600);
  std::optional<Seconds> warm_up;  // else a tenth of the duration
  int seeds = 5;
};

/// Reads "swarm".
SwarmConditions read_swarm(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
