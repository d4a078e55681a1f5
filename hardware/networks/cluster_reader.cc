// Reads the cluster of a scenario: a machine of the catalogue, a file, or an inline object.
// SPDX-License-Identifier: Apache-2.0
//
// A machine, in a file or inline:
//   {"kind": "machine", "device": NAME | {...}, "devices_per_node": 8,
//    "port": {"latency": "3 us", "bandwidth": "300 GB/s"}, "pcie": {...}, "host": {...},
//    "cards": {"per_node": 8, "latency": "10 us", "bandwidth": "200 Gb/s"},
//    "network": {"kind": "fat-tree", ...}, "power": {...}, "price": ..., "origin": {...}}
// "cards" is left out where nodes cannot be joined, "port" on a torus of devices. Inline, "nodes"
// and "devices" stand beside.
#include "hardware/networks/cluster_reader.h"

#include <algorithm>
#include <cstdint>

#include "hardware/devices/catalogue_file.h"
#include "hardware/devices/device_reader.h"
#include "hardware/devices/real_devices_reader.h"
#include "hardware/devices/running_costs_reader.h"
#include "hardware/networks/machine_names.h"
#include "hardware/networks/network_reader.h"
#include "hardware/networks/network_size.h"

namespace interlock {
namespace {

constexpr const char* kMachineFolder = "hardware/catalogue";
constexpr double kQuickestHost = 0.01, kSlowestHost = 100;
constexpr int kMostDevicesPerNode = 1024;

/// Without cards the machine has one node: cards_per_node is then 0. Where a node has more cards
/// than devices, the traffic of each device is spread evenly over several, which then act as one.
void read_cards(ObjectReader& parent, Cluster& cluster) {
  cluster.cards_per_node = 0;
  const auto node = parent.get("cards");
  if (!node) return;
  ObjectReader reader(*node, parent.diagnostics());
  const int cards = reader.count("per_node", 1, 1, kMostDevicesPerNode);
  const LinkSpeed speed = read_link(reader);
  cluster.card_latency = speed.latency;
  cluster.card_bandwidth = speed.bandwidth;
  cluster.card_stated = speed.stated;
  cluster.cards_behind_ports = reader.boolean("behind_ports", false);
  reader.finish();
  const int devices = cluster.devices_per_node;
  cluster.cards_per_node = std::min(cards, devices);
  if (cards <= devices) return;
  const int striped = cards / devices;
  cluster.card_bandwidth *= striped;
  cluster.card_stated *= striped;
  if (cards % devices == 0) return;
  report(parent.diagnostics(), *node,
         "cards that cannot be divided among devices; expected at most the " +
             std::to_string(devices) + " devices of a node, or a multiple of them, got " +
             std::to_string(cards));
}

/// "port", or on a torus of devices the torus in its place.
void read_port(ObjectReader& reader, Cluster& cluster) {
  const auto* torus = std::get_if<Torus>(&cluster.network);
  const bool of_devices = torus != nullptr && torus->of_devices;
  if (!of_devices || reader.get("port")) {
    const LinkSpeed speed = read_speed(reader, "port");
    cluster.port_latency = speed.latency;
    cluster.port_bandwidth = speed.bandwidth;
    cluster.port_stated = speed.stated;
    if (of_devices) {
      report(reader.diagnostics(), *reader.get("port"),
             "nothing uses a port on a torus of devices; expected a torus of nodes, or no port");
    }
    return;
  }
  cluster.port_latency = torus->link.latency;
  cluster.port_bandwidth = torus->link.bandwidth;
  cluster.port_stated = torus->link.stated;
}

/// The way from each device to its host's memory, and the size of that.
void read_host(ObjectReader& reader, Cluster& cluster) {
  const auto node = reader.get("host");
  if (!node) return;
  ObjectReader host(*node, reader.diagnostics());
  cluster.host = read_link(host);
  if (host.get("memory")) cluster.host_memory = read_memory(host, "memory");
  cluster.host_pace = host.number("pace", 1, kQuickestHost, kSlowestHost);
  host.finish();
}

/// Parts of a named machine whose place those of a scenario take.
struct OwnParts {
  std::optional<JsonNode> device, network;
};

/// The members that every machine has; `reader` stands on its object and is not finished.
void read_machine(ObjectReader& reader, const std::string& name, const OwnParts& parts,
                  Cluster& cluster) {
  reader.choice("kind", {"machine"}, 0);
  cluster.name = reader.text("name", name);
  const auto device = reader.require("device", "a device's name, or an object");
  if (parts.device || device) {
    cluster.device = read_device(parts.device ? *parts.device : *device, reader.diagnostics());
  }
  cluster.devices_per_node = reader.count("devices_per_node", 1, 1, kMostDevicesPerNode);
  read_cards(reader, cluster);
  const auto own = reader.get("network");
  if (parts.network || own) {
    read_network(parts.network ? *parts.network : *own, cluster, reader.diagnostics());
  }
  read_port(reader, cluster);
  read_pcie(reader, cluster);
  read_host(reader, cluster);
  read_running_costs(reader, cluster.device.power, cluster.power, cluster.price);
  read_origin(reader);
}

/// "nodes" and "devices", which must suit the machine.
void read_size(ObjectReader& reader, Cluster& cluster) {
  const int nodes = reader.count("nodes", nodes_joined(cluster), 1, kMostDevices);
  const std::int64_t all = std::int64_t{nodes} * cluster.devices_per_node;
  const std::string owned = std::to_string(all) + " devices of " + std::to_string(nodes) +
                            (nodes == 1 ? " node" : " nodes") + " of \"" + cluster.name + "\"";
  if (nodes > 1 && !joins_nodes(cluster)) {
    report(reader.diagnostics(), *reader.get("nodes"),
           "\"" + cluster.name + "\" has no network cards; expected 1 node");
  }
  fit_network(cluster, nodes, reader.get("nodes").value_or(reader.node()), reader.diagnostics());
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

/// Returns the machines that have the device which stands in the place of a machine; empty: it is
/// a machine, a path, or nothing that is known.
std::string device_for_machine(const JsonNode& machine) {
  const std::string& name = machine.value->text;
  if (machine.value->kind != JsonValue::Kind::String || name.empty()) return "";
  const std::vector<std::string> machines = catalogue_names();
  if (std::find(machines.begin(), machines.end(), name) != machines.end()) return "";
  return machines_meant(name);
}

void read_named(const JsonNode& machine, const OwnParts& parts, Cluster& cluster,
                Diagnostics& diagnostics) {
  if (const std::string meant = device_for_machine(machine); !meant.empty()) {
    report(
        diagnostics, machine,
        "unknown name " + described(*machine.value) + ", which is a device, no machine; " + meant);
    return;
  }
  const auto entry = find_entry(machine, kMachineFolder, diagnostics);
  if (!entry) return;
  ObjectReader reader(entry->root(), diagnostics);
  read_machine(reader, entry->name, parts, cluster);
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
  const LinkSpeed speed = read_speed(reader, "link");
  cluster.port_latency = speed.latency;
  cluster.port_bandwidth = speed.bandwidth;
  cluster.port_stated = speed.stated;
  read_host(reader, cluster);
  read_running_costs(reader, cluster.device.power, cluster.power, cluster.price);
}

void read_object(const JsonNode& node, Cluster& cluster, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  if (node.value->find("kind") == nullptr) {
    const auto machine = reader.require("machine", "a machine's name, or the path of its file");
    const OwnParts parts = {reader.get("device"), reader.get("network")};
    if (machine) read_named(*machine, parts, cluster, diagnostics);
    if (!cluster.name.empty()) {
      read_size(reader, cluster);
      read_running_costs(reader, cluster.device.power, cluster.power, cluster.price);
    }
    for (const char* key : {"nodes", "devices", "power", "price"}) reader.get(key);
  } else {
    const auto kind = read_choice(*reader.get("kind"), {"uniform", "machine"}, diagnostics);
    if (!kind) return;
    if (*kind == 0) {
      read_uniform(reader, cluster);
    } else {
      read_machine(reader, "inline", {}, cluster);
      read_size(reader, cluster);
    }
  }
  if (const auto executor = reader.get("executor")) {
    cluster.executor = read_real_devices(*executor, diagnostics);
  }
  reader.finish();
}

}  // namespace

Cluster read_cluster(const JsonNode& node, Diagnostics& diagnostics) {
  Cluster cluster;
  if (node.value->kind == JsonValue::Kind::Object) {
    read_object(node, cluster, diagnostics);
  } else {
    read_named(node, {}, cluster, diagnostics);
    const int nodes = nodes_joined(cluster);
    cluster.devices = nodes * cluster.devices_per_node;
    fit_network(cluster, nodes, node, diagnostics);
  }
  return cluster;
}

std::vector<std::string> catalogue_names() { return catalogue_entries(kMachineFolder); }

}  // namespace interlock
