// Reads "swarm": peers and their links, routing, rebalancing, failures.
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/contract/limits.h"
#include "scenarios/load/loader.h"
#include "scenarios/load/run_conditions.h"

namespace interlock {
namespace {

/// Reads one value, or a list of them.
template <class Value>
std::vector<Value> read_each(const JsonNode& node, Diagnostics& diagnostics,
                             const std::function<std::optional<Value>(const JsonNode&)>& read) {
  std::vector<Value> values;
  const auto add = [&](const JsonNode& one) {
    if (const std::optional<Value> value = read(one)) values.push_back(*value);
  };
  if (node.value->kind != JsonValue::Kind::Array) {
    add(node);
  } else if (node.value->items.empty()) {
    report(diagnostics, node, "an empty list; expected a value for each peer in turn");
  } else {
    for (std::size_t i = 0; i < node.value->items.size(); ++i) add(node.item(i));
  }
  return values;
}

void read_peers(Section& section, SwarmConditions& swarm) {
  Diagnostics& diagnostics = section.diagnostics();
  const auto node = section.require("peers", "a number of peers of each stage, or a list of them");
  if (!node) return;
  const bool listed = node->value->kind == JsonValue::Kind::Array;
  swarm.peers = read_each<int>(*node, diagnostics, [&](const JsonNode& one) {
    return read_count(one, listed ? 0 : 1, kMostPeers, diagnostics);
  });
}

std::vector<BytesPerSecond> read_rates(const JsonNode& node, Diagnostics& diagnostics) {
  return read_each<BytesPerSecond>(node, diagnostics, [&](const JsonNode& one) {
    return read_bytes_per_second(one, diagnostics);
  });
}

void read_links(Section& section, SwarmConditions& swarm) {
  Diagnostics& diagnostics = section.diagnostics();
  if (const auto speed = section.get("speed")) {
    swarm.speeds = read_each<double>(
        *speed, diagnostics, [&](const JsonNode& one) { return section.number_at("speed", one); });
  }
  if (const auto up = section.require("up", "a bandwidth such as \"200 Mb/s\"")) {
    swarm.up = read_rates(*up, diagnostics);
  }
  if (const auto down = section.get("down")) swarm.down = read_rates(*down, diagnostics);
  if (const auto latency = section.get("latency")) {
    swarm.latencies = read_each<Seconds>(
        *latency, diagnostics, [&](const JsonNode& one) { return read_seconds(one, diagnostics); });
  }
}

void read_times(Section& section, SwarmConditions& swarm) {
  Diagnostics& diagnostics = section.diagnostics();
  swarm.rebalance_every = section.written_duration("rebalance_every");
  swarm.duration = section.written_duration("duration").value_or(swarm.duration);
  if (const auto warm_up = section.get("warm_up")) {
    swarm.warm_up = read_seconds(*warm_up, diagnostics);
    if (swarm.warm_up && *swarm.warm_up >= swarm.duration) {
      report(diagnostics, *warm_up,
             "nothing is left to measure; expected less than the duration of " +
                 format(swarm.duration));
    }
  }
  swarm.detection = section.seconds("detection");
}

}  // namespace

SwarmConditions read_swarm(const JsonNode& node, Diagnostics& diagnostics) {
  SwarmConditions swarm;
  Section section(contract_object("swarm"), node, diagnostics);
  read_peers(section, swarm);
  read_links(section, swarm);
  swarm.routing = static_cast<SwarmRouting>(section.choice("routing"));
  swarm.int8 = section.choice("compression") == 1;
  swarm.in_flight = section.written_count("in_flight");
  swarm.delayed_update = section.boolean("delayed_update");
  swarm.redo_lost = section.choice("lost_gradients") == 0;
  if (const auto failures = section.get("failures")) {
    swarm.failures = read_failures("swarm.failures", *failures, diagnostics);
  }
  read_times(section, swarm);
  swarm.seeds = section.count("seeds");
  section.finish();
  return swarm;
}

}  // namespace interlock
