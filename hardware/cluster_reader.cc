// Reads the cluster of a scenario: a machine of the catalogue, a file, or an inline object.
// SPDX-License-Identifier: Apache-2.0
//
// A machine, in a file or inline:
//   {"kind": "machine", "device": NAME | {...}, "devices_per_node": 8,
//    "port": {"latency": "3 us", "bandwidth": "300 GB/s"},
//    "cards": {"per_node": 8, "latency": "10 us", "bandwidth": "200 Gb/s"}, "origin": {...}}
// "cards" is left out where nodes cannot be joined. Inline, "nodes" and "devices" stand beside.
#include <algorithm>
#include <cstdint>

#include "hardware/catalogue_file.h"
#include "hardware/cluster.h"
#include "hardware/device_reader.h"

namespace interlock {
namespace {

constexpr const char* kFolder = "hardware/catalogue";
constexpr int kMostDevices = 1'000'000;
constexpr int kMostDevicesPerNode = 1024;

void read_port(ObjectReader& parent, std::string_view key, Cluster& cluster) {
  const auto node = parent.require(key, "an object with \"latency\" and \"bandwidth\"");
  if (!node) return;
  ObjectReader reader(*node, parent.diagnostics());
  cluster.port_latency = read_delay(reader, "latency");
  cluster.port_bandwidth = read_bandwidth(reader, "bandwidth");
  reader.finish();
}

/// Without cards the machine has one node: cards_per_node is then 0.
void read_cards(ObjectReader& parent, Cluster& cluster) {
  cluster.cards_per_node = 0;
  const auto node = parent.get("cards");
  if (!node) return;
  ObjectReader reader(*node, parent.diagnostics());
  cluster.cards_per_node = reader.count("per_node", 1, 1, cluster.devices_per_node);
  cluster.card_latency = read_delay(reader, "latency");
  cluster.card_bandwidth = read_bandwidth(reader, "bandwidth");
  reader.finish();
}

/// The members that every machine has; `reader` stands on its object and is not finished.
void read_machine(ObjectReader& reader, const std::string& name, Cluster& cluster) {
  reader.choice("kind", {"machine"}, 0);
  cluster.name = reader.text("name", name);
  if (const auto device = reader.require("device", "a device's name, or an object")) {
    cluster.device = read_device(*device, reader.diagnostics());
  }
  cluster.devices_per_node = reader.count("devices_per_node", 1, 1, kMostDevicesPerNode);
  read_port(reader, "port", cluster);
  read_cards(reader, cluster);
  read_origin(reader);
}

/// "nodes" and "devices", which must suit the machine.
void read_size(ObjectReader& reader, Cluster& cluster) {
  const int nodes = reader.count("nodes", 1, 1, kMostDevices);
  const std::int64_t all = std::int64_t{nodes} * cluster.devices_per_node;
  const std::string owned = std::to_string(all) + " devices of " + std::to_string(nodes) +
                            (nodes == 1 ? " node" : " nodes") + " of \"" + cluster.name + "\"";
  if (nodes > 1 && cluster.cards_per_node == 0) {
    report(reader.diagnostics(), *reader.get("nodes"),
           "\"" + cluster.name + "\" has no network cards; expected 1 node");
  }
  const auto node = reader.get("devices");
  if (!node) {
    if (all > kMostDevices) {
      report(reader.diagnostics(), reader.node(),
             "too many devices; expected at most 1000000, got the " + owned);
      return;
    }
    cluster.devices = static_cast<int>(all);
    return;
  }
  const auto devices = read_count(*node, 1, kMostDevices, reader.diagnostics());
  if (!devices) return;
  if (*devices > all) {
    report(reader.diagnostics(), *node,
           "too many devices; expected 1 to the " + owned + ", got " + std::to_string(*devices));
    return;
  }
  cluster.devices = *devices;
}

void read_named(const JsonNode& machine, Cluster& cluster, Diagnostics& diagnostics) {
  const auto entry = find_entry(machine, kFolder, diagnostics);
  if (!entry) return;
  ObjectReader reader(entry->root(), diagnostics);
  read_machine(reader, entry->name, cluster);
  reader.finish();
}

void read_uniform(ObjectReader& reader, Cluster& cluster) {
  cluster.name = reader.text("name", "uniform");
  cluster.mesh = true;
  if (const auto node = reader.require("devices", "a number of devices")) {
    cluster.devices = read_count(*node, 1, kMostDevices, reader.diagnostics()).value_or(1);
  }
  cluster.devices_per_node = cluster.devices;
  const auto device = reader.get("device");
  if (device) {
    cluster.device = read_device(*device, reader.diagnostics());
  } else {
    cluster.device.name = cluster.name;
  }
  if (!device || reader.get("memory")) cluster.device.memory = read_memory(reader, "memory");
  read_port(reader, "link", cluster);
}

void read_object(const JsonNode& node, Cluster& cluster, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  if (node.value->find("kind") == nullptr) {
    const auto machine = reader.require("machine", "a machine's name, or the path of its file");
    if (machine) read_named(*machine, cluster, diagnostics);
    if (!cluster.name.empty()) read_size(reader, cluster);
    reader.get("nodes");
    reader.get("devices");
  } else {
    const auto kind = read_choice(*reader.get("kind"), {"uniform", "machine"}, diagnostics);
    if (!kind) return;
    if (*kind == 0) {
      read_uniform(reader, cluster);
    } else {
      read_machine(reader, "inline", cluster);
      read_size(reader, cluster);
    }
  }
  reader.finish();
}

}  // namespace

Cluster read_cluster(const JsonNode& node, Diagnostics& diagnostics) {
  Cluster cluster;
  if (node.value->kind == JsonValue::Kind::Object) {
    read_object(node, cluster, diagnostics);
  } else {
    read_named(node, cluster, diagnostics);
    cluster.devices = cluster.devices_per_node;
  }
  return cluster;
}

std::vector<std::string> catalogue_names() { return catalogue_entries(kFolder); }

}  // namespace interlock
