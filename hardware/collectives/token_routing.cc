// Shares of tokens by hypergeometric distributions, and copies that go once to each node.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/token_routing.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"

namespace interlock {
namespace {

double log_choices(int of, int chosen) {
  return std::lgamma(of + 1.0) - std::lgamma(chosen + 1.0) - std::lgamma(of - chosen + 1.0);
}

/// Returns how likely `some` of `marked` are among `chosen` of `of`.
double likelihood(int of, int marked, int chosen, int some) {
  if (some > marked || some > chosen || chosen - some > of - marked) return 0;
  return std::exp(log_choices(marked, some) + log_choices(of - marked, chosen - some) -
                  log_choices(of, chosen));
}

/// Experts of a range in one kind of group: each of `groups` has `experts` of them.
struct Overlap {
  int groups = 0, experts = 0;
};

/// A choice of groups, made one kind of group after another.
struct GroupChoice {
  int of = 0, groups = 0;  // groups that are still to be chosen from, and how many of them
  int inside = 0;          // experts of the range in the groups that were chosen
};

/// Returns the share of tokens with none of the range's experts, if `kinds` are left to choose
/// from.
double share_without(const TokenRouting& routing, std::span<const Overlap> kinds,
                     const GroupChoice& left) {
  if (kinds.empty()) {
    const int size = routing.experts / routing.groups;
    return likelihood(size * routing.groups_per_token, left.inside, routing.per_token, 0);
  }
  const Overlap& kind = kinds.front();
  double share = 0;
  for (int some = 0; some <= std::min(kind.groups, left.groups); ++some) {
    const double odds = likelihood(left.of, kind.groups, left.groups, some);
    if (odds == 0) continue;
    share += odds * share_without(routing, kinds.subspan(1),
                                  {left.of - kind.groups, left.groups - some,
                                   left.inside + some * kind.experts});
  }
  return share;
}

/// Sends tokens from each member to its counterparts in other nodes.
void add_between(const Cluster& cluster, const Grouping& grouping, const TokenRouting& routing,
                 Bytes bytes, Traffic& traffic) {
  Seconds slowest;
  int before = 0;  // members of earlier nodes
  const int each = routing.experts / grouping.members;
  for (const std::vector<int>& to : grouping.nodes) {
    const int size = static_cast<int>(to.size());
    const double share = share_of_tokens(routing, before * each, (before + size) * each);
    before += size;
    for (const std::vector<int>& from : grouping.nodes) {
      if (&from == &to) continue;
      for (std::size_t i = 0; i < from.size(); ++i) {
        const int counterpart = to[i % to.size()];
        add_flow(traffic, from[i], counterpart, bytes * share);
        slowest = std::max(slowest, hop(cluster, from[i], counterpart));
      }
    }
  }
  traffic.latency += slowest;
}

/// Spreads inside each node what its members have and what came to them.
void add_inside(const Cluster& cluster, const Grouping& grouping, const TokenRouting& routing,
                Bytes bytes, Traffic& traffic) {
  Seconds slowest;
  int before = 0;
  const int each = routing.experts / grouping.members;
  for (const std::vector<int>& node : grouping.nodes) {
    std::vector<int> sources(node.size(), 1);  // members whose tokens are there
    for (const std::vector<int>& from : grouping.nodes) {
      for (std::size_t i = 0; &from != &node && i < from.size(); ++i) ++sources[i % node.size()];
    }
    for (std::size_t to = 0; to < node.size(); ++to) {
      const int number = before + static_cast<int>(to);
      const double share = share_of_tokens(routing, number * each, (number + 1) * each);
      for (std::size_t at = 0; at < node.size(); ++at) {
        if (at == to) continue;
        add_flow(traffic, node[at], node[to], bytes * (share * sources[at]));
        slowest = std::max(slowest, hop(cluster, node[at], node[to]));
      }
    }
    before += static_cast<int>(node.size());
  }
  traffic.latency += slowest;
}

}  // namespace

double share_of_tokens(const TokenRouting& routing, int first, int last) {
  const int size = routing.experts / routing.groups;
  CHECK(size * routing.groups == routing.experts, "groups of equal size");
  Overlap whole = {0, size};
  std::vector<Overlap> kinds;
  for (int group = first / size; group * size < last; ++group) {
    const int inside = std::min(last, (group + 1) * size) - std::max(first, group * size);
    inside == size ? void(++whole.groups) : kinds.push_back({1, inside});
  }
  kinds.push_back(whole);
  return 1 - share_without(routing, kinds, {routing.groups, routing.groups_per_token});
}

Traffic token_traffic(const Cluster& cluster, const Grouping& grouping, const TokenRouting& routing,
                      Bytes bytes) {
  Traffic traffic;
  add_between(cluster, grouping, routing, bytes, traffic);
  add_inside(cluster, grouping, routing, bytes, traffic);
  if (routing.back) reverse(traffic);
  return traffic;
}

}  // namespace interlock
