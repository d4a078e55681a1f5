// Scenario probes: the kernels of a training step at the very sizes that a scenario has.
// SPDX-License-Identifier: Apache-2.0
//
// A kernel that was measured as it is needs no formula: its row of the table is found again by the
// simulator, which asks for the same work. Works do not say how wide their rows are or how many
// heads share a product; the network that is trained does.
//
// Example: an MLP with hidden_sizes [1024, 1024, 1024] has two equal layers of 1,024 x 1,024: their
// forwards are one work, and so one probe.
#pragma once

#include <vector>

#include "models/layers/model_graph.h"
#include "validate/calibration/bench.h"
#include "validate/network/network.h"

namespace interlock {

struct ScenarioProbes {
  std::vector<Probe> probes;   // each work once
  std::vector<Work> left_out;  // of kernels that no probe stands for: priced by the formula
};

/// Returns a probe for each kernel of a step of `graph`, heads and updates too. `network`: the same
/// model as layers.
ScenarioProbes scenario_probes(const ModelGraph& graph, const NeuralNetwork& network,
                               Precision precision);

/// Adds those of `more` that `all` does not have.
void append_probes(ScenarioProbes& all, const ScenarioProbes& more);

}  // namespace interlock
