// A network written out link by link, against which routes are checked.
// SPDX-License-Identifier: Apache-2.0
//
// The oracle of every topology: tests say in plain loops which links there are and what they join.
// A name may stand for several edges: a card's wire leaves from each device that may use the card.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hardware/networks/cluster.h"

namespace interlock {

inline std::string numbered(const std::string& what, int number) {
  return what + std::to_string(number);
}

struct LinkGraph {
  std::map<std::string, std::set<std::pair<std::string, std::string>>> edges;  // by name
  std::map<std::string, double> bandwidth;                                     // by name

  void add(const std::string& name, const std::string& from, const std::string& to, double speed) {
    edges[name].insert({from, to});
    bandwidth[name] = speed;
  }
  /// "NAME up" and "NAME down".
  void add_duplex(const std::string& name, const std::string& low, const std::string& high,
                  double speed) {
    add(name + " up", low, high, speed);
    add(name + " down", high, low, speed);
  }
  /// "A->B" and "B->A", `suffix` behind both.
  void add_cable(const std::string& a, const std::string& b, double speed,
                 const std::string& suffix = "") {
    add(a + "->" + b + suffix, a, b, speed);
    add(b + "->" + a + suffix, b, a, speed);
  }

  /// Fewest links from `start` to everywhere.
  std::map<std::string, int> distances(const std::string& start) const;
};

/// The devices of a machine with a switch in each node, and their cards up to the vertices that
/// `network(node, card)` names.
template <class Vertex>
LinkGraph machine_graph(const Cluster& cluster, const Vertex& network) {
  LinkGraph graph;
  const int per_node = cluster.machines.front().devices_per_node;
  for (int device = 0; device < cluster.devices; ++device) {
    const int node = device / per_node;
    const int card = device % per_node * cluster.machines.front().cards_per_node / per_node;
    const std::string gpu = numbered("gpu", device);
    graph.add_duplex(gpu, gpu, numbered("switch", node),
                     cluster.machines.front().port_bandwidth.value());
    if (cluster.machines.front().cards_per_node == 0) continue;
    graph.add_duplex(numbered("node", node) + numbered(" nic", card), gpu, network(node, card),
                     cluster.machines.front().card_bandwidth.value());
  }
  return graph;
}

std::vector<std::string> link_names(const Cluster& cluster, const Route& way);

/// Follows the route through the graph; fails where it does not hang together.
void check_walk(const LinkGraph& graph, const Cluster& cluster, int from, int to);

/// Every route of the cluster hangs together, is there and back of the same length and latency over
/// different links, and the same when asked again; no two links share a name. Returns the names of
/// all links that some route uses.
std::set<std::string> check_routes(const LinkGraph& graph, const Cluster& cluster);

enum class Pairs { All, BetweenNodes };
/// No way through the graph has fewer links than the route.
void check_shortest(const LinkGraph& graph, const Cluster& cluster, Pairs pairs = Pairs::All);

/// Messages over the busiest link that is no port and no card, when device i sends to i + shift.
int worst_load(const Cluster& cluster, int shift);

}  // namespace interlock
