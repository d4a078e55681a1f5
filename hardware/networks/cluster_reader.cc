// Reads the cluster of a scenario: a machine of the catalogue, a file, or an inline object.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/cluster_reader.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "hardware/devices/catalogue_file.h"
#include "hardware/devices/device_reader.h"
#include "hardware/devices/real_devices_reader.h"
#include "hardware/devices/running_costs_reader.h"
#include "hardware/networks/machine_names.h"
#include "hardware/networks/network_reader.h"
#include "hardware/networks/network_size.h"
#include "hardware/networks/node_share.h"

namespace interlock {
namespace {

constexpr const char* kMachineFolder = "hardware/catalogue";
constexpr std::size_t kMixed = 3;  // place of its rows in own_objects()

ContractKey kinds_key() {
  using namespace contract;
  return {"kinds", list(object("cluster.kind"), 1, 64), "one: the device",
          "Devices of several kinds in each node, from its first place on; a node has as many "
          "devices as they are together. Ports, cards, host and price are the machine's."};
}

ContractKey host_key() {
  return {"host", contract::object("cluster.host"), "unknown, so nothing can be kept there",
          "The way from each device to its host's memory."};
}

/// Returns the rows of "nodes", of that `meaning`, and "devices".
std::vector<ContractKey> size_keys(const std::string& meaning) {
  using namespace contract;
  return {{"nodes", whole(1, kMostDevices), "as many as its network is made for, else 1", meaning},
          {"devices", whole(1, kMostDevices), "all of the nodes", "Devices used."}};
}

/// Returns the rows of a machine; those of a file do not say how many nodes there are, nor what
/// trains.
std::vector<ContractKey> machine_keys(bool in_file) {
  using namespace contract;
  using Keys = std::vector<ContractKey>;
  const Keys own = {{"kind", one_of({"machine"}), "required", "The kind of this cluster."},
                    {"name", text(), "`inline`", "Name in results."},
                    {"device", device_type(), "required, but beside `kinds`",
                     "What computes: a name of the catalogue, `calibrated/NAME` of what `interlock "
                     "calibrate` measured, the path of a file, or its figures."},
                    {"devices_per_node", whole(1, 1024), "1", "Devices of one node."},
                    {"port", object("cluster.link"), "required, but on a torus of devices",
                     "Port of a device into its node's switch, PCIe tree or pairs, up and down."},
                    node_topology_key(),
                    {"pcie", object("cluster.pcie"), "as `node_topology` says",
                     "The PCIe tree that joins the devices of a node."},
                    host_key(),
                    {"cards", object("cluster.machine.cards"), "none: one node only",
                     "Network cards between nodes."},
                    network_key("one ideal switch")};
  const Keys origin = {{"origin", map(text()), "", "Where each number comes from; not used."}};
  return joined({own, in_file ? Keys() : Keys{kinds_key()}, in_file ? Keys() : size_keys("Nodes."),
                 origin, in_file ? Keys() : Keys{executor_key(), collectives_key()},
                 running_cost_keys("unknown")});
}

std::vector<ContractKey> named_keys() {
  using namespace contract;
  const std::vector<ContractKey> machine = {{"machine", text("dgx-a100-80g"), "required",
                                             "Name in the catalogue, or path of a machine file."}};
  return joined(
      {machine,
       size_keys("Nodes of it."),
       {{"device", device_type(), "the machine's", "Another device in the place of its own."},
        {"devices_per_node", whole(1, 1024), "the machine's",
         "Devices used of each node, with their cards where each has one or several of its own; "
         "the host and the power beside devices stay whole. `init` and `plan` take 64 of the 72 of "
         "a rack where they fill no whole racks."},
        kinds_key(),
        network_key("the machine's"),
        executor_key(),
        collectives_key()},
       running_cost_keys("the machine's")});
}

std::vector<ContractKey> uniform_keys() {
  using namespace contract;
  const std::vector<ContractKey> own = {
      {"kind", one_of({"uniform"}), "required", "The kind of this cluster."},
      {"name", text(), "`uniform`", "Name in results."},
      {"devices", whole(1, kMostDevices), "required", "Devices."},
      {"memory", size(), "the device's, if one is given; else required", "Memory of each device."},
      {"device", device_type(), "none",
       "What computes, as of a machine; without it only profiles can run."},
      {"link", object("cluster.link"), "required", "The link of each pair."},
      host_key(),
      executor_key(),
      collectives_key()};
  return joined({own, running_cost_keys("unknown")});
}

std::vector<ContractKey> mixed_keys() {
  using namespace contract;
  return {
      {"machines",
       list(either({named(catalogue_names), object("cluster.named"), object("cluster.machine")}), 1,
            256),
       "required",
       "Machines, each with its nodes, and with what it has of its own: device, price, power."},
      {"name", text(), "the machines' names", "Name in results."},
      {"devices", whole(1, kMostDevices), "all of the machines", "Devices used, the first ones."},
      network_key("one ideal switch"),
      executor_key(),
      collectives_key()};
}

/// Returns the rows of a cluster: of a machine by its name, of each kind; then of their parts.
const std::vector<ContractObject>& own_objects() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {
      {.name = "cluster.named", .meaning = "A machine by its name.", .keys = named_keys()},
      {.name = "cluster.uniform",
       .meaning = "A full mesh of private full-duplex links between equal devices, so that "
                  "nothing is shared.",
       .keys = uniform_keys()},
      {.name = "cluster.machine",
       .meaning =
           "A machine in the form of the catalogue's files. A device has an up and a down "
           "port into its node's switch or PCIe tree; nodes are joined by network cards, each "
           "shared by the devices of its part of the node.",
       .keys = machine_keys(false)},
      {.name = "cluster.mixed",
       .meaning =
           "Nodes of several machines in one cluster: those of the first machine come first, "
           "with the first devices.",
       .keys = mixed_keys()},
      {.name = "cluster.kind",
       .meaning = "Devices of one kind among those of a node.",
       .keys = {{"device", device_type(), "required", "What computes, as of a machine."},
                {"count", whole(1, 1024), "1", "Devices of it in a node."}}},
      {.name = "cluster.machine.cards",
       .meaning = "Network cards between nodes.",
       .keys = {{"per_node", whole(1, 1024), "1",
                 "Cards of one node: at most its devices, which then share them, or a multiple, "
                 "whose bandwidths add up."},
                {"latency", time(), "0 s",
                 "Of a message through one switch, from device to device."},
                {"bandwidth", bandwidth(), "required", "Of one card, one direction."},
                link_efficiency_key(),
                {"behind_ports", boolean(), "false",
                 "Messages between nodes cross the ports of their devices, too, as they always do "
                 "on a PCIe tree. Beside NVSwitch they do not: cards are reached by PCIe."}}},
      {.name = "cluster.host",
       .meaning = "The way from each device to its host's memory.",
       .keys = {{"latency", time(), "0 s", "Added to every copy."},
                {"bandwidth", bandwidth(), "required", "One direction, by the data sheet."},
                link_efficiency_key(),
                {"memory", size(), "unknown, and taken to suffice",
                 "Of a node's host, which all its devices share; a uniform cluster is one node."},
                {"pace", number(0.01, 100), "1",
                 "Time that the host takes to issue a kernel or a collective, relative to the time "
                 "of the framework's entry."}}}};
  return objects;
}

/// Returns the rows of a file of the catalogue.
const ContractObject& machine_file() {
  static const ContractObject object = {
      .name = "machine file", .meaning = "A machine.", .keys = machine_keys(true)};
  return object;
}

/// Without cards the machine has one node: cards_per_node is then 0. Where a node has more cards
/// than devices, the traffic of each device is spread evenly over several, which then act as one.
/// `parent` is of a node of `stated` devices, each of which brings its own cards along, if it has.
void read_cards(Section& parent, int stated, Machine& machine) {
  machine.cards_per_node = 0;
  const auto node = parent.get("cards");
  if (!node) return;
  Section reader(contract_object(own_objects(), "cluster.machine.cards"), *node,
                 parent.diagnostics());
  const int written = reader.count("per_node");
  const int cards = cards_of_share(written, stated, machine.devices_per_node);
  const LinkSpeed speed = read_link(reader);
  machine.card_latency = speed.latency;
  machine.card_bandwidth = speed.bandwidth;
  machine.card_stated = speed.stated;
  machine.cards_behind_ports = reader.boolean("behind_ports");
  reader.finish();
  const int devices = machine.devices_per_node;
  machine.cards_per_node = std::min(cards, devices);
  if (cards <= devices) return;
  const int striped = cards / devices;
  machine.card_bandwidth *= striped;
  machine.card_stated *= striped;
  if (cards % devices == 0) return;
  report(parent.diagnostics(), *node,
         "cards that cannot be divided among devices; expected at most the " +
             std::to_string(devices) + " devices of a node, or a multiple of them, got " +
             std::to_string(cards));
}

/// "port", or on a torus of devices the torus in its place.
void read_port(Section& reader, const Network& network, Machine& machine) {
  const auto* torus = std::get_if<Torus>(&network);
  const bool of_devices = torus != nullptr && torus->of_devices;
  if (!of_devices || reader.get("port")) {
    const LinkSpeed speed = read_speed(reader, "port");
    machine.port_latency = speed.latency;
    machine.port_bandwidth = speed.bandwidth;
    machine.port_stated = speed.stated;
    if (of_devices) {
      report(reader.diagnostics(), *reader.get("port"),
             "nothing uses a port on a torus of devices; expected a torus of nodes, or no port");
    }
    return;
  }
  machine.port_latency = torus->link.latency;
  machine.port_bandwidth = torus->link.bandwidth;
  machine.port_stated = torus->link.stated;
}

/// The way from each device to its host's memory, and the size of that.
void read_host(Section& reader, Machine& machine) {
  const auto node = reader.get("host");
  if (!node) return;
  Section host(contract_object(own_objects(), "cluster.host"), *node, reader.diagnostics());
  machine.host = read_link(host);
  if (host.get("memory")) machine.host_memory = read_memory(host, "memory");
  machine.host_pace = host.number("pace");
  host.finish();
}

/// Devices of one kind, side by side in a node.
struct NodeKind {
  Device device;
  int count = 1;
};

/// Reads "kinds"; none if it is not written.
std::vector<NodeKind> read_kinds(Section& reader) {
  std::vector<NodeKind> kinds;
  const auto list = reader.get("kinds");
  if (!list) return kinds;
  for (const char* key : {"device", "devices_per_node"}) {
    if (reader.node().value->find(key) == nullptr) continue;
    report(reader.diagnostics(), reader.node().child(key),
           "given beside \"kinds\", which say it; expected one of the two");
  }
  for (const JsonNode& node : reader.items_at("kinds", *list, "wrong list of kinds",
                                              "objects with \"device\" and \"count\"")) {
    Section kind(contract_object(own_objects(), "cluster.kind"), node, reader.diagnostics());
    const auto device = kind.require("device", "a device's name, or an object");
    const int count = kind.count("count");
    if (device) kinds.push_back({read_device(*device, reader.diagnostics()), count});
    kind.finish();
  }
  return kinds;
}

/// Puts `kinds` into the nodes of a cluster of one machine, whose device is the first of them.
void put_kinds(const std::vector<NodeKind>& kinds, const JsonNode& node, Cluster& cluster,
               Diagnostics& diagnostics) {
  constexpr std::size_t kMostMachines = 1024;
  if (kinds.empty()) return;
  if (static_cast<std::size_t>(nodes(cluster)) * kinds.size() > kMostMachines) {
    return report(diagnostics, node,
                  "too many nodes of several kinds; expected at most " +
                      std::to_string(kMostMachines / kinds.size()) + " nodes");
  }
  const Machine box = std::move(cluster.machines.front());
  cluster.machines.clear();
  for (int device = 0; device < cluster.devices;) {
    for (const NodeKind& kind : kinds) {
      if (device >= cluster.devices) break;
      cluster.machines.push_back(box);
      Machine& part = cluster.machines.back();
      part.first_device = device;
      part.joins = device > 0;
      part.device = kind.device;
      // The power that a scenario writes for a machine holds for all of its devices.
      if (node.value->find("power") != nullptr) part.device.power = box.device.power;
      device += kind.count;
    }
  }
}

/// Parts of a named machine whose place those of a scenario take.
struct OwnParts {
  std::optional<JsonNode> device, network;
  std::optional<int> devices_per_node = {};
  std::vector<NodeKind> kinds = {};
};

/// The members that every machine has; `reader` stands on its object and is not finished.
void read_machine(Section& reader, const std::string& name, const OwnParts& parts,
                  Cluster& cluster) {
  Machine& machine = cluster.machines.front();
  reader.choice("kind", 0);
  cluster.name = machine.name = reader.text("name", name);
  const auto device = parts.kinds.empty()
                          ? reader.require("device", "a device's name, or an object")
                          : reader.get("device");
  int stated = reader.count("devices_per_node");
  machine.devices_per_node = parts.devices_per_node.value_or(stated);
  if (!parts.kinds.empty()) {
    machine.device = parts.kinds.front().device;
    machine.devices_per_node = 0;
    for (const NodeKind& kind : parts.kinds) machine.devices_per_node += kind.count;
    stated = machine.devices_per_node;  // cards are the machine's
  } else if (parts.device || device) {
    machine.device = read_device(parts.device ? *parts.device : *device, reader.diagnostics());
  }
  read_cards(reader, stated, machine);
  const auto own = reader.get("network");
  if (parts.network || own) {
    read_network(parts.network ? *parts.network : *own, cluster, reader.diagnostics());
  }
  read_port(reader, cluster.network, machine);
  read_node_links(reader, cluster.network, machine);
  read_host(reader, machine);
  read_running_costs(reader, machine.device.power, machine.power, machine.price);
  read_origin(reader);
}

/// Clusters by themselves, whose nodes fill their network, and those that another network joins.
enum class Joined { ByOwn, ByOther };

/// "nodes" and "devices", which must suit the machine.
void read_size(Section& reader, Joined joined, Cluster& cluster) {
  const int nodes = reader.count("nodes", nodes_joined(cluster));
  const std::int64_t all = std::int64_t{nodes} * cluster.machines.front().devices_per_node;
  const std::string owned = std::to_string(all) + " devices of " + std::to_string(nodes) +
                            (nodes == 1 ? " node" : " nodes") + " of \"" + cluster.name + "\"";
  if (nodes > 1 && !joins_nodes(cluster)) {
    report(reader.diagnostics(), *reader.get("nodes"),
           "\"" + cluster.name + "\" has no network cards; expected 1 node");
  }
  const JsonNode where = reader.get("nodes").value_or(reader.node());
  if (joined == Joined::ByOwn) fit_network(cluster, nodes, where, reader.diagnostics());
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
  const auto devices = reader.count_at("devices", *node);
  if (!devices) return;
  if (*devices > all) {
    report(reader.diagnostics(), *node,
           "too many devices; expected 1 to the " + owned + ", got " + std::to_string(*devices));
    return;
  }
  cluster.devices = *devices;
}

void read_named(const JsonNode& machine, const OwnParts& parts, Cluster& cluster,
                Diagnostics& diagnostics) {
  if (const std::string unknown = unknown_machine(*machine.value); !unknown.empty()) {
    report(diagnostics, machine, unknown);
    return;
  }
  const auto entry = find_entry(machine, kMachineFolder, diagnostics);
  if (!entry) return;
  Section reader(machine_file(), entry->root(), diagnostics);
  read_machine(reader, entry->name, parts, cluster);
  reader.finish();
}

void read_uniform(Section& reader, Cluster& cluster) {
  Machine& machine = cluster.machines.front();
  reader.get("kind");
  cluster.name = machine.name = reader.text("name", "uniform");
  cluster.mesh = true;
  cluster.devices = reader.required_count("devices", "a number of devices");
  machine.devices_per_node = cluster.devices;
  const auto device = reader.get("device");
  if (device) {
    machine.device = read_device(*device, reader.diagnostics());
  } else {
    machine.device.name = cluster.name;
  }
  if (!device || reader.get("memory")) machine.device.memory = read_memory(reader, "memory");
  const LinkSpeed speed = read_speed(reader, "link");
  machine.port_latency = speed.latency;
  machine.port_bandwidth = speed.bandwidth;
  machine.port_stated = speed.stated;
  read_host(reader, machine);
  read_running_costs(reader, machine.device.power, machine.power, machine.price);
}

/// Reports what of a machine among others belongs to the whole cluster, or fits none that is mixed.
void check_part(const Cluster& part, const JsonNode& node, Diagnostics& diagnostics) {
  for (const char* key : {"network", "executor", "collectives", "machines"}) {
    if (node.value->find(key) == nullptr) continue;
    report(diagnostics, node.child(key),
           "belongs to all machines together; expected it beside \"machines\"");
  }
  const auto* torus = std::get_if<Torus>(&part.network);
  if (part.mesh || (torus != nullptr && torus->of_devices)) {
    report(diagnostics, node,
           in_quotes(part.name) +
               " joins its devices without nodes; expected a machine whose nodes have cards");
  } else if (part.machines.front().cards_per_node == 0) {
    report(diagnostics, node,
           in_quotes(part.name) +
               " has no network cards to join it to the others; expected "
               "\"cards\", or a machine that has some");
  }
}

/// Adds the machines of `part` behind the others.
void add_machines(Cluster part, Cluster& cluster) {
  for (Machine& machine : part.machines) {
    machine.first_device += cluster.devices;
    cluster.machines.push_back(std::move(machine));
  }
  cluster.devices += part.devices;
}

/// Returns "dgx-a100-40g + dgx-h100" of a cluster's machines.
std::string names_of(const std::vector<Machine>& machines) {
  std::string names;
  for (const Machine& machine : machines) {
    if (!machine.joins) names += (names.empty() ? "" : " + ") + machine.name;
  }
  return names;
}

/// Reports what the power of links and the building's share cannot be added up with.
void check_running_costs(const std::vector<Machine>& machines, const JsonNode& node,
                         Diagnostics& diagnostics) {
  const Machine& first = machines.front();
  for (const Machine& other : machines) {
    if (first.price && other.price && first.price->currency != other.price->currency) {
      report(diagnostics, node,
             "prices in " + first.price->currency + " and " + other.price->currency +
                 "; expected one currency for all machines");
    }
    if (first.power.pue != other.power.pue || first.power.link != other.power.link) {
      report(diagnostics, node,
             "another \"pue\" or power of a \"link\" for " + in_quotes(other.name) + " than for " +
                 in_quotes(first.name) + "; expected the same for all machines");
    }
  }
}

/// Leaves the devices that are used, and the machines that have any of them.
void use_first(int devices, Cluster& cluster) {
  cluster.devices = devices;
  while (cluster.machines.back().first_device >= devices) cluster.machines.pop_back();
}

Cluster read_form(const JsonNode& node, Joined joined, Diagnostics& diagnostics);

/// "machines": nodes of several machines, and the network between them.
void read_mixed(Section& reader, Cluster& cluster) {
  Diagnostics& diagnostics = reader.diagnostics();
  const auto list = reader.require("machines", "a list of machines");
  const auto network = reader.get("network");
  const auto used = reader.get("devices");
  const std::string name = reader.text("name", "");
  if (!list) return;
  Cluster all;
  all.devices = 0;
  all.machines.clear();
  const std::size_t before = diagnostics.messages().size();
  for (const JsonNode& node :
       reader.items_at("machines", *list, "wrong list of machines", "machines with their nodes")) {
    Cluster part = read_form(node, Joined::ByOther, diagnostics);
    check_part(part, node, diagnostics);
    const bool own = part.network.index() != 0 && node.value->find("network") == nullptr;
    if (own && !network) {
      report(diagnostics, node,
             in_quotes(part.name) +
                 " has a network of its own; expected \"network\" beside \"machines\", which "
                 "joins the nodes of all");
    }
    if (diagnostics.messages().size() == before) add_machines(std::move(part), all);
  }
  if (diagnostics.messages().size() != before || all.machines.empty()) return;
  check_running_costs(all.machines, *list, diagnostics);
  if (all.devices > kMostDevices) {
    report(diagnostics, *list,
           "too many devices; expected at most " + std::to_string(kMostDevices));
    return;
  }
  if (network) read_network(*network, all, diagnostics);
  fit_network(all, nodes(all), network.value_or(reader.node()), diagnostics);
  if (used) {
    const auto devices = reader.count_at("devices", *used);
    if (devices && *devices > all.devices) {
      report(diagnostics, *used,
             "too many devices; expected 1 to the " + std::to_string(all.devices) +
                 " of all machines, got " + std::to_string(*devices));
    } else if (devices) {
      use_first(*devices, all);
    }
  }
  all.name = name.empty() ? names_of(all.machines) : name;
  cluster = std::move(all);
}

void read_object(const JsonNode& node, Joined joined, Cluster& cluster, Diagnostics& diagnostics) {
  std::size_t form = 0;  // place in own_objects(): a machine by its name, else by kind
  if (node.value->find("machines") != nullptr) {
    form = kMixed;
  } else if (node.value->find("kind") != nullptr) {
    std::vector<std::string> kinds;
    for (const std::size_t i : {1, 2}) {
      kinds.push_back(contract_names(own_objects()[i], "kind").front());
    }
    const auto kind = read_choice(node.child("kind"), kinds, diagnostics);
    if (!kind) return;  // which keys are known depends on the kind
    form = 1 + static_cast<std::size_t>(*kind);
  }
  Section reader(own_objects()[form], node, diagnostics);
  if (form == 0) {
    const auto machine = reader.require("machine", "a machine's name, or the path of its file");
    const OwnParts parts = {reader.get("device"), reader.get("network"),
                            reader.written_count("devices_per_node"), read_kinds(reader)};
    if (machine) read_named(*machine, parts, cluster, diagnostics);
    if (!cluster.name.empty()) {
      read_size(reader, joined, cluster);
      Machine& own = cluster.machines.front();
      read_running_costs(reader, own.device.power, own.power, own.price);
      put_kinds(parts.kinds, node, cluster, diagnostics);
    }
    for (const char* key : {"nodes", "devices", "power", "price"}) reader.get(key);
  } else if (form == 1) {
    read_uniform(reader, cluster);
  } else if (form == kMixed) {
    read_mixed(reader, cluster);
  } else {
    const OwnParts parts = {.kinds = read_kinds(reader)};
    read_machine(reader, "inline", parts, cluster);
    read_size(reader, joined, cluster);
    put_kinds(parts.kinds, node, cluster, diagnostics);
  }
  if (const auto executor = reader.get("executor")) {
    cluster.executor = read_real_devices(*executor, diagnostics);
  }
  read_collectives_key(reader, cluster);
  reader.finish();
}

/// Reads a cluster, or a machine among several.
Cluster read_form(const JsonNode& node, Joined joined, Diagnostics& diagnostics) {
  Cluster cluster;
  if (node.value->kind == JsonValue::Kind::Object) {
    read_object(node, joined, cluster, diagnostics);
    return cluster;
  }
  read_named(node, {}, cluster, diagnostics);
  const int nodes = nodes_joined(cluster);
  cluster.devices = nodes * cluster.machines.front().devices_per_node;
  if (joined == Joined::ByOwn) fit_network(cluster, nodes, node, diagnostics);
  return cluster;
}

}  // namespace

const std::vector<ContractObject>& cluster_contract() {
  static const std::vector<ContractObject> all = contract::joined({own_objects(),
                                                                   {link_object(), pcie_object()},
                                                                   power_contract(),
                                                                   network_contract(),
                                                                   executor_contract(),
                                                                   device_contract()});
  return all;
}

ContractType cluster_type() {
  using namespace contract;
  return either({named(catalogue_names), object("cluster.named"), object("cluster.uniform"),
                 object("cluster.machine"), object("cluster.mixed")});
}

Cluster read_cluster(const JsonNode& node, Diagnostics& diagnostics) {
  return read_form(node, Joined::ByOwn, diagnostics);
}

std::vector<std::string> catalogue_names() { return catalogue_entries(kMachineFolder); }

}  // namespace interlock
