// Surroundings: the model and the cluster that options of import name.
// SPDX-License-Identifier: Apache-2.0
#include "reports/imports/surroundings.h"

#include "hardware/networks/node_share.h"
#include "models/model_file.h"
#include "models/transformer/transformer.h"

namespace interlock {

NamedModel named_model(const std::string& model, std::optional<int> sequence_length,
                       std::optional<int> vocab_size) {
  NamedModel named;
  named.json = model;
  JsonValue value = json_text(model);
  if (sequence_length || vocab_size) {
    named.json = {{"base", model}};
    value = json_object({{"base", json_text(model)}});
  }
  const auto set = [&](const char* key, int number) {
    named.json[key] = number;
    value.members.push_back({key, json_number(number)});
  };
  if (sequence_length) set("sequence_length", *sequence_length);
  if (vocab_size) set("vocab_size", *vocab_size);
  Diagnostics diagnostics;
  const auto found = find_model({&value, ""}, diagnostics);
  diagnostics.throw_if_any();
  const std::string kind = ObjectReader(found->node, diagnostics).text("kind", "transformer");
  if (kind != "transformer") {
    throw Error("--model " + model + ": expected a transformer, got a model of kind " + kind);
  }
  Section reader(transformer_contract().front(), found->node, diagnostics);
  const Transformer shape = read_transformer(reader);
  diagnostics.throw_if_any();
  named.layers = static_cast<int>(shape.layers.size());
  named.sequence_length = shape.stream.sequence_length;
  return named;
}

void name_framework(nlohmann::ordered_json& training, const Surroundings& around,
                    const std::string& by_file) {
  const std::string& name = around.framework.empty() ? by_file : around.framework;
  if (!name.empty() && name != "none") training["framework"] = name;
}

nlohmann::ordered_json cluster_json(const Surroundings& around, int devices) {
  const int share = share_of_node(around.devices_per_node, devices);
  nlohmann::ordered_json cluster = {{"machine", around.cluster}};
  if (share < around.devices_per_node) cluster["devices_per_node"] = share;
  cluster["nodes"] = (devices + share - 1) / share;
  cluster["devices"] = devices;
  return cluster;
}

}  // namespace interlock
