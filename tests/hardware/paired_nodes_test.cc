// Nodes whose devices are joined by pairs: routes as drawn, rings over all links, by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "hardware/collectives/collective.h"
#include "tests/hardware/link_graph.h"

namespace interlock::paired_nodes_test {
namespace {

using Names = std::vector<std::string>;

constexpr double kPort = 300e9, kCard = 25e9, kStep = 3e-6;

Cluster board(int nodes, bool pairs, int devices_per_node = 4) {
  return {.name = "boards",
          .machines = {{.devices_per_node = devices_per_node,
                        .port_latency = Seconds(kStep),
                        .port_bandwidth = BytesPerSecond(kPort),
                        .cards_per_node = devices_per_node,
                        .card_latency = Seconds(10e-6),
                        .card_bandwidth = BytesPerSecond(kCard),
                        .pair_bandwidth =
                            BytesPerSecond(pairs ? kPort / std::max(1, devices_per_node - 1) : 0)}},
          .devices = devices_per_node * nodes};
}

double seconds_of(const Cluster& cluster, const std::vector<int>& group, CollectiveKind kind,
                  double bytes, CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring) {
  return time_alone(cluster, plan_collective(cluster, group, kind, Bytes(bytes), {algorithm}))
      .value();
}

}  // namespace

TEST_CASE("each pair of a node has a link of its own, and cards join the nodes") {
  const Cluster cluster = board(2, true);
  LinkGraph graph;
  for (int from = 0; from < 8; ++from) {
    const std::string card = numbered("node", from / 4) + " " + numbered("nic", from % 4);
    graph.add(card + " up", numbered("gpu", from), "net", kCard);
    graph.add(card + " down", "net", numbered("gpu", from), kCard);
    for (int to = 0; to < 8; ++to) {
      if (to == from || to / 4 != from / 4) continue;
      graph.add(numbered("gpu", from) + "->" + numbered("gpu", to), numbered("gpu", from),
                numbered("gpu", to), kPort / 3);
    }
  }
  const auto used = check_routes(graph, cluster);
  CHECK_EQ(used.size(), 2 * 4 * 3 + 2 * 8);
  CHECK_EQ(link_names(cluster, route(cluster, 6, 4)), Names{"gpu6->gpu4"});
  CHECK_EQ(route(cluster, 6, 4).latency.value(), doctest::Approx(kStep));
}

TEST_CASE("rings use all links between their members") {
  const double bytes = 1.2e9;
  const Cluster pairs = board(1, true), ideal = board(1, false);
  for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                    CollectiveKind::ReduceScatter, CollectiveKind::Broadcast}) {
    MESSAGE("all four members: as through a switch");
    CHECK(seconds_of(pairs, {0, 1, 2, 3}, kind, bytes) ==
          doctest::Approx(seconds_of(ideal, {0, 1, 2, 3}, kind, bytes)));
    MESSAGE("two of four: one link of three");
    const double wait = kind == CollectiveKind::AllReduce ? 2 * kStep : kStep;
    const double all = seconds_of(ideal, {1, 3}, kind, bytes) - wait;
    CHECK(seconds_of(pairs, {1, 3}, kind, bytes) == doctest::Approx(3 * all + wait));
  }
  MESSAGE("three of four: each sends 2/3 of the bytes over two links of 100 GB/s");
  CHECK(seconds_of(pairs, {0, 1, 3}, CollectiveKind::AllGather, bytes) ==
        doctest::Approx(bytes * 2 / 3 / 2 / (kPort / 3) + 2 * kStep));
  MESSAGE("messages and shifts have one link");
  CHECK(seconds_of(pairs, {0, 1, 2, 3}, CollectiveKind::Shift, bytes) ==
        doctest::Approx(bytes / (kPort / 3) + kStep));
}

TEST_CASE("what rings carry over pairs is even, in several nodes, too") {
  const double bytes = 8e8;
  const Cluster pairs = board(2, true);
  for (const auto algorithm : {CollectiveAlgorithm::Ring, CollectiveAlgorithm::Hierarchical}) {
    const CollectivePlan plan = plan_collective(
        pairs, {0, 1, 2, 3, 4, 5, 6, 7}, CollectiveKind::AllReduce, Bytes(bytes), {algorithm});
    std::map<int, double> sent, received;
    std::set<double> inside;
    for (const Flow& flow : plan.flows) {
      if (flow.from / 4 != flow.to / 4) continue;
      sent[flow.from] += flow.bytes.value();
      received[flow.to] += flow.bytes.value();
      inside.insert(std::round(flow.bytes.value()));
    }
    CHECK(inside.size() == 1);
    CHECK(plan.flows.size() == 2 * 4 * 3 + 8);
    for (const auto& [device, amount] : sent) CHECK(received[device] == doctest::Approx(amount));
  }
}

TEST_CASE("trees over whole nodes take as long by pairs as by switches") {
  const Cluster pairs = board(4, true), ideal = board(4, false);
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  for (const CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::Broadcast, CollectiveKind::Reduce}) {
    CHECK(seconds_of(pairs, all, kind, 1e9, CollectiveAlgorithm::Tree) ==
          doctest::Approx(seconds_of(ideal, all, kind, 1e9, CollectiveAlgorithm::Tree)));
  }
}

TEST_CASE("a node of one or two devices is the same by pairs and by a switch") {
  for (const int devices : {1, 2}) {
    const std::vector<int> group = {0, 1, 2, 3};
    const int nodes = 4 / devices;
    CHECK(seconds_of(board(nodes, true, devices), group, CollectiveKind::AllReduce, 1e9) ==
          doctest::Approx(
              seconds_of(board(nodes, false, devices), group, CollectiveKind::AllReduce, 1e9)));
  }
}

}  // namespace interlock::paired_nodes_test
