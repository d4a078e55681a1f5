// Messages between stages that are divided in different ways, and the collectives of their groups.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/stage_layouts.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"

namespace interlock {

namespace {

Coordinates at_rank(Coordinates at, int rank) {
  at[static_cast<int>(Dimension::Pipeline)] = rank;
  return at;
}

}  // namespace

TensorPlacement placement_of(const Mesh& mesh, int rank, Bytes whole, Bytes held) {
  const int data = mesh.degree(Dimension::Data), tensor = mesh.degree(Dimension::Tensor);
  const int cuts = static_cast<int>(std::lround(whole / (held * data)));
  CHECK(cuts == 1 || cuts == tensor, "tensor devices that hold copies, or a part each");
  TensorPlacement placement{{}, {data, cuts}, {}};
  for (const Coordinates& at : folded_ranks(mesh, kFolded)) {
    placement.devices.push_back(device_of(mesh, at_rank(at, rank)));
    placement.parts.push_back(at[static_cast<int>(Dimension::Data)] * cuts +
                              at[static_cast<int>(Dimension::Tensor)] % cuts);
  }
  return placement;
}

Resharding plan_crossing(const Cluster& cluster, const StageLayouts& layouts,
                         const std::vector<int>& rank_of_stage, const Crossing& crossing) {
  const int below = crossing.below;
  const Bytes whole = layouts.whole_outputs[below];
  const int low = rank_of_stage[below], high = rank_of_stage[below + 1];
  TensorPlacement from = placement_of(layouts.meshes[low], low, whole, layouts.outputs[below]);
  TensorPlacement to = placement_of(layouts.meshes[high], high, whole, layouts.inputs[below + 1]);
  if (!crossing.upwards) std::swap(from, to);
  return plan_resharding(cluster, from, to, whole * crossing.tensors, layouts.resharding);
}

CollectivePlan plan_of_all_groups(const Cluster& cluster, const Mesh& mesh, int rank,
                                  const Exchange& exchange) {
  CollectivePlan all;
  std::set<int> seen;
  for (const Coordinates& at : folded_ranks(mesh, kFolded)) {
    const Coordinates own = at_rank(at, rank);
    if (seen.count(device_of(mesh, own)) > 0) continue;
    const std::vector<int> group = group_of(mesh, exchange.axis, own);
    seen.insert(group.begin(), group.end());
    const CollectivePlan plan = plan_exchange(cluster, group, exchange);
    all.algorithm = plan.algorithm;
    all.flows.insert(all.flows.end(), plan.flows.begin(), plan.flows.end());
    all.latency = std::max(all.latency, plan.latency);
  }
  return all;
}

}  // namespace interlock
