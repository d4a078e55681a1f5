// Megatron scenario: the arguments of a training with Megatron-LM as a scenario.
// SPDX-License-Identifier: Apache-2.0
//
// What is left out has Megatron-LM's defaults (megatron/training/arguments.py, as of 2025, recalled
// in part): MLPs 4 times as wide, or 8/3 if gated, in multiples of 64; LayerNorm with biases,
// learned positions, tied embeddings, dropout of 0.1, fp32, Adam, gradients that are added up after
// the backward.
#pragma once

#include <optional>
#include <string>

#include "reports/imports/megatron_arguments.h"

namespace interlock {

/// Facts that the arguments do not say.
struct MegatronSurroundings {
  std::string name;     // of the scenario
  std::string cluster;  // a machine's name or path
  int devices_per_node = 1;
  std::optional<int> devices, vocab_size;
};

/// The scenario as JSON. Throws: Error that tells every argument which has no counterpart.
std::string megatron_scenario(MegatronArguments& arguments, const MegatronSurroundings& around);

}  // namespace interlock
