// Sets of flows by what they cross, and their ends.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/flows_apart.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "sim/sharing/fair_share.h"

namespace interlock {

std::vector<FlowSet> sets_that_meet(const FlowWays& flows, const std::vector<Flow>& plan) {
  LinkClasses links;
  for (const std::vector<LinkId>& way : flows.ways) {
    for (const LinkId link : way) links.unite(links.number(way.front()), links.number(link));
  }
  std::vector<FlowSet> sets;
  std::map<int, int> numbers;  // of sets, by the link that stands for theirs
  std::vector<int> of_way;
  for (std::size_t w = 0; w < flows.ways.size(); ++w) {
    of_way.push_back(-1);
    if (flows.ways[w].empty()) continue;
    const int link = links.find(links.number(flows.ways[w].front()));
    const auto [entry, fresh] = numbers.try_emplace(link, static_cast<int>(sets.size()));
    if (fresh) sets.emplace_back();
    of_way.back() = entry->second;
    sets[entry->second].ways.push_back(static_cast<int>(w));
  }
  std::vector<int> first_of_way(flows.ways.size(), -1);
  for (std::size_t f = 0; f < flows.of_flow.size(); ++f) {
    const int way = flows.of_flow[f];
    if (of_way[way] < 0) continue;
    FlowSet& set = sets[of_way[way]];
    set.flows.push_back(static_cast<int>(f));
    int& first = first_of_way[way];
    if (first < 0) first = static_cast<int>(f);
    set.differ = set.differ || plan[f].bytes != plan[set.flows.front()].bytes;
    set.uneven = set.uneven || plan[f].bytes != plan[first].bytes;
  }
  return sets;
}

bool any_link(const FlowWays& flows, const FlowSet& set, const std::function<bool(LinkId)>& is_so) {
  return std::ranges::any_of(set.ways,
                             [&](int way) { return std::ranges::any_of(flows.ways[way], is_so); });
}

std::vector<Seconds> ends_of_groups(const Cluster& cluster, const std::vector<GroupFlow>& flows) {
  std::vector<double> bandwidths;
  std::vector<std::vector<int>> ways;
  std::unordered_map<LinkId, int> numbers;
  int groups = 0;
  for (const GroupFlow& flow : flows) {
    std::vector<int>& way = ways.emplace_back();
    for (const LinkId id : flow.links) {
      const auto [entry, fresh] = numbers.try_emplace(id, static_cast<int>(bandwidths.size()));
      if (fresh) bandwidths.push_back(bandwidth_of(cluster, id).value());
      way.push_back(entry->second);
    }
    groups = std::max(groups, flow.group + 1);
  }
  FairShare shares(bandwidths, ways);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    shares.add(static_cast<int>(f), flows[f].bytes.value());
  }
  std::vector<Seconds> ends(static_cast<std::size_t>(groups));
  double now = 0;
  for (double end = shares.next_end(now); end < kInfinity; end = shares.next_end(now)) {
    now = end;
    for (const int ended : shares.take_ended(now)) {
      ends[static_cast<std::size_t>(flows[static_cast<std::size_t>(ended)].group)] = Seconds(now);
    }
  }
  return ends;
}

std::vector<bool> meet_equals(const std::vector<std::pair<int, const LinkOrbit*>>& orbits) {
  constexpr int kNobody = LinkOfOrbit::kSeveral - 1;
  std::map<std::pair<int, const LinkOrbit*>, bool> meet;
  for (const auto& user : orbits) meet.try_emplace(user, false);
  std::vector<int> of_links;  // groups of the communicator at hand, by link
  for (auto first = meet.begin(); first != meet.end();) {
    const int communicator = first->first.first;
    const auto end = std::find_if(
        first, meet.end(), [&](const auto& user) { return user.first.first != communicator; });
    for (auto user = first; user != end; ++user) {
      for (const LinkOfOrbit& use : *user->first.second) {
        const auto link = static_cast<std::size_t>(use.link);
        if (link >= of_links.size()) of_links.resize(link + 1, kNobody);
        int& group = of_links[link];
        group = group == kNobody || group == use.group ? use.group : LinkOfOrbit::kSeveral;
      }
    }
    for (auto user = first; user != end; ++user) {
      user->second = std::ranges::any_of(*user->first.second, [&](const LinkOfOrbit& use) {
        return of_links[static_cast<std::size_t>(use.link)] == LinkOfOrbit::kSeveral;
      });
    }
    for (; first != end; ++first) {
      for (const LinkOfOrbit& use : *first->first.second) {
        of_links[static_cast<std::size_t>(use.link)] = kNobody;
      }
    }
  }
  std::vector<bool> all;
  for (const auto& user : orbits) all.push_back(meet.at(user));
  return all;
}

}  // namespace interlock
