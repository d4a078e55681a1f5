// Surroundings: facts of a scenario that a file of another program does not say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace interlock {

struct Surroundings {
  std::string name;     // of the scenario
  std::string cluster;  // a machine's name or path
  std::string device;   // of the machine: its name
  int devices_per_node = 1;
  std::optional<int> devices, vocab_size, sequence_length, micro_batch_size;
  std::string framework;  // empty: by the file; "none": without one
  std::string model;      // of the zoo, or a path; empty: the file says it
};

/// A model of the zoo or of a file, as a scenario names it.
struct NamedModel {
  nlohmann::ordered_json json;
  int layers = 0;
  int sequence_length = 0;  // of a sample, in tokens
};

/// Finds `model`; another sequence length and vocabulary take the place of its own.
/// Throws: Error if it is no transformer, or has no sequence length.
NamedModel named_model(const std::string& model, std::optional<int> sequence_length,
                       std::optional<int> vocab_size);

/// Names the framework's entry in `training`: what `around` says, or `by_file`; none if that is
/// empty or "none".
void name_framework(nlohmann::ordered_json& training, const Surroundings& around,
                    const std::string& by_file);

/// Returns the cluster of a scenario: as many nodes as `devices` take, in equal parts of nodes
/// where share_of_node() says so.
nlohmann::ordered_json cluster_json(const Surroundings& around, int devices);

}  // namespace interlock
