// Classes of links, and how many equal messages each carries.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/folded_links.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"

namespace interlock {

FoldedLinks::FoldedLinks(const LowerInputs& inputs, bool alone)
    : inputs_(inputs),
      alone_(alone),
      uneven_(!inputs.cluster.slow_links.empty() || is_mixed(inputs.cluster)),
      simulated_(simulated_ranks(inputs.mesh, inputs.unfolded)),
      folded_(inputs.layouts.empty() ? folded_ranks(inputs.mesh, inputs.unfolded)
                                     : std::vector<Coordinates>{{0, 0, 0, 0}}) {
  for (const Coordinates& at : simulated_) devices_.push_back(device_of(inputs.mesh, at));
}

Route FoldedLinks::add_way(int from_rank, int to_rank, Orbit& orbit) {
  Route own = route(inputs_.cluster, devices_[from_rank], devices_[to_rank]);
  if (!folds()) return own;
  const std::vector<int> own_links = numbered(own);
  for (const Coordinates& by : folded_) {
    const int from = device_of(inputs_.mesh, shifted(inputs_.mesh, simulated_[from_rank], by));
    const int to = device_of(inputs_.mesh, shifted(inputs_.mesh, simulated_[to_rank], by));
    const Route equal = route(inputs_.cluster, from, to);
    if (equal.links.size() != own.links.size() || equal.bandwidth != own.bandwidth ||
        equal.latency != own.latency) {
      problem_ = "the way from device " + std::to_string(from) + " to " + std::to_string(to) +
                 " is another than that from " + std::to_string(devices_[from_rank]) + " to " +
                 std::to_string(devices_[to_rank]);
      break;
    }
    const std::vector<int> links = numbered(equal);
    unite(own_links, links);
    count(links, Bytes(0));
  }
  orbit = counted();
  return own;
}

/// The groups that stand in for each other, that of `rank` first.
std::vector<std::vector<int>> FoldedLinks::equal_groups(MeshAxis axis, int rank) const {
  std::vector<std::vector<int>> groups;
  std::set<int> seen;
  for (const Coordinates& by : folded_) {
    const Coordinates at = shifted(inputs_.mesh, simulated_[rank], by);
    if (seen.count(device_of(inputs_.mesh, at)) > 0) continue;
    groups.push_back(group_of(inputs_.mesh, axis, at));
    seen.insert(groups.back().begin(), groups.back().end());
  }
  return groups;
}

void FoldedLinks::visit_equals(
    const std::vector<Flow>& flows, const Member& member,
    const std::function<void(std::size_t flow, const Route& way)>& visit) const {
  std::unordered_map<int, int> counterpart = {{kHost, kHost}};
  for (const std::vector<int>& equal : equal_groups(member.axis, member.rank)) {
    for (std::size_t i = 0; i < equal.size(); ++i) counterpart[member.group[i]] = equal[i];
    for (std::size_t f = 0; f < flows.size(); ++f) {
      visit(f, route(inputs_.cluster, counterpart[flows[f].from], counterpart[flows[f].to]));
    }
  }
}

Seconds FoldedLinks::add_collective(const CollectivePlan& plan, const Member& member,
                                    Orbit& orbit) {
  if (!folds() || plan.flows.empty()) return occupancy(inputs_.cluster, plan.flows);
  std::vector<Route> own;
  for (const Flow& flow : plan.flows) {
    own.push_back(route(inputs_.cluster, flow.from, flow.to));
  }
  const std::vector<int>& group = member.group;
  // Members of equal groups play the same parts in the same places.
  std::unordered_map<int, int> counterpart = {{kHost, kHost}};
  for (const std::vector<int>& equal : equal_groups(member.axis, member.rank)) {
    for (std::size_t i = 0; i < group.size(); ++i) counterpart[group[i]] = equal[i];
    for (std::size_t f = 0; f < plan.flows.size(); ++f) {
      const Flow& flow = plan.flows[f];
      const Route other = route(inputs_.cluster, counterpart[flow.from], counterpart[flow.to]);
      if (own[f].links.size() != other.links.size() || own[f].bandwidth != other.bandwidth) {
        problem_ = "the group of device " + std::to_string(equal.front()) +
                   " is laid otherwise than that of device " + std::to_string(group.front());
        counted();
        return occupancy(inputs_.cluster, plan.flows);
      }
      const std::vector<int> links = numbered(other);
      unite(numbered(own[f]), links);
      count(links, flow.bytes);
    }
  }
  if (member.alone) unite_alike(plan);
  Seconds longest(0);
  for (const int l : touched_) {
    longest = std::max(longest, loads_[l] / link(inputs_.cluster, ids_[l]).bandwidth);
  }
  orbit = counted();
  return alone_ ? occupancy(inputs_.cluster, plan.flows) : longest;
}

/// Unites flows of a group that do the same, where one member stands for the group.
void FoldedLinks::unite_alike(const CollectivePlan& plan) {
  std::map<std::tuple<Bytes, std::size_t, BytesPerSecond, Seconds>, std::vector<int>> first;
  for (const Flow& flow : plan.flows) {
    const Route way = route(inputs_.cluster, flow.from, flow.to);
    const std::vector<int> links = numbered(way);
    const auto [entry, fresh] =
        first.try_emplace({flow.bytes, links.size(), way.bandwidth, way.latency}, links);
    if (!fresh) unite(entry->second, links);
  }
}

std::vector<int> FoldedLinks::numbered(const Route& route) {
  std::vector<int> numbers;
  numbers.reserve(route.links.size());
  for (const LinkId id : route.links) {
    const auto [entry, fresh] = numbers_.try_emplace(id, static_cast<int>(ids_.size()));
    if (fresh) {
      ids_.push_back(id);
      parents_.push_back(entry->second);
      sizes_.push_back(1);
      uses_.push_back(0);
      loads_.emplace_back(0);
    }
    numbers.push_back(entry->second);
  }
  return numbers;
}

int FoldedLinks::find(int link) {
  while (parents_[link] != link) link = parents_[link] = parents_[parents_[link]];
  return link;
}

void FoldedLinks::unite(const std::vector<int>& one, const std::vector<int>& other) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    int a = find(one[i]), b = find(other[i]);
    if (a == b) continue;
    if (uneven_) compare(ids_[a], ids_[b]);
    if (sizes_[a] < sizes_[b]) std::swap(a, b);
    parents_[b] = a;
    sizes_[a] += sizes_[b];
  }
}

