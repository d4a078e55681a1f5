// Replicas of a schedule.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/unfold.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

namespace {

/// Numbers of stages and losses moved on.
std::vector<Sequence> of_replica(std::vector<Sequence> rank, int stages) {
  for (Sequence& sequence : rank) {
    for (Run& run : sequence.runs) {
      for (Op& op : run.ops) {
        op.stage += stages;
        op.loss += stages;
      }
    }
  }
  return rank;
}

/// Gives each replica ranks and stages of its own. `data`: the data coordinate of each.
void unfold_schedule(LowerInputs& inputs, const std::vector<int>& data) {
  Schedule& schedule = inputs.schedule;
  const Schedule one = schedule;
  const int ranks = static_cast<int>(one.ranks.size());
  const int replicas = static_cast<int>(data.size());
  schedule.replicas = replicas;
  schedule.stages = one.stages * replicas;
  schedule.ranks.clear();
  for (int replica = 0; replica < replicas; ++replica) {
    const bool alike = inputs.replica_schedules.empty();
    const Schedule& own = alike ? one : inputs.replica_schedules.at(data[replica]);
    CHECK(own.ranks.size() == one.ranks.size(), "the ranks of one replica");
    for (const std::vector<Sequence>& rank : own.ranks) {
      schedule.ranks.push_back(of_replica(rank, replica * one.stages));
    }
    if (replica == 0) continue;
    for (const int rank : one.rank_of_stage) {
      schedule.rank_of_stage.push_back(rank + replica * ranks);
    }
    schedule.weight_versions.insert(schedule.weight_versions.end(), one.weight_versions.begin(),
                                    one.weight_versions.end());
  }
}

}  // namespace

LowerInputs unfold(LowerInputs inputs) {
  CHECK(inputs.schedule.replicas == 1, "a schedule of one replica");
  const int ranks = static_cast<int>(inputs.schedule.ranks.size());
  Mesh& mesh = inputs.mesh;
  if (mesh.devices() == 1) mesh.degree(Dimension::Pipeline) = ranks;
  CHECK(mesh.degree(Dimension::Pipeline) == ranks, "a rank for each pipeline coordinate");
  const auto simulated = simulated_ranks(mesh, inputs.unfolded);
  const int replicas = static_cast<int>(simulated.size()) / ranks;
  const bool shares = !inputs.replica_schedules.empty();
  if (replicas == 1 && !is_mixed(inputs.cluster) && !shares) return inputs;
  const int stages = inputs.schedule.stages;
  const std::size_t slices = inputs.schedule.slices;
  CHECK(inputs.stages.size() == inputs.cluster.machines.size() * slices * stages,
        "a cost for each machine, slice and stage");
  if (replicas > 1 || shares) {
    std::vector<int> data;
    data.reserve(static_cast<std::size_t>(replicas));
    for (std::size_t at = 0; at < simulated.size(); at += static_cast<std::size_t>(ranks)) {
      data.push_back(simulated[at][static_cast<int>(Dimension::Data)]);
    }
    unfold_schedule(inputs, data);
    inputs.roles = roles_of_copies(inputs.roles, replicas);
  }
  std::vector<std::size_t> machines;  // by rank
  machines.reserve(simulated.size());
  for (const Coordinates& at : simulated) {
    machines.push_back(machine_number(inputs.cluster, device_of(mesh, at)));
  }
  std::vector<StageCost> costs;
  for (std::size_t slice = 0; slice < slices; ++slice) {
    for (int stage = 0; stage < stages * replicas; ++stage) {
      const std::size_t machine = machines[inputs.schedule.rank_of_stage[stage]];
      costs.push_back(inputs.stages[(machine * slices + slice) * stages + stage % stages]);
    }
  }
  inputs.stages = std::move(costs);
  return inputs;
}

std::vector<Unfolded> foldings(const Mesh& mesh) {
  std::vector<Unfolded> all;
  for (int bits = 0; bits < 1 << (kDimensions - 1); ++bits) {
    Unfolded unfolded = kFolded;
    bool different = true;
    for (int i = 0; i < kDimensions - 1; ++i) {
      unfolded[i] = (bits >> i & 1) != 0;
      different = different && (!unfolded[i] || mesh.degrees[i] > 1);
    }
    if (different) all.push_back(unfolded);
  }
  std::stable_sort(all.begin(), all.end(), [&](const Unfolded& a, const Unfolded& b) {
    return simulated_ranks(mesh, a).size() < simulated_ranks(mesh, b).size();
  });
  return all;
}

}  // namespace interlock
