// Refuses what a search cannot compare.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/space_checks.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "scenarios/search/plan_space.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {

void refuse_unknown(const JsonValue& document) {
  std::string told;
  try {
    load_point(std::make_shared<const JsonValue>(document));
  } catch (const Error& error) {
    // Other mistakes may be of the degrees, which plans choose.
    std::istringstream lines(error.what());
    for (std::string line; std::getline(lines, line);) {
      const bool unknown =
          line.find(": unknown key; ") != line.npos || line.find(": unknown name ") != line.npos;
      if (unknown) told += (told.empty() ? "" : "\n") + line;
    }
  }
  if (!told.empty()) throw Error(told);
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
