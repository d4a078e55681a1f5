// Classes of links, and how many equal messages each carries.
// SPDX-License-Identifier: Apache-2.0
#include "sim/run/folded_links.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace interlock {

FoldedLinks::FoldedLinks(const LowerInputs& inputs)
    : inputs_(inputs),
      simulated_(simulated_ranks(inputs.mesh, inputs.unfolded)),
      folded_(folded_ranks(inputs.mesh, inputs.unfolded)) {
  for (const Coordinates& at : simulated_) devices_.push_back(device_of(inputs.mesh, at));
}

Route FoldedLinks::add_way(int from_rank, int to_rank, Orbit& orbit) {
  const Route own = route(inputs_.cluster, devices_[from_rank], devices_[to_rank]);
  if (!folds()) return own;
  for (const Coordinates& by : folded_) {
    const int from = device_of(inputs_.mesh, shifted(inputs_.mesh, simulated_[from_rank], by));
    const int to = device_of(inputs_.mesh, shifted(inputs_.mesh, simulated_[to_rank], by));
    const Route equal = route(inputs_.cluster, from, to);
    if (equal.links.size() != own.links.size() || equal.bandwidth != own.bandwidth ||
        equal.latency != own.latency) {
      problem_ = "the way from device " + std::to_string(from) + " to " + std::to_string(to) +
                 " is another than that from " + std::to_string(devices_[from_rank]) + " to " +
                 std::to_string(devices_[to_rank]);
      return own;
    }
    unite(own, equal);
    for (const LinkId link : equal.links) ++orbit.uses[link];
  }
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

Seconds FoldedLinks::add_collective(const CollectivePlan& plan, const std::vector<int>& group,
                                    MeshAxis axis, int rank, Orbit& orbit) {
  if (!folds() || plan.flows.empty()) return occupancy(inputs_.cluster, plan.flows);
  std::unordered_map<LinkId, Bytes> loads;
  // Members of equal groups play the same parts in the same places.
  for (const std::vector<int>& equal : equal_groups(axis, rank)) {
    std::unordered_map<int, int> counterpart;
    for (std::size_t i = 0; i < group.size(); ++i) counterpart[group[i]] = equal[i];
    for (const Flow& flow : plan.flows) {
      const Route own = route(inputs_.cluster, flow.from, flow.to);
      const Route other =
          route(inputs_.cluster, counterpart.at(flow.from), counterpart.at(flow.to));
      if (own.links.size() != other.links.size() || own.bandwidth != other.bandwidth) {
        problem_ = "the group of device " + std::to_string(equal.front()) +
                   " is laid otherwise than that of device " + std::to_string(group.front());
        return occupancy(inputs_.cluster, plan.flows);
      }
      unite(own, other);
      for (const LinkId link : other.links) {
        ++orbit.uses[link];
        loads[link] += flow.bytes;
      }
    }
  }
  Seconds longest(0);
  for (const auto& [id, load] : loads) {
    longest = std::max(longest, load / link(inputs_.cluster, id).bandwidth);
  }
  return longest;
}

LinkId FoldedLinks::find(LinkId link) {
  const auto [entry, fresh] = parents_.try_emplace(link, link);
  if (fresh) sizes_[link] = 1;
  if (entry->second == link) return link;
  const LinkId root = find(entry->second);
  parents_[link] = root;
  return root;
}

void FoldedLinks::unite(const Route& one, const Route& other) {
  for (std::size_t i = 0; i < one.links.size(); ++i) {
    LinkId a = find(one.links[i]), b = find(other.links[i]);
    if (a == b) continue;
    if (sizes_[a] < sizes_[b]) std::swap(a, b);
    parents_[b] = a;
    sizes_[a] += sizes_[b];
  }
}

LinkId FoldedLinks::class_of(LinkId link) { return folds() ? find(link) : link; }

int FoldedLinks::most_uses(LinkId link, const Orbit& orbit) {
  const LinkId own_class = find(link);
  int most = 1;
  for (const auto& [used, times] : orbit.uses) {
    if (find(used) == own_class) most = std::max(most, times);
  }
  return most;
}

std::optional<int> FoldedLinks::uses_of_each(LinkId link, const Orbit& orbit) {
  const LinkId own_class = find(link);
  int count = 0, links = 0;
  for (const auto& [used, times] : orbit.uses) {
    if (find(used) != own_class) continue;
    if (links > 0 && times != count) return std::nullopt;
    count = times;
    ++links;
  }
  if (links != sizes_[own_class]) return std::nullopt;
  return count;
}

}  // namespace interlock
