// lower: Schedule to Program; the only place that inserts communication and memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "hardware/networks/cluster.h"
#include "sim/lower/slow_devices.h"
#include "sim/lower/stage_layouts.h"
#include "sim/plan/data_parallel.h"
#include "sim/plan/mesh.h"
#include "sim/plan/schedules/catalogue.h"
#include "sim/plan/stage_cost.h"
#include "sim/program/program.h"

namespace interlock {

/// The links of a program that has every exchange once.
struct KnownLinks {
  bool known = false;
  std::array<bool, kMeshAxes> left_out = {};  // axes of exchanges that need not be written out
  bool shared = false;                        // by several messages or collectives
  bool folds = true;                          // ranks stand for others exactly
};

class KnownFlows;  // sim/lower/links/known_flows.h

struct LowerInputs {
  Schedule schedule;
  /// Schedules by replica (data coordinate), where replicas have different numbers of
  /// micro-batches; else empty. Ranks and stages are as in `schedule`, and so are numbers: step n
  /// begins with micro-batch n * M, M that of `schedule`.
  std::vector<Schedule> replica_schedules;
  SchedulePolicy policy;
  Strategy strategy;
  std::vector<StageRole> roles;  // (stages)
  /// (machines, slices, stages): the cost of each stage on each machine of the cluster.
  /// Example: two machines, one slice, four stages: stages[4 + 3] is stage 3's cost on machine 1.
  std::vector<StageCost> stages;
  Cluster cluster;
  /// One of a pipeline alone where all its degrees are 1: rank r is device r. Beside `layers` it
  /// says which devices are simulated for which others, see cut_after().
  Mesh mesh;
  Unfolded unfolded = kFolded;
  bool folds_nearly = false;  // links are taken to be as busy as the busiest of their class
  DataParallel data_parallel;
  std::vector<SlowDevices> slow;
  bool memory_contention = false;        // of kernels with what is sent, received and reduced
  std::optional<double> token_sms = {};  // see Question; nothing: as of other collectives
  bool passes_by_deepep = false;         // so do tokens, where `token_sms` says nothing
  double memory_held = 1;                // see Program
  std::vector<Bytes> libraries;          // by simulated rank, see Rank; empty: none
  bool contention = true;    // false: messages and collectives have their links to themselves
  bool written_out = false;  // every exchange: others may use its links
  StageLayouts layouts;      // where they differ; `mesh` then says only how many devices a rank has
  std::vector<Mesh> layers;  // meshes by layout, where layers have some of their own; else empty
  double most_ticks_per_second = 1e18;  // to lower one run as another one was
  /// For programs that differ in their number of steps, from 2 on: what one of them found out of
  /// its links, for the others; null: each finds out by itself.
  std::shared_ptr<KnownLinks> known_links = {};
  /// Shared with other programs on the same cluster; null: none.
  std::shared_ptr<KnownFlows> known_flows = {};
};

/// Returns how the stages of a simulated rank are divided.
inline const Mesh& mesh_of_rank(const LowerInputs& inputs, int rank) {
  return inputs.layouts.empty() ? inputs.mesh : inputs.layouts.meshes[rank];
}

/// Returns how the layers of one layout divide the devices of a simulated rank.
inline const Mesh& mesh_of_layers(const LowerInputs& inputs, int rank, int layout) {
  return inputs.layers.empty() ? mesh_of_rank(inputs, rank) : inputs.layers.at(layout);
}

/// Returns whether a backward of `stage` waits until buckets of its gradients have room. Where
/// others of the rank compute meanwhile, one that stood there would keep its stash for longer.
inline bool waits_for_buckets(const LowerInputs& inputs, const StageCost& stage) {
  const bool once = !stage.adds_up_whole_gradients && inputs.policy.in_flight <= 1;
  return stage.reduces_each_backward || once;
}

/// Returns the program that runs the schedule on the cluster, every step of it.
/// Durations are rounded once, to the finest 10^-k s that keeps the sum of all durations under 2^53
/// ticks (2^50 where wires share links); sums of them are then exact.
Program lower(const LowerInputs& inputs);
/// Gives each link of `program` to each of its users alone.
void share_no_links(Program& program);

}  // namespace interlock
