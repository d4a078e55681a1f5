// Tokens that go once to each node: every choice of experts counted, every token sent by itself.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/token_routing.h"

#include <doctest/doctest.h>

#include <bit>
#include <map>
#include <numeric>
#include <set>

namespace interlock::token_routing_test {
namespace {

/// All sets of experts, as bits, that a token may be sent to: of each set of groups, all sets of so
/// many of their experts. A set that several sets of groups allow comes as often.
std::vector<unsigned> choices(const TokenRouting& routing) {
  std::vector<unsigned> found;
  const int size = routing.experts / routing.groups;
  for (unsigned groups = 0; groups < (1u << routing.groups); ++groups) {
    if (std::popcount(groups) != routing.groups_per_token) continue;
    for (unsigned experts = 0; experts < (1u << routing.experts); ++experts) {
      if (std::popcount(experts) != routing.per_token) continue;
      bool allowed = true;
      for (int expert = 0; expert < routing.experts; ++expert) {
        const bool taken = (experts >> expert & 1u) != 0;
        allowed = allowed && (!taken || (groups >> (expert / size) & 1u) != 0);
      }
      if (allowed) found.push_back(experts);
    }
  }
  return found;
}

const std::vector<TokenRouting> kRoutings = {{8, 1},        {8, 2},        {8, 3},
                                             {12, 4},       {12, 3, 3, 2}, {12, 2, 4, 1},
                                             {12, 3, 6, 3}, {8, 2, 2, 2},  {12, 4, 4, 2}};

TEST_CASE("the share of tokens with an expert in a range is that of all choices counted") {
  for (const TokenRouting& routing : kRoutings) {
    const std::vector<unsigned> all = choices(routing);
    for (int first = 0; first < routing.experts; ++first) {
      for (int last = first + 1; last <= routing.experts; ++last) {
        const unsigned range = (1u << last) - (1u << first);
        const auto met =
            std::count_if(all.begin(), all.end(), [&](unsigned one) { return (one & range) != 0; });
        INFO(routing.per_token << " of " << routing.experts << " experts, in "
                               << routing.groups_per_token << " of " << routing.groups
                               << " groups: " << met << " of " << all.size() << " choices have any "
                               << "of " << first << " to " << last - 1);
        CHECK(share_of_tokens(routing, first, last) ==
              doctest::Approx(double(met) / double(all.size())).epsilon(1e-10));
      }
    }
  }
}

TEST_CASE("DeepSeek-V3's tokens reach at most 4 of 8 nodes, and 5.3 if nothing held them back") {
  // 1 - C(224,8)/C(256,8), by the product of (224 - i)/(256 - i).
  double none = 1;
  for (int i = 0; i < 8; ++i) none *= (224.0 - i) / (256 - i);
  CHECK(share_of_tokens({256, 8}, 32, 64) == doctest::Approx(1 - none).epsilon(1e-10));
  CHECK(8 * (1 - none) == doctest::Approx(5.30).epsilon(0.01));
  const double nodes = 8 * share_of_tokens({256, 8, 8, 4}, 32, 64);
  INFO(nodes << " nodes of a token whose experts lie in 4 of 8 groups");
  CHECK(nodes < 4);
  CHECK(nodes > 3.5);
}

Cluster machine(int devices, int per_node) {
  return {.machines = {{.devices_per_node = per_node,
                        .port_latency = Seconds(3e-6),
                        .port_bandwidth = BytesPerSecond(300e9),
                        .cards_per_node = per_node,
                        .card_latency = Seconds(10e-6),
                        .card_bandwidth = BytesPerSecond(25e9)}},
          .devices = devices};
}

using Bytes2 = std::map<std::pair<int, int>, double>;

/// Sends a token of each choice from each device: once to each node, then once to each device.
Bytes2 sent_one_by_one(int devices, int per_node, const TokenRouting& routing, double bytes) {
  const std::vector<unsigned> all = choices(routing);
  const int each = routing.experts / devices;
  Bytes2 sent;
  for (int from = 0; from < devices; ++from) {
    for (const unsigned chosen : all) {
      std::map<int, std::set<int>> holders;  // by node
      for (int expert = 0; expert < routing.experts; ++expert) {
        const int holder = expert / each;
        if ((chosen >> expert & 1u) != 0) holders[holder / per_node].insert(holder);
      }
      for (const auto& [node, members] : holders) {
        const int at = node * per_node + from % per_node;
        if (at != from) sent[{from, at}] += bytes / double(all.size());
        for (const int to : members) {
          if (to != at) sent[{at, to}] += bytes / double(all.size());
        }
      }
    }
  }
  return sent;
}

TEST_CASE("every link carries what tokens sent one by one bring; what is made goes the way back") {
  for (const TokenRouting& routing : kRoutings) {
    for (const int per_node : {1, 2, 4}) {
      const int devices = 4;
      const Cluster cluster = machine(devices, per_node);
      const Exchange there = {.kind = CollectiveKind::AllToAll,
                              .axis = MeshAxis::Expert,
                              .bytes = Bytes(1e6),
                              .routing = routing};
      const Bytes2 expected = sent_one_by_one(devices, per_node, routing, 1e6);
      const CollectivePlan plan = plan_exchange(cluster, {0, 1, 2, 3}, there);
      CHECK(plan.flows.size() == expected.size());
      Exchange back = there;
      back.routing.back = true;
      const CollectivePlan reverse = plan_exchange(cluster, {0, 1, 2, 3}, back);
      Bytes2 returned;
      for (const Flow& flow : reverse.flows) returned[{flow.to, flow.from}] = flow.bytes.value();
      for (const Flow& flow : plan.flows) {
        INFO(per_node << " a node, " << flow.from << " to " << flow.to);
        CHECK(flow.bytes.value() == doctest::Approx(expected.at({flow.from, flow.to})));
        CHECK(flow.bytes.value() == doctest::Approx(returned.at({flow.from, flow.to})));
      }
      const double card = per_node < devices ? 10e-6 : 0, port = per_node > 1 ? 3e-6 : 0;
      CHECK(plan.latency.value() >= card + port);
    }
  }
}

TEST_CASE("tokens that go once to each node take less of the cards than a copy for each expert") {
  const Cluster cluster = machine(64, 8);
  std::vector<int> group(64);
  std::iota(group.begin(), group.end(), 0);
  const Exchange once = {.kind = CollectiveKind::AllToAll,
                         .axis = MeshAxis::Expert,
                         .bytes = Bytes(1e9),
                         .routing = {256, 8, 8, 4}};
  const Exchange copies = {
      .kind = CollectiveKind::AllToAll, .axis = MeshAxis::Expert, .bytes = Bytes(8e9)};
  const Seconds first = time_alone(cluster, plan_exchange(cluster, group, once));
  const Seconds second = time_alone(cluster, plan_exchange(cluster, group, copies));
  // Cards: 7 nodes x (share of tokens there) of 1 GB, and 8 GB x 56 of 64 members.
  const double share = share_of_tokens({256, 8, 8, 4}, 0, 32);
  CHECK(first.value() == doctest::Approx(7 * share * 1e9 / 25e9).epsilon(0.001));
  CHECK(second.value() == doctest::Approx(8e9 * 56 / 64 / 25e9).epsilon(0.001));
}

}  // namespace
}  // namespace interlock::token_routing_test