void FoldedLinks::compare(LinkId one, LinkId other) {
  const Link first = link(inputs_.cluster, one), second = link(inputs_.cluster, other);
  if (first.bandwidth == second.bandwidth) return;
  problem_ = "link " + first.name + " has another bandwidth than link " + second.name;
}

void FoldedLinks::count(const std::vector<int>& links, Bytes bytes) {
  for (const int link : links) {
    if (uses_[link]++ == 0) touched_.push_back(link);
    loads_[link] += bytes;
  }
}

/// Returns what was counted since the last call.
FoldedLinks::Orbit FoldedLinks::counted() {
  Orbit orbit;
  orbit.reserve(touched_.size());
  for (const int link : touched_) {
    orbit.push_back({link, uses_[link], loads_[link]});
    uses_[link] = 0;
    loads_[link] = Bytes(0);
  }
  touched_.clear();
  return orbit;
}

LinkId FoldedLinks::class_of(LinkId link) {
  const auto number = numbers_.find(link);
  return number == numbers_.end() ? link : ids_[find(number->second)];
}

int FoldedLinks::class_size(LinkId link) {
  const auto number = numbers_.find(link);
  return number == numbers_.end() ? 1 : sizes_[find(number->second)];
}

std::vector<std::string> FoldedLinks::names_in_class(LinkId link) {
  std::vector<std::string> names;
  const auto number = numbers_.find(link);
  if (number == numbers_.end()) return names;
  const int own_class = find(number->second);
  for (std::size_t other = 0; other < ids_.size(); ++other) {
    if (find(static_cast<int>(other)) != own_class) continue;
    names.push_back(interlock::link(inputs_.cluster, ids_[other]).name);
  }
  return names;
}

std::unordered_map<LinkId, FoldedLinks::ClassUse> FoldedLinks::class_uses(const Orbit& orbit) {
  std::unordered_map<LinkId, ClassUse> classes;
  for (const Use& one : orbit) {
    const int own_class = find(one.link), size = sizes_[own_class];
    const auto [entry, fresh] =
        classes.try_emplace(ids_[own_class], ClassUse{one.messages, one.messages});
    ClassUse& use = entry->second;
    use.least = std::min(use.least, one.messages);
    use.most = std::max(use.most, one.messages);
    use.alike = ++use.links == size && use.least == use.most;
    use.bytes += one.bytes / size;
  }
  return classes;
}

}  // namespace interlock
