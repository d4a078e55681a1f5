// Collectives as flows: closed forms, what every member sends and receives, and what is chosen.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/collective.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>
#include <numeric>

namespace interlock::collective_test {
namespace {

constexpr double kPort = 300e9;
constexpr double kCard = 25e9;
constexpr double kPortLatency = 3e-6;
constexpr double kCardLatency = 10e-6;
constexpr double kBytes = 1e9;

/// Nodes of `per_node` devices with a card each.
Cluster machine(int devices, int per_node) {
  return {.name = "machine",
          .machines = {{.devices_per_node = per_node,
                        .port_latency = Seconds(kPortLatency),
                        .port_bandwidth = BytesPerSecond(kPort),
                        .cards_per_node = per_node,
                        .card_latency = Seconds(kCardLatency),
                        .card_bandwidth = BytesPerSecond(kCard)}},
          .devices = devices};
}

std::vector<int> all(int devices) {
  std::vector<int> group(static_cast<std::size_t>(devices));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

CollectivePlan plan(const Cluster& cluster, const std::vector<int>& group, CollectiveKind kind,
                    CollectiveAlgorithm algorithm, double bytes = kBytes) {
  return plan_collective(cluster, group, kind, Bytes(bytes), {algorithm});
}

struct Sums {
  std::map<int, double> sent;
  std::map<int, double> received;
};

Sums sums(const CollectivePlan& plan) {
  Sums result;
  for (const Flow& flow : plan.flows) {
    result.sent[flow.from] += flow.bytes.value();
    result.received[flow.to] += flow.bytes.value();
  }
  return result;
}

void check_each(std::map<int, double>& by_device, const std::vector<int>& group, double expected) {
  for (const int device : group) CHECK(by_device[device] == doctest::Approx(expected));
}

using enum CollectiveAlgorithm;
using enum CollectiveKind;

}  // namespace

TEST_CASE("a ring takes 2 (n-1) latencies and 2 (n-1)/n of the bytes over each edge") {
  // Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.5 (recalled): the ring's
  // bandwidth term is 2 (n-1)/n S, all-gather and reduce-scatter have half of everything.
  for (const int n : {2, 3, 8}) {
    const Cluster cluster = machine(n, n);
    const double share = (n - 1.0) / n;
    INFO("n = " << n << ": all-gather (n-1) latency + (n-1)/n S / bandwidth");
    const double once = (n - 1) * kPortLatency + share * kBytes / kPort;
    for (const CollectiveKind kind : {AllReduce, AllGather, ReduceScatter}) {
      const double passes = kind == AllReduce ? 2 : 1;
      const CollectivePlan ring = plan(cluster, all(n), kind, Ring);
      CHECK_EQ(ring.flows.size(), static_cast<std::size_t>(n));
      for (const Flow& flow : ring.flows) {
        CHECK_EQ(flow.to, (flow.from + 1) % n);
        CHECK(flow.bytes.value() == doctest::Approx(passes * share * kBytes));
      }
      CHECK(time_alone(cluster, ring).value() == doctest::Approx(passes * once).epsilon(1e-12));
    }
  }
}

TEST_CASE("a ring over nodes uses every member's card for its share of the bytes") {
  const int g = 4;
  const int m = 3;
  const int n = g * m;
  const Cluster cluster = machine(n, g);
  const CollectivePlan ring = plan(cluster, all(n), AllReduce, Ring);
  const double edge = 2 * (n - 1.0) / n * kBytes;
  MESSAGE("of 2 (n-1)/n S, (g-1)/g goes to the next in the node, 1/g to the same in the next node");
  CHECK_EQ(ring.flows.size(), static_cast<std::size_t>(2 * n));
  for (const Flow& flow : ring.flows) {
    if (flow.from / g == flow.to / g) {
      CHECK_EQ(flow.to % g, (flow.from + 1) % g);
      CHECK(flow.bytes.value() == doctest::Approx(edge * (g - 1) / g));
    } else {
      CHECK_EQ(flow.to, (flow.from + g) % n);
      CHECK(flow.bytes.value() == doctest::Approx(edge / g));
    }
  }
  MESSAGE(
      "a ring of n edges, m between nodes; twice round, each time without one of the cheap ones");
  const double latency = 2 * ((n - m - 1) * kPortLatency + m * kCardLatency);
  CHECK(ring.latency.value() == doctest::Approx(latency).epsilon(1e-12));
  CHECK(occupancy(cluster, ring.flows).value() == doctest::Approx(edge / g / kCard));
}

TEST_CASE("double trees take about 2 log2 n latencies, and no member more than 2 S each way") {
  for (int n = 2; n <= 40; ++n) {
    CAPTURE(n);
    const Cluster cluster = machine(n, 1);
    const CollectivePlan tree = plan(cluster, all(n), AllReduce, Tree);
    const double levels = std::floor(std::log2(n));
    CHECK(tree.latency.value() == doctest::Approx(2 * levels * kCardLatency).epsilon(1e-12));
    Sums sum = sums(tree);
    double total = 0;
    for (const int device : all(n)) {
      // Inside one tree: 3 edges of S/2 each way; a leaf of the other: one.
      CHECK(sum.sent[device] <= 2 * kBytes * (1 + 1e-12));
      CHECK(sum.received[device] <= 2 * kBytes * (1 + 1e-12));
      CHECK(sum.sent[device] >= kBytes / 2);
      total += sum.sent[device];
    }
    INFO("two trees of n - 1 edges, S/2 up and S/2 down each");
    CHECK(total == doctest::Approx(2 * (n - 1) * kBytes));
  }
}

TEST_CASE("a hierarchy's phases wait for each other") {
  const int g = 4;
  const int m = 8;
  const Cluster cluster = machine(g * m, g);
  const double inside = (g - 1) * kPortLatency + (g - 1.0) / g * kBytes / kPort;
  const double between = (m - 1) * kCardLatency + (m - 1.0) / m * kBytes / g / kCard;
  MESSAGE("all-reduce: 2 x inside + 2 x between; all-gather and reduce-scatter: half of it");
  const auto time = [&](CollectiveKind kind) {
    return time_alone(cluster, plan(cluster, all(g * m), kind, Hierarchical)).value();
  };
  CHECK(time(AllReduce) == doctest::Approx(2 * (inside + between)).epsilon(1e-12));
  CHECK(time(AllGather) == doctest::Approx(inside + between).epsilon(1e-12));
  CHECK(time(ReduceScatter) == doctest::Approx(inside + between).epsilon(1e-12));
}

TEST_CASE("broadcast costs one S however many receive it; from the root alone, one S for each") {
  const auto time = [](int n, CollectiveAlgorithm algorithm) {
    const Cluster cluster = machine(n, 1);
    return occupancy(cluster, plan(cluster, all(n), Broadcast, algorithm).flows).value();
  };
  for (const int n : {2, 3, 4, 9, 64}) {
    CAPTURE(n);
    CHECK(time(n, Ring) == doctest::Approx(kBytes / kCard));
    CHECK(time(n, Tree) == doctest::Approx(kBytes / kCard));
    CHECK(time(n, Direct) == doctest::Approx((n - 1) * kBytes / kCard));
  }
}

TEST_CASE("all-to-all sends S/n from each to every other, in one step or in n - 1") {
  const int n = 6;
  const Cluster cluster = machine(n, n);
  const CollectivePlan direct = plan(cluster, all(n), AllToAll, Auto);
  CHECK_EQ(direct.algorithm, Direct);
  CHECK_EQ(direct.flows.size(), static_cast<std::size_t>(n * (n - 1)));
  for (const Flow& flow : direct.flows) CHECK(flow.bytes.value() == doctest::Approx(kBytes / n));
  const double busy = (n - 1.0) / n * kBytes / kPort;
  CHECK(time_alone(cluster, direct).value() == doctest::Approx(kPortLatency + busy));
  const CollectivePlan pairwise = plan(cluster, all(n), AllToAll, Ring);
  CHECK(time_alone(cluster, pairwise).value() == doctest::Approx((n - 1) * kPortLatency + busy));
}

TEST_CASE("a shift goes to the next in the order given") {
  const Cluster cluster = machine(8, 4);
  const CollectivePlan shift = plan(cluster, {6, 1, 3}, Shift, Auto);
  REQUIRE_EQ(shift.flows.size(), 3);
  for (const Flow& flow : shift.flows) {
    CHECK_EQ(flow.to, flow.from == 6 ? 1 : flow.from == 1 ? 3 : 6);
    CHECK_EQ(flow.bytes, Bytes(kBytes));
  }
  CHECK_EQ(shift.latency, Seconds(kCardLatency));
}

TEST_CASE("every member sends and receives what the collective owes, in groups of any shape") {
  const Cluster cluster = machine(24, 4);
  const std::vector<std::vector<int>> groups = {
      {0, 1},          {0, 4},           {3, 5, 9},          {0, 1, 2, 4, 5, 8},
      {0, 1, 2, 3, 4}, {7, 2, 0, 15, 6}, {0, 4, 8, 12, 16},  {1, 2, 3, 5, 6, 7, 20, 21, 23},
      all(24),         {23, 22, 1, 0},   {0, 1, 4, 5, 8, 9}, {8, 9, 10, 0, 4, 5}};
  for (const std::vector<int>& group : groups) {
    const int n = static_cast<int>(group.size());
    const double part = kBytes * (n - 1) / n;
    CAPTURE(group[0]);
    CAPTURE(n);
    for (const CollectiveAlgorithm algorithm : {Ring, Tree, Hierarchical, Direct, Auto}) {
      CAPTURE(static_cast<int>(algorithm));
      for (const CollectiveKind kind : {AllGather, ReduceScatter, AllToAll}) {
        // A member lacks, or gives away, all but its own part.
        Sums sum = sums(plan(cluster, group, kind, algorithm));
        check_each(sum.received, group, part);
        check_each(sum.sent, group, part);
      }
      Sums spread = sums(plan(cluster, group, Broadcast, algorithm));
      Sums collected = sums(plan(cluster, group, Reduce, algorithm));
      const std::vector<int> others(group.begin() + 1, group.end());
      check_each(spread.received, others, kBytes);
      CHECK_EQ(spread.received[group[0]], 0);
      check_each(collected.sent, others, kBytes);
      CHECK_EQ(collected.sent[group[0]], 0);
      Sums reduced = sums(plan(cluster, group, AllReduce, algorithm));
      double total = 0;
      for (const int device : group) total += reduced.sent[device];
      CHECK(total == doctest::Approx(2 * (n - 1) * kBytes));
    }
  }
}

TEST_CASE("nothing is planned for one member or no bytes") {
  const Cluster cluster = machine(8, 4);
  for (const CollectivePlan& nothing :
       {plan(cluster, {5}, AllReduce, Ring), plan(cluster, all(8), AllReduce, Auto, 0)}) {
    CHECK(nothing.flows.empty());
    CHECK_EQ(time_alone(cluster, nothing), Seconds());
  }
}

TEST_CASE(
    "what is chosen is the soonest: trees for small messages between nodes, rings for large") {
  const Cluster cluster = machine(256, 8);
  MESSAGE("a tree costs 2 S/g a card, a ring 2 (1 - 1/n) S/g but some 2 ms of latency more");
  MESSAGE("so they are even at S = 2 ms x 256/2 x 8 x 25 GB/s, about 50 GB");
  CHECK_EQ(plan(cluster, all(256), AllReduce, Auto, 1e3).algorithm, Tree);
  CHECK_EQ(plan(cluster, all(256), AllReduce, Auto, 10e9).algorithm, Tree);
  CHECK_EQ(plan(cluster, all(256), AllReduce, Auto, 100e9).algorithm, Ring);
  CHECK_EQ(plan(machine(16, 1), all(16), AllReduce, Auto, 1e3).algorithm, Tree);
  CHECK_EQ(plan(machine(16, 1), all(16), AllReduce, Auto, 1e9).algorithm, Ring);
  CHECK_EQ(plan(machine(8, 8), all(8), AllReduce, Auto, 1e9).algorithm, Ring);
  for (double bytes = 1; bytes < 1e11; bytes *= 7) {
    CAPTURE(bytes);
    for (const CollectiveKind kind : {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce}) {
      const CollectivePlan chosen = plan(cluster, all(256), kind, Auto, bytes);
      for (const CollectiveAlgorithm other : {Ring, Tree, Hierarchical}) {
        const CollectivePlan rival = plan(cluster, all(256), kind, other, bytes);
        CHECK(time_alone(cluster, chosen) <= time_alone(cluster, rival));
      }
    }
  }
}

TEST_CASE("an algorithm that a kind or group cannot have is chosen as if none was asked for") {
  const Cluster cluster = machine(16, 4);
  CHECK_EQ(plan(cluster, all(16), AllGather, Tree).algorithm,
           plan(cluster, all(16), AllGather, Auto).algorithm);
  CHECK_NE(plan(cluster, all(4), AllReduce, Hierarchical).algorithm, Hierarchical);
  CHECK_NE(plan(cluster, {0, 1, 4}, AllReduce, Hierarchical).algorithm, Hierarchical);
  CHECK_EQ(plan(cluster, {0, 1, 4, 5}, AllReduce, Hierarchical).algorithm, Hierarchical);
}

TEST_CASE("16384 members have a few flows each, and every card its share of an all-to-all") {
  const int n = 16384;
  const Cluster cluster = machine(n, 8);
  const CollectivePlan ring = plan(cluster, all(n), AllReduce, Ring);
  CHECK_EQ(ring.flows.size(), static_cast<std::size_t>(2 * n));
  CHECK(plan(cluster, all(n), AllReduce, Tree).flows.size() <= static_cast<std::size_t>(6 * n));
  const CollectivePlan all_to_all = plan(cluster, all(n), AllToAll, Auto);
  CHECK(all_to_all.flows.size() <= static_cast<std::size_t>(32 * n));
  MESSAGE("(n - 8)/n S leaves through each card, as if all pairs were there");
  CHECK(occupancy(cluster, all_to_all.flows).value() ==
        doctest::Approx((n - 8.0) / n * kBytes / kCard).epsilon(1e-9));
}

TEST_CASE("a calibrated collective takes what was measured, whatever its links would take") {
  // Four devices of a node: an all-reduce of 600 MB takes 1 ms and 900 MB at a given rate.
  for (const double rate : {3e9, 3e12}) {
    CalibratedModel model;
    model.collectives = {
        {AllReduce, 4, {.latency = Seconds(1e-3), .bandwidth = BytesPerSecond(rate)}, {}}};
    Cluster cluster = machine(8, 4);
    cluster.machines[0].device.calibrated = std::make_shared<const CalibratedModel>(model);
    const Exchange exchange = {.kind = AllReduce, .axis = MeshAxis::Data, .bytes = Bytes(6e8)};
    const auto time = [&](const std::vector<int>& group, const Exchange& one) {
      return time_alone(cluster, plan_exchange(cluster, group, one)).value();
    };
    const double by_links = time({0, 1, 2, 3}, exchange), pair = time({0, 1}, exchange);
    const double across = time({0, 1, 4, 5}, exchange);
    CHECK(by_links == doctest::Approx(6 * kPortLatency + 9e8 / kPort));
    cluster.calibrated_collectives = true;
    INFO("rate " << rate);
    CHECK(time({0, 1, 2, 3}, exchange) == doctest::Approx(1e-3 + 9e8 / rate).epsilon(1e-12));
    INFO("what was not measured, or crosses cards, is the links'");
    CHECK(time({0, 1}, exchange) == pair);
    CHECK(time({0, 1, 4, 5}, exchange) == across);
    Exchange gather = exchange;
    gather.kind = AllGather;
    CHECK(time({0, 1, 2, 3}, gather) == doctest::Approx(3 * kPortLatency + 4.5e8 / kPort));
  }
}

}  // namespace interlock::collective_test
