// Refuses what a search cannot compare.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/space_checks.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/search/plan_space.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {

void refuse_unknown(const JsonValue& document) {
  std::string told;
  try {
    load_point(std::make_shared<const JsonValue>(document));
  } catch (const Error& error) {
    // Other mistakes may be of the degrees, which plans choose.
    for (const Diagnostic& mistake : error.mistakes()) {
      const bool unknown = mistake.message.starts_with("unknown key; ") ||
                           mistake.message.starts_with("unknown name ");
      if (unknown || mistake.wrong_type) told += (told.empty() ? "" : "\n") + mistake.text();
    }
  }
  if (!told.empty()) throw Error(told);
}

namespace {

/// Says what is wrong with `value` as one of the list of `key` of "search"; or "".
std::string wrong_choice(const std::string& key, const JsonValue& value) {
  const JsonValue search = json_object({{key, value}});
  Diagnostics diagnostics;
  read_search({&search, "/search"}, diagnostics);
  try {
    diagnostics.throw_if_any();
  } catch (const Error& error) {
    return error.mistakes().front().message;
  }
  return "";
}

/// Refuses to set what every plan chooses by itself. `path` may name a section.
void refuse_one_chosen(const std::string& path, const JsonValue& value) {
  if (value.kind == JsonValue::Kind::Null) return;  // which removes it
  if (value.kind == JsonValue::Kind::Object && (path == "parallel" || path == "training")) {
    for (const auto& [key, of_key] : value.members) refuse_one_chosen(path + "." + key, of_key);
    return;
  }
  for (const auto& [chosen, key] : {std::pair{"parallel.tensor", "tensor"},
                                    {"parallel.pipeline", "pipeline"},
                                    {"parallel.data", "data"},
                                    {"parallel.context", "context"},
                                    {"parallel.context_layout", "context_layout"},
                                    {"parallel.context_all_to_all", "context_layout"},
                                    {"parallel.expert", "expert"},
                                    {"parallel.expert_tensor", "expert_tensor"},
                                    {"parallel.zero_stage", "zero_stage"},
                                    {"parallel.stages", "chunks"},
                                    {"training.micro_batch_size", "micro_batch_size"},
                                    {"training.micro_batches", "micro_batch_size"},
                                    {"training.recompute", "recompute"},
                                    {"training.schedule", "schedule"},
                                    {"partition", "partition"}}) {
    if (path != chosen && !path.starts_with(std::string(chosen) + ".")) continue;
    const bool same = path.ends_with(std::string(".") + key) || path == key;
    const bool plain =
        value.kind == JsonValue::Kind::Number || value.kind == JsonValue::Kind::String;
    const std::string text = same && plain ? described(value) : "...";
    const bool list = value.kind == JsonValue::Kind::Array;
    if (const std::string wrong = same && !list ? wrong_choice(key, value) : ""; !wrong.empty()) {
      throw Error("--set " + path + ": " + wrong + "; each plan chooses it: --set 'search." + key +
                  "=[...]'");
    }
    throw Error("--set " + path + ": each plan chooses it; expected --set 'search." + key + "=[" +
                text + "]' in its place");
  }
}

}  // namespace

void refuse_chosen(const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;  // which is told elsewhere
    const std::string path = text.substr(0, equals);
    refuse_one_chosen(path, parse_override(text.substr(equals + 1), "--set " + path));
  }
}

void refuse_sections(const JsonValue& document, const std::string& file) {
  for (const char* key : {"workload", "swarm", "run", "variation"}) {
    if (document.find(key) == nullptr) continue;
    throw Error(file + ": /" + key + ": plans are compared by steady steps; expected no \"" + key +
                "\": --set " + key + "=null");
  }
  for (const char* key : {"stage_layouts", "layer_layouts"}) {
    const JsonValue* parallel = document.find("parallel");
    if (parallel == nullptr || parallel->find(key) == nullptr) continue;
    throw Error(file + ": /parallel/" + key + ": a search lays all " +
                (key[0] == 's' ? "stages" : "layers") + " alike; expected none: --set parallel." +
                key + "=null");
  }
}

void refuse_auto(const SearchRequest& request, const std::string& file) {
  for (const JsonValue& partition : request.partitions) {
    if (kind_of(partition) != "auto") continue;
    throw Error(file +
                ": /search/partition: \"auto\" is a search of its own; expected \"balanced\", "
                "\"uniform\" or lists, and \"auto\" for the plan that is found");
  }
  for (const JsonValue& schedule : request.schedules) {
    if (kind_of(schedule) != "auto") continue;
    throw Error(file +
                ": /search/schedule: \"auto\" is a search of its own; expected schedules by name, "
                "and \"auto\" for the plan that is found");
  }
}

void refuse_reserve(const SearchRequest& request, const Cluster& cluster, const std::string& file) {
  if (!request.limits.reserve) return;
  const Bytes free = request.limits.reserve->process;
  for (const Machine& machine : cluster.machines) {
    const Bytes memory = machine.device.memory;
    if (memory <= Bytes(0) || free < memory) continue;
    throw Error(file + ": /search/limits/reserve: " + format(free) + " leaves nothing of the " +
                format(memory) + " of each device of " + cluster.name +
                "; expected less, e.g. --reserve '6 GiB'");
  }
}

void require_known(const SearchRequest& request, const Cluster& cluster, const std::string& file) {
  const auto require = [&](bool known, const char* what, const char* setting) {
    if (known) return;
    throw Error(file + ": /search: the " + what + " of " + cluster.name +
                " is unknown; expected it to be set, e.g. " + setting);
  };
  const bool money = request.aim == Aim::Cost || request.limits.cost;
  const bool energy = request.aim == Aim::Energy || request.limits.power;
  const auto all = [&](const auto& known) {
    return std::all_of(cluster.machines.begin(), cluster.machines.end(), known);
  };
  require(!money || all([](const Machine& m) { return m.price.has_value(); }), "price",
          cluster.machines.size() > 1 && !cluster.machines[1].joins
              ? "\"price\": \"2.50 USD/h\" in each of its \"machines\""
              : "--set cluster.price='2.50 USD/h'");
  require(!energy || all([](const Machine& m) { return m.device.power.has_value(); }),
          "power of the devices",
          "--set cluster.power='{\"busy\": \"400 W\", \"idle\": \"60 W\"}'");
}

}  // namespace interlock
