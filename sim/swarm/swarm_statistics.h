// Swarm statistics: the same swarm under many seeds.
// SPDX-License-Identifier: Apache-2.0
//
// Example: scenarios/examples/swarm.json as it comes does 12.2 samples a second over its two seeds,
// which is 35.4 % of the best rate.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/spread.h"
#include "sim/swarm/swarm.h"

namespace interlock {

struct SwarmStatistics {
  int seeds = 0;
  Spread micro_batches_per_s, share_of_best;  // the second: of the best rate, see SwarmOutcome
  Spread steps, failures, joins, moves;
  Spread redone;  // of all ops that ran, those that ran again
  Spread gradients_dropped, without_a_peer_s;
  std::vector<double> stage_utilisation, peer_busy;  // means
  std::array<Bytes, kSwarmMessages> traffic{};       // means, by SwarmMessage
  Bytes lost;                                        // mean
};

/// Runs `inputs` under `seeds` seeds from `first_seed` on. Throws: Error as simulate_swarm does.
SwarmStatistics swarm_over_seeds(const SwarmInputs& inputs, std::uint64_t first_seed, int seeds);

}  // namespace interlock
