// Adds up what exchanges of each replica take, by how its groups lie in nodes.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/slowest_replica.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/plan/vocabulary.h"

namespace interlock {
namespace {

/// How a group lies: of each member the number of its node, in the order in which the group meets
/// nodes, and its place in it.
using Lie = std::vector<std::pair<int, int>>;

Lie lie_of(const Cluster& cluster, const std::vector<int>& group) {
  const int each = cluster.machines.front().devices_per_node;
  std::map<int, int> numbers;  // by node
  Lie lie;
  lie.reserve(group.size());
  for (const int device : group) {
    const int number = static_cast<int>(numbers.size());
    lie.emplace_back(numbers.try_emplace(device / each, number).first->second, device % each);
  }
  return lie;
}

/// The ways in which the groups of one axis lie.
struct Lies {
  std::vector<int> of_device;            // the way of its group
  std::vector<std::vector<int>> groups;  // one for each way
};

Lies lies_of(const LowerInputs& inputs, MeshAxis axis, const std::vector<Coordinates>& all) {
  Lies lies{std::vector<int>(static_cast<std::size_t>(inputs.cluster.devices), -1), {}};
  std::map<Lie, int> known;
  for (const Coordinates& at : all) {
    if (lies.of_device[static_cast<std::size_t>(device_of(inputs.mesh, at))] >= 0) continue;
    std::vector<int> group = group_of(inputs.mesh, axis, at);
    const auto [entry, fresh] =
        known.try_emplace(lie_of(inputs.cluster, group), static_cast<int>(lies.groups.size()));
    for (const int device : group) {
      lies.of_device[static_cast<std::size_t>(device)] = entry->second;
    }
    if (fresh) lies.groups.push_back(std::move(group));
  }
  return lies;
}

/// Returns whether devices differ in nothing but where their groups lie.
bool differs_by_groups_alone(const LowerInputs& inputs) {
  const Cluster& cluster = inputs.cluster;
  return inputs.layouts.empty() && inputs.layers.empty() && inputs.slow.empty() &&
         inputs.replica_schedules.empty() && !is_mixed(cluster) && !cluster.mesh &&
         cluster.slow_links.empty() && std::holds_alternative<IdealSwitch>(cluster.network);
}

/// Adds up times of exchanges, each axis looked at once.
class ReplicaTimes {
 public:
  ReplicaTimes(const LowerInputs& inputs, const GroupTime& time_of)
      : inputs_(inputs),
        time_of_(time_of),
        ranks_(simulated_ranks(inputs.mesh, inputs.unfolded)),
        moves_(folded_ranks(inputs.mesh, inputs.unfolded)),
        times_(moves_.size()) {
    for (const Coordinates& rank : ranks_) {
      for (const Coordinates& by : moves_) all_.push_back(shifted(inputs.mesh, rank, by));
    }
  }

  /// Adds an exchange of the devices that `rank` stands for.
  void add(int rank, const Exchange& exchange) {
    if (is_host(exchange.axis) || is_empty(exchange) ||
        group_size(inputs_.mesh, exchange.axis) < 2) {
      return;
    }
    const auto [known, fresh] = lies_.try_emplace(exchange.axis);
    if (fresh) known->second = lies_of(inputs_, exchange.axis, all_);
    const Lies& lies = known->second;
    if (lies.groups.size() < 2) return;
    std::vector<std::optional<Seconds>> times(lies.groups.size());
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      const Coordinates at =
          shifted(inputs_.mesh, ranks_[static_cast<std::size_t>(rank)], moves_[i]);
      const auto way = static_cast<std::size_t>(
          lies.of_device[static_cast<std::size_t>(device_of(inputs_.mesh, at))]);
      if (!times[way]) times[way] = time_of_(exchange, lies.groups[way]) * exchange.count;
      times_[i] += *times[way];
    }
  }

  Coordinates slowest() const {
    return moves_[static_cast<std::size_t>(std::ranges::max_element(times_) - times_.begin())];
  }

 private:
  const LowerInputs& inputs_;
  const GroupTime& time_of_;
  std::vector<Coordinates> ranks_, moves_, all_;
  std::vector<Seconds> times_;  // by move
  std::map<MeshAxis, Lies> lies_;
};

}  // namespace

Coordinates slowest_replica(const LowerInputs& inputs, const GroupTime& time_of) {
  if (!differs_by_groups_alone(inputs)) return {};
  ReplicaTimes times(inputs, time_of);
  for (std::size_t s = 0; s < inputs.stages.size(); ++s) {
    const std::size_t stage = s % inputs.schedule.rank_of_stage.size();
    for (const OpCost* cost : costs_of_ops(inputs.stages[s])) {
      for (const Exchange& exchange : cost->exchanges) {
        times.add(inputs.schedule.rank_of_stage[stage], exchange);
      }
    }
  }
  return times.slowest();
}

}  // namespace interlock
