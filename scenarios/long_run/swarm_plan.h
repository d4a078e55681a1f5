// The swarm of a scenario: what its "swarm" means for its stages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/json.h"
#include "scenarios/load/question.h"
#include "sim/plan/stage_cost.h"
#include "sim/swarm/swarm_statistics.h"

namespace interlock {

/// The outcomes of a swarm, one for each seed.
struct SwarmResult {
  SwarmInputs inputs;
  SwarmStatistics statistics;
};

/// Simulates the swarm of `question` on stages of these costs. REQUIRES: it has one.
/// Throws: Error if a stage is lost for good, or the simulation would be absurdly long.
SwarmResult simulate_swarm_of(const Question& question, const std::vector<StageCost>& stages);

}  // namespace interlock
