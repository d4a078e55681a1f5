// Collectives message by message, beside the flows that are planned for them.
// SPDX-License-Identifier: Apache-2.0
//
// Rings, trees and hierarchies are written here as single messages with what they wait for; a small
// simulator lets them share links. They also carry data: sets of the members whose contribution is
// in a chunk, so that a message that adds must bring nothing that is already there.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "hardware/collectives/collective.h"
#include "tests/hardware/step_simulator.h"

namespace interlock::collective_steps_test {
namespace {

using enum CollectiveAlgorithm;
using enum CollectiveKind;

constexpr double kBytes = 64e6;

Cluster machine(int devices, int per_node, double card = 50e9, double card_latency = 8e-6) {
  return {.name = "machine",
          .machines = {{.devices_per_node = per_node,
                        .port_latency = Seconds(2e-6),
                        .port_bandwidth = BytesPerSecond(200e9),
                        .cards_per_node = per_node,
                        .card_latency = Seconds(card_latency),
                        .card_bandwidth = BytesPerSecond(card)}},
          .devices = devices};
}

std::vector<int> all(int devices) {
  std::vector<int> group(static_cast<std::size_t>(devices));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

CollectivePlan plan(const Cluster& cluster, CollectiveKind kind, CollectiveAlgorithm algorithm) {
  return plan_collective(cluster, all(cluster.devices), kind, Bytes(kBytes), {algorithm});
}

using Edges = std::map<std::pair<int, int>, double>;

Edges edges(const std::vector<StepMessage>& messages) {
  Edges sums;
  for (const StepMessage& message : messages) sums[{message.from, message.to}] += message.bytes;
  return sums;
}

/// The flows of the plan are the messages, edge by edge.
void check_edges(const CollectivePlan& plan, const std::vector<StepMessage>& messages) {
  Edges expected = edges(messages);
  CHECK_EQ(plan.flows.size(), expected.size());
  for (const Flow& flow : plan.flows) {
    CAPTURE(flow.from);
    CAPTURE(flow.to);
    CHECK(flow.bytes.value() == doctest::Approx(expected[{flow.from, flow.to}]).epsilon(1e-9));
  }
}

/// Who has contributed to what a member holds of each chunk.
using Held = std::vector<std::vector<std::uint64_t>>;  // by member, by chunk

enum class Arrival { Adds, Replaces };

/// Lets data follow the messages in the order of their arrival.
void carry(const std::vector<StepMessage>& messages, const StepRun& run,
           const std::vector<Arrival>& arrival, Held& held) {
  REQUIRE_EQ(run.order.size(), messages.size());
  for (const std::size_t i : run.order) {
    const auto chunk = static_cast<std::size_t>(messages[i].chunk);
    const std::uint64_t data = held[static_cast<std::size_t>(messages[i].from)][chunk];
    std::uint64_t& mine = held[static_cast<std::size_t>(messages[i].to)][chunk];
    if (arrival[i] == Arrival::Adds) {
      CHECK_EQ(mine & data, 0);
      mine |= data;
    } else {
      mine = data;
    }
  }
}

std::uint64_t all_members(int members) { return (std::uint64_t{1} << members) - 1; }

/// Rings of all devices of `nodes` nodes of `size`: channel c enters node k at member c - k and
/// leaves at c - k - 1, for its counterpart in the next node. It closes if size divides nodes.
std::vector<std::vector<int>> channel_rings(int nodes, int size) {
  std::vector<std::vector<int>> rings(static_cast<std::size_t>(nodes == 1 ? 1 : size));
  for (std::size_t channel = 0; channel < rings.size(); ++channel) {
    for (int node = 0; node < nodes; ++node) {
      for (int i = 0; i < size; ++i) {
        const int local = static_cast<int>(channel) - node + i;
        rings[channel].push_back(node * size + ((local % size) + size) % size);
      }
    }
  }
  return rings;
}

struct Steps {
  std::vector<StepMessage> messages;
  std::vector<Arrival> arrival;
};

/// `steps` steps of a ring in which, in step s, place i sends chunk i - s; n - 1 of them reduce and
/// scatter, the others gather.
Steps ring_steps(const std::vector<std::vector<int>>& rings, int reducing, int gathering) {
  Steps steps;
  const int n = static_cast<int>(rings[0].size());
  const double bytes = kBytes / n / static_cast<double>(rings.size());
  for (std::size_t channel = 0; channel < rings.size(); ++channel) {
    const std::vector<int>& ring = rings[channel];
    const std::size_t first = steps.messages.size();
    for (int step = 0; step < reducing + gathering; ++step) {
      for (int place = 0; place < n; ++place) {
        StepMessage message{ring[place], ring[(place + 1) % n], bytes, {}, {}, 0};
        // Chunks are numbered by the place that reduces them last, channel by channel.
        const int chunk = ((place - step) % n + 2 * n) % n;
        message.chunk = static_cast<int>(channel) * n + chunk;
        if (step > 0) {
          message.after = {first + static_cast<std::size_t>((step - 1) * n + (place + n - 1) % n)};
        }
        steps.messages.push_back(message);
        steps.arrival.push_back(step < reducing ? Arrival::Adds : Arrival::Replaces);
      }
    }
  }
  return steps;
}

Held own_contributions(int members, std::size_t chunks) {
  Held held;
  for (int i = 0; i < members; ++i) held.emplace_back(chunks, std::uint64_t{1} << i);
  return held;
}

}  // namespace

TEST_CASE("a ring's all-reduce, step by step, takes the planned time and adds everything up") {
  for (const int n : {2, 3, 5, 8}) {
    CAPTURE(n);
    const Cluster cluster = machine(n, n);
    const Steps steps = ring_steps(channel_rings(1, n), n - 1, n - 1);
    const StepRun run = simulate_steps(cluster, steps.messages);
    const CollectivePlan ring = plan(cluster, AllReduce, Ring);
    check_edges(ring, steps.messages);
    CHECK(run.end == doctest::Approx(time_alone(cluster, ring).value()).epsilon(1e-9));
    Held held = own_contributions(n, static_cast<std::size_t>(n));
    carry(steps.messages, run, steps.arrival, held);
    for (const auto& chunks : held) {
      for (const std::uint64_t chunk : chunks) CHECK_EQ(chunk, all_members(n));
    }
  }
}

TEST_CASE("all-gather and reduce-scatter are the halves of it") {
  const int n = 6;
  const Cluster cluster = machine(n, n);
  const Steps gather = ring_steps(channel_rings(1, n), 0, n - 1);
  const StepRun gathered = simulate_steps(cluster, gather.messages);
  check_edges(plan(cluster, AllGather, Ring), gather.messages);
  CHECK(gathered.end ==
        doctest::Approx(time_alone(cluster, plan(cluster, AllGather, Ring)).value()).epsilon(1e-9));
  Held held(n, std::vector<std::uint64_t>(n, 0));
  for (std::size_t i = 0; i < n; ++i) held[i][i] = 1;
  carry(gather.messages, gathered, gather.arrival, held);
  for (const auto& chunks : held) CHECK_EQ(chunks, std::vector<std::uint64_t>(n, 1));

  const Steps scatter = ring_steps(channel_rings(1, n), n - 1, 0);
  const StepRun scattered = simulate_steps(cluster, scatter.messages);
  check_edges(plan(cluster, ReduceScatter, Ring), scatter.messages);
  held = own_contributions(n, n);
  carry(scatter.messages, scattered, scatter.arrival, held);
  MESSAGE("place i ends with the sum of chunk i + 1");
  for (std::size_t i = 0; i < n; ++i) CHECK_EQ(held[i][(i + 1) % n], all_members(n));
}

TEST_CASE("rings over nodes: the planned flows, and no later than the planned time") {
  for (const auto& shape : {std::pair{2, 2}, {4, 2}, {4, 4}, {3, 3}, {5, 1}}) {
    const int nodes = shape.first;
    const int size = shape.second;
    const int n = nodes * size;
    CAPTURE(nodes);
    CAPTURE(size);
    const Cluster cluster = machine(n, size);
    const Steps steps = ring_steps(channel_rings(nodes, size), n - 1, n - 1);
    const StepRun run = simulate_steps(cluster, steps.messages);
    const CollectivePlan ring = plan(cluster, AllReduce, Ring);
    check_edges(ring, steps.messages);
    const double planned = time_alone(cluster, ring).value();
    if (size == 1) {
      CHECK(run.end == doctest::Approx(planned).epsilon(1e-9));
      continue;
    }
    MESSAGE("chunks that wait at cards hide latency: within [occupancy, planned], planned ",
            planned * 1e6, " us, step by step ", run.end * 1e6, " us");
    CHECK(run.end >= occupancy(cluster, ring.flows).value());
    CHECK(run.end >= ring.latency.value());
    CHECK(run.end <= planned * (1 + 1e-9));
    Held held = own_contributions(n, static_cast<std::size_t>(n) * size);
    carry(steps.messages, run, steps.arrival, held);
    for (const auto& chunks : held) {
      for (const std::uint64_t chunk : chunks) CHECK_EQ(chunk, all_members(n));
    }
  }
}

TEST_CASE("a hierarchy in phases takes the planned time to the last digit") {
  const int nodes = 4;
  const int size = 4;
  const Cluster cluster = machine(nodes * size, size);
  Steps steps;
  std::vector<std::size_t> before;  // the phase before
  const auto phase = [&](const std::vector<std::vector<int>>& rings, double bytes, int passes) {
    std::vector<std::size_t> mine;
    for (const std::vector<int>& ring : rings) {
      const int n = static_cast<int>(ring.size());
      const std::size_t first = steps.messages.size();
      for (int step = 0; step < passes * (n - 1); ++step) {
        for (int place = 0; place < n; ++place) {
          StepMessage message{ring[place], ring[(place + 1) % n], bytes / n, before, {}, 0};
          const int sender = (place + n - 1) % n;
          if (step > 0) message.after = {first + static_cast<std::size_t>((step - 1) * n + sender)};
          mine.push_back(steps.messages.size());
          steps.messages.push_back(message);
        }
      }
    }
    before = mine;
  };
  std::vector<std::vector<int>> inside(nodes);
  std::vector<std::vector<int>> between(size);
  for (int device = 0; device < nodes * size; ++device) {
    inside[static_cast<std::size_t>(device / size)].push_back(device);
    between[static_cast<std::size_t>(device % size)].push_back(device);
  }
  phase(inside, kBytes, 1);
  phase(between, kBytes / size, 2);
  phase(inside, kBytes, 1);
  const CollectivePlan planned = plan(cluster, AllReduce, Hierarchical);
  check_edges(planned, steps.messages);
  const StepRun run = simulate_steps(cluster, steps.messages);
  CHECK(run.end == doctest::Approx(time_alone(cluster, planned).value()).epsilon(1e-9));
}

namespace {

struct Chunks {
  int count = 1;
  int first = 0;     // number
  double bytes = 0;  // of all
};

/// Sends chunks down a tree given by parents; each edge takes one chunk after the other.
/// With `up`, they first come up from the leaves, added on the way. Members are devices.
void tree_steps(const std::vector<int>& parent, bool up, const Chunks& chunks, Steps& steps) {
  const int n = static_cast<int>(parent.size());
  std::vector<std::vector<int>> children(parent.size());
  int root = 0;
  for (int i = 0; i < n; ++i) {
    if (parent[static_cast<std::size_t>(i)] < 0) root = i;
    if (parent[static_cast<std::size_t>(i)] >= 0) {
      children[static_cast<std::size_t>(parent[static_cast<std::size_t>(i)])].push_back(i);
    }
  }
  std::vector<int> order = {root};  // parents first
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& next = children[static_cast<std::size_t>(order[i])];
    order.insert(order.end(), next.begin(), next.end());
  }
  std::vector<std::size_t> last_up(parent.size(), 0);
  std::vector<std::size_t> last_down(parent.size(), 0);
  for (int chunk = 0; chunk < chunks.count; ++chunk) {
    const auto send = [&](int from, int to, std::vector<std::size_t> after,
                          std::vector<std::size_t>& last, std::size_t edge, Arrival arrival) {
      StepMessage message{
          from, to, chunks.bytes / chunks.count, std::move(after), {}, chunks.first + chunk};
      if (chunk > 0) message.behind = {last[edge]};
      last[edge] = steps.messages.size();
      steps.messages.push_back(message);
      steps.arrival.push_back(arrival);
    };
    if (up) {
      for (std::size_t k = order.size(); k-- > 1;) {
        const auto child = static_cast<std::size_t>(order[k]);
        std::vector<std::size_t> after;
        for (const int below : children[child])
          after.push_back(last_up[static_cast<std::size_t>(below)]);
        send(order[k], parent[child], after, last_up, child, Arrival::Adds);
      }
    }
    for (std::size_t k = 1; k < order.size(); ++k) {
      const auto child = static_cast<std::size_t>(order[k]);
      const int above = parent[child];
      std::vector<std::size_t> after;
      if (above != root) after = {last_down[static_cast<std::size_t>(above)]};
      if (above == root && up) {
        for (const int below : children[static_cast<std::size_t>(root)]) {
          after.push_back(last_up[static_cast<std::size_t>(below)]);
        }
      }
      send(above, order[k], after, last_down, child, Arrival::Replaces);
    }
  }
}

/// Parents in a binary tree over 1 .. 2^k - 1 in order: clear the lowest bit, set the next.
std::vector<int> perfect_tree(int places, int shift) {
  std::vector<int> parent(static_cast<std::size_t>(places), -1);
  for (int i = 1; i <= places; ++i) {
    const int low = i & -i;
    const int above = (i & ~low) | (2 * low);
    if (above > places) continue;
    parent[static_cast<std::size_t>((i - 1 + shift) % places)] = (above - 1 + shift) % places;
  }
  return parent;
}

}  // namespace

TEST_CASE("double trees, chunk by chunk: the planned flows, and its time but for filling") {
  for (const int n : {3, 7, 15}) {
    CAPTURE(n);
    const Cluster cluster = machine(n, 1);
    const CollectivePlan planned = plan(cluster, AllReduce, Tree);
    const double time = time_alone(cluster, planned).value();
    double before = 1;
    for (const int chunks : {4, 16}) {
      CAPTURE(chunks);
      Steps steps;
      const int shift = n - 1;  // every member one place further on
      tree_steps(perfect_tree(n, 0), true, {chunks, 0, kBytes / 2}, steps);
      tree_steps(perfect_tree(n, shift), true, {chunks, chunks, kBytes / 2}, steps);
      check_edges(planned, steps.messages);
      const StepRun run = simulate_steps(cluster, steps.messages);
      Held held = own_contributions(n, std::size_t{2} * chunks);
      carry(steps.messages, run, steps.arrival, held);
      for (const auto& mine : held) {
        for (const std::uint64_t chunk : mine) CHECK_EQ(chunk, all_members(n));
      }
      const double levels = 2 * std::floor(std::log2(n));
      const double fill = 2 * levels * kBytes / chunks / 50e9;
      MESSAGE(n, " members, ", chunks, " chunks: planned ", time * 1e6, " us, simulated ",
              run.end * 1e6, " us, to fill at most ", fill * 1e6, " us");
      CHECK(run.end >= occupancy(cluster, planned.flows).value() * (1 - 1e-9));
      CHECK(run.end <= time + fill);
      CHECK(run.end / time - 1 < before);
      before = run.end / time - 1;
    }
  }
}

TEST_CASE("a broadcast's chain, chunk by chunk, takes a chunk more for each further hop") {
  const int n = 6;
  const Cluster cluster = machine(n, n);
  const CollectivePlan chain = plan(cluster, Broadcast, Ring);
  for (const int chunks : {1, 8, 64}) {
    Steps steps;
    tree_steps({-1, 0, 1, 2, 3, 4}, false, {chunks, 0, kBytes}, steps);
    check_edges(chain, steps.messages);
    const StepRun run = simulate_steps(cluster, steps.messages);
    const double fill = (n - 2) * kBytes / chunks / 200e9;
    INFO("planned + (n - 2) chunks");
    CHECK(run.end == doctest::Approx(time_alone(cluster, chain).value() + fill).epsilon(1e-9));
    Held held(n, std::vector<std::uint64_t>(static_cast<std::size_t>(chunks), 0));
    held[0].assign(static_cast<std::size_t>(chunks), 1);
    carry(steps.messages, run, steps.arrival, held);
    for (const auto& mine : held) {
      CHECK_EQ(mine, std::vector<std::uint64_t>(static_cast<std::size_t>(chunks), 1));
    }
  }
}

TEST_CASE("an all-to-all at once, over ports and cards, takes the planned time") {
  for (const auto& [nodes, size] : {std::pair{1, 6}, {3, 2}, {2, 4}}) {
    const int n = nodes * size;
    const Cluster cluster = machine(n, size);
    std::vector<StepMessage> messages;
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from != to) messages.push_back({from, to, kBytes / n, {}, {}, 0});
      }
    }
    const CollectivePlan direct = plan(cluster, AllToAll, Auto);
    check_edges(direct, messages);
    const StepRun run = simulate_steps(cluster, messages);
    CHECK(run.end == doctest::Approx(time_alone(cluster, direct).value()).epsilon(1e-9));
  }
}

}  // namespace interlock::collective_steps_test
