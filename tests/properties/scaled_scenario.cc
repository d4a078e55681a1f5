// Multiplies what a scenario says of devices, links and durations.
// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/scaled_scenario.h"

#include <sstream>
#include <utility>

namespace interlock {

using Json = nlohmann::ordered_json;

std::string with_unit(double value, const char* unit) {
  std::ostringstream text;
  text.precision(17);
  text << value << ' ' << unit;
  return text.str();
}

std::string times(const std::string& text, double factor) {
  const std::size_t space = text.find(' ');
  return with_unit(std::stod(text.substr(0, space)) * factor, text.substr(space + 1).c_str());
}

namespace {

/// Multiplies bandwidths by `widening` and delays by `slowing` in everything that has them.
void scale_links(Json& cluster, double widening, double slowing) {
  if (cluster.contains("machines")) {
    for (Json& machine : cluster["machines"]) scale_links(machine, widening, slowing);
  }
  if (cluster.contains("network") && cluster["network"].contains("delay")) {
    for (const auto& [key, factor] : {std::pair("delay", slowing), {"bandwidth", widening}}) {
      for (Json& row : cluster["network"][key]) {
        for (Json& one : row) {
          if (!one.is_null()) one = times(one.get<std::string>(), factor);
        }
      }
    }
  }
  if (cluster.contains("network")) scale_links(cluster["network"], widening, slowing);
  for (const char* part : {"link", "port", "cards", "host", "local", "global"}) {
    if (!cluster.contains(part)) continue;
    Json& link = cluster[part];
    link["bandwidth"] = times(link["bandwidth"].get<std::string>(), widening);
    link["latency"] = times(link["latency"].get<std::string>(), slowing);
  }
}

void slow_devices(Json& cluster, double factor) {
  if (cluster.contains("machines")) {
    for (Json& machine : cluster["machines"]) slow_devices(machine, factor);
  }
  if (!cluster.contains("device")) return;
  Json& device = cluster["device"];
  device["memory_bandwidth"] = times(device["memory_bandwidth"].get<std::string>(), 1 / factor);
  device["launch_overhead"] = times(device["launch_overhead"].get<std::string>(), factor);
  for (Json& peak : device["peak"]) peak = times(peak.get<std::string>(), 1 / factor);
}

void slow_framework(Json& framework, double factor) {
  for (const char* time : {"kernel_issue", "backward_issue", "expert_issue", "exchange_issue"}) {
    if (framework.contains(time)) {
      framework[time] = times(framework[time].get<std::string>(), factor);
    }
  }
  if (framework.contains("message_copies")) {
    framework["message_copies"] = times(framework["message_copies"].get<std::string>(), 1 / factor);
  }
}

}  // namespace

Json slowed(Json scenario, double factor) {
  scale_links(scenario["cluster"], 1 / factor, factor);
  slow_devices(scenario["cluster"], factor);
  if (Json& training = scenario["training"]; training.contains("framework")) {
    slow_framework(training["framework"], factor);
  }
  if (!scenario["model"].contains("modules")) return scenario;
  for (Json& module : scenario["model"]["modules"]) {
    for (const char* key : {"forward", "backward_input", "backward_weight", "update", "head"}) {
      if (module.contains(key)) module[key] = times(module[key].get<std::string>(), factor);
    }
  }
  return scenario;
}

Json widened(Json scenario, double factor) {
  scale_links(scenario["cluster"], factor, 1);
  return scenario;
}

}  // namespace interlock
