// The scenario contract: "cluster" and its networks, which hardware/ reads.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/device_reader.h"
#include "scenarios/contract/contract_parts.h"

namespace interlock::contract {
namespace {

ContractType device_type() {
  return either({named(device_names), object("cluster.device"), object("cluster.device.base")});
}

ContractKey efficiency_key() {
  return {"efficiency", number(0.001, 1), "1",
          "Share of the bandwidth that messages and collectives reach."};
}

ContractType network_type() {
  return either({object("cluster.network.switch"), object("cluster.network.fat-tree"),
                 object("cluster.network.dragonfly"), object("cluster.network.torus"),
                 object("cluster.network.wan")});
}

ContractType executor_type() {
  return either({one_of({"virtual", "cpu", "cuda"}), object("cluster.executor.cpu"),
                 object("cluster.executor.virtual"), object("cluster.executor.cuda")});
}

ContractKey host_key() {
  return {"host", object("cluster.host"), "unknown, so nothing can be kept there",
          "The way from each device to its host's memory."};
}

ContractKey network_key(const std::string& otherwise) {
  return {"network", network_type(), otherwise, "What joins the cards of the nodes."};
}

/// Adds to `keys` those that clusters of every form have.
std::vector<ContractKey> with_running_costs(std::vector<ContractKey> keys,
                                            const std::string& otherwise) {
  keys.push_back({"executor", executor_type(), "cpu",
                  "What trains the scenario for real (`interlock train`, `interlock validate "
                  "run`); simulations do not ask."});
  keys.push_back({"power", object("cluster.power"), otherwise,
                  "What the machine draws. Each key takes the place of the machine's, or of its "
                  "device's."});
  keys.push_back({"price", price(), otherwise,
                  "Price of one device for an hour, with all around it, in any currency."});
  return keys;
}

ContractObject named_machine() {
  return {
      .name = "cluster.named",
      .meaning = "A machine by its name.",
      .keys = with_running_costs(
          {{"machine", text("dgx-a100-80g"), "required",
            "Name in the catalogue, or path of a machine file."},
           {"nodes", whole(1), "as many as its network is made for, else 1", "Nodes of it."},
           {"devices", whole(1), "all of the nodes", "Devices used."},
           {"device", device_type(), "the machine's", "Another device in the place of its own."},
           network_key("the machine's")},
          "the machine's")};
}

ContractObject uniform() {
  return {.name = "cluster.uniform",
          .meaning =
              "A full mesh of private full-duplex links between equal devices, so that "
              "nothing is shared.",
          .keys = with_running_costs(
              {{"kind", one_of({"uniform"}), "required", "The kind of this cluster."},
               {"name", text(), "`uniform`", "Name in results."},
               {"devices", whole(1), "required", "Devices."},
               {"memory", size(), "the device's, if one is given; else required",
                "Memory of each device."},
               {"device", device_type(), "none",
                "What computes, as of a machine; without it only profiles can run."},
               {"link", object("cluster.link"), "required", "The link of each pair."},
               host_key()},
              "unknown")};
}

std::vector<ContractObject> machine() {
  return {
      {.name = "cluster.machine",
       .meaning =
           "A machine in the form of the catalogue's files. A device has an up and a down "
           "port into its node's switch or PCIe tree; nodes are joined by network cards, each "
           "shared by the devices of its part of the node.",
       .keys = with_running_costs(
           {{"kind", one_of({"machine"}), "required", "The kind of this cluster."},
            {"name", text(), "`inline`", "Name in results."},
            {"device", device_type(), "required",
             "What computes: a name of the catalogue, `calibrated/NAME` of what `interlock "
             "calibrate` "
             "measured, the path of a file, or its figures."},
            {"devices_per_node", whole(1, 1024), "1", "Devices of one node."},
            {"port", object("cluster.link"), "required, but on a torus of devices",
             "Port of a device into its node's switch or PCIe tree, up and down."},
            {"pcie", object("cluster.pcie"), "an ideal switch",
             "The PCIe tree that joins the devices of a node."},
            host_key(),
            {"cards", object("cluster.machine.cards"), "none: one node only",
             "Network cards between nodes."},
            network_key("one ideal switch"),
            {"nodes", whole(1), "as many as its network is made for, else 1", "Nodes."},
            {"devices", whole(1), "all of the nodes", "Devices used."},
            {"origin", map(text()), "", "Where each number comes from; not used."}},
           "unknown")},
      {.name = "cluster.machine.cards",
       .meaning = "Network cards between nodes.",
       .keys = {
           {"per_node", whole(1, 1024), "1",
            "Cards of one node: at most its devices, which then share them, or a multiple, "
            "whose bandwidths add up."},
           {"latency", time(), "0 s", "Of a message through one switch, from device to device."},
           {"bandwidth", bandwidth(), "required", "Of one card, one direction."},
           efficiency_key(),
           {"behind_ports", boolean(), "false",
            "Messages between nodes cross the ports of their devices, too, as they always do "
            "on a PCIe tree. Beside NVSwitch they do not: cards are reached by PCIe."}}}};
}

std::vector<ContractObject> links() {
  return {
      {.name = "cluster.link",
       .meaning = "A link, each direction for itself.",
       .keys = {{"latency", time(), "0 s", "Added to every message."},
                {"bandwidth", bandwidth(), "required", "One direction, by the data sheet."},
                efficiency_key()}},
      {.name = "cluster.host",
       .meaning = "The way from each device to its host's memory.",
       .keys = {{"latency", time(), "0 s", "Added to every copy."},
                {"bandwidth", bandwidth(), "required", "One direction, by the data sheet."},
                efficiency_key(),
                {"memory", size(), "unknown, and taken to suffice",
                 "Of a node's host, which all its devices share; a uniform cluster is one node."},
                {"pace", number(0.01, 100), "1",
                 "Time that the host takes to issue a kernel or a collective, relative to the time "
                 "of the framework's entry."}}},
      {.name = "cluster.pcie",
       .meaning = "The PCIe tree of a node. Messages between sockets cross both uplinks and the "
                  "socket link; a card sits beside the first device that uses it.",
       .keys = {{"sockets", whole(1, 1024), "1", "Host bridges of a node."},
                {"switches", whole(1, 1024), "one for each socket", "PCIe switches of a node."},
                {"uplink", object("cluster.link"), "devices sit on host bridges themselves",
                 "From a switch to its host bridge. Required with more switches than sockets."},
                {"socket_link", object("cluster.link"), "required with more than one socket",
                 "Between two sockets."}}},
      {.name = "cluster.power",
       .meaning = "What the machine draws; see [power and prices](long-runs.md#power-and-prices).",
       .keys = {
           {"busy", power(), "the device's", "Of a device that executes anything."},
           {"idle", power(), "the device's", "Of a device that waits."},
           {"link", power(), "unknown, and left out",
            "Of a one-way link while it carries bytes at its full speed."},
           {"node", power(), "unknown, and left out",
            "Of all of a node but its devices, which share it evenly."},
           {"pue", number(1, 10), "1", "What the building draws, over what the machine draws."}}}};
}

}  // namespace

std::vector<ContractObject> cluster_objects() {
  std::vector<ContractObject> all = {named_machine(), uniform()};
  for (const auto& more : {machine(), links()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

namespace {

ContractKey network_kind(const std::string& kind) {
  return {"kind", one_of({kind}), "required", "The kind of this network."};
}

/// Returns the type of a value for each pair of sites.
ContractType connections() { return list(list(either({text("9 ms"), nothing()})), 1, 256); }

ContractObject fat_tree() {
  return {
      .name = "cluster.network.fat-tree",
      .meaning =
          "Leaf switches joined by spines, or in pods that core switches join. Messages go up "
          "to the lowest switch above both nodes.",
      .keys = {
          network_kind("fat-tree"),
          {"nodes_per_leaf", whole(1, 100'000), "required", "Nodes with cards on one leaf switch."},
          {"leaves_per_pod", whole(1, 100'000), "two levels",
           "Leaves (of one rail) in a pod, which makes three levels."},
          {"oversubscription", number(0.1, 1000), "1",
           "Bandwidth of the cards of a leaf over that of its uplinks, which are rounded to a "
           "whole "
           "number."},
          {"pod_oversubscription", number(0.1, 1000), "1",
           "Bandwidth into a pod's aggregation switches over that to the core."},
          {"rail_optimised", boolean(), "false",
           "Card i of every node is on rail i, a tree of its own; a message to another rail "
           "crosses "
           "its own node first, as NCCL's PXN does."},
          {"hop_latency", time(), "0 s", "Of each link between switches."},
          {"paths", one_of({"destination", "hash"}), "destination",
           "Which of several equal paths a message takes: by the number of the card that it goes "
           "to, so that shifts and rings over all nodes never collide; or by a hash of both "
           "devices, as Ethernet switches do."}}};
}

ContractObject dragonfly() {
  return {
      .name = "cluster.network.dragonfly",
      .meaning =
          "Groups of routers, all joined in a group, and each pair of groups by cables. "
          "Messages take at most one local link, one cable and one local link. The nodes are "
          "groups x routers x nodes of a router.",
      .keys = {network_kind("dragonfly"),
               {"groups", whole(1), "required", "Groups."},
               {"routers_per_group", whole(1), "required", "Routers of a group."},
               {"nodes_per_router", whole(1), "required", "Nodes on a router."},
               {"cables", whole(1, 1000), "1",
                "Cables between each pair of groups; the sum of both nodes' numbers says which."},
               {"local", object("cluster.link"), "required", "Between two routers of a group."},
               {"global", object("cluster.link"), "required", "A cable."}}};
}

std::vector<ContractObject> executors() {
  const auto kind = [](const std::string& name, const std::string& otherwise) {
    return ContractKey{"kind", one_of({name}), otherwise, "The kind of this executor."};
  };
  return {{.name = "cluster.executor.cpu",
           .meaning = "A thread for each device, Eigen's kernels, fp32.",
           .keys = {kind("cpu", "cpu"),
                    {"links", one_of({"immediate", "emulated"}), "immediate",
                     "`emulated`: a message arrives no sooner than the scenario's links say."}}},
          {.name = "cluster.executor.virtual",
           .meaning = "Nothing but clocks: the times of the simulation, by other code.",
           .keys = {kind("virtual", "required")}},
          {.name = "cluster.executor.cuda",
           .meaning = "NVIDIA GPUs, or parts of one.",
           .keys = {
               kind("cuda", "required"),
               {"devices", one_of({"gpus", "partitions"}), "gpus",
                "A GPU for each device, or one GPU's multiprocessors divided among them."},
               {"multiprocessors", whole(1, 10'000), "as many as fit", "Of each partition."},
               {"links", one_of({"copy-engine", "paced", "zero"}), "copy-engine",
                "Between partitions: copies beside the kernels, copies at the scenario's speed, or "
                "nothing but the order."},
               {"transport", one_of({"peer", "nccl"}), "peer", "Between GPUs."}}}};
}

}  // namespace

std::vector<ContractObject> network_objects() {
  std::vector<ContractObject> all = {
      {.name = "cluster.network.switch",
       .meaning = "One switch without limits of its own; messages meet only in cards.",
       .keys = {network_kind("switch")}},
      fat_tree(),
      dragonfly(),
      {.name = "cluster.network.torus",
       .meaning = "A grid whose rows are rings. Messages go along the first dimension, then the "
                  "next, the shorter way round.",
       .keys = {network_kind("torus"),
                {"dimensions", list(whole(1), 1, 6), "required",
                 "Sizes of the rings, which multiply to the nodes (or devices); the first counts "
                 "fastest."},
                {"of", one_of({"nodes", "devices"}), "nodes",
                 "What the grid joins: nodes, which have cards into it, or the devices themselves, "
                 "without ports and cards."},
                {"link", object("cluster.link"), "required", "Between neighbours."}}},
      {.name = "cluster.network.wan",
       .meaning = "Sites far apart; the nodes are divided among them in order. Where there is no "
                  "connection, messages go over other sites, on the way of least delay.",
       .keys = {network_kind("wan"),
                {"delay", connections(), "required",
                 "A row for each site, in it the delay to each site, added to that of the cards; "
                 "`null`: no connection."},
                {"bandwidth", connections(), "required",
                 "Bandwidths in the same form, which all nodes of a site share; on the diagonal, "
                 "what nodes of one site share."}}}};
  for (ContractObject& executor : executors()) all.push_back(std::move(executor));
  return all;
}

}  // namespace interlock::contract
