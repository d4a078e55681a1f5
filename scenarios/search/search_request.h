// SearchRequest: what "search" of a scenario asks for: plans to look at, limits, what counts.
// SPDX-License-Identifier: Apache-2.0
//
// Example: "search": {"minimize": "memory", "micro_batch_size": [1, 2]} is the aim Memory and the
// sizes {1, 2}; all other lists are empty.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/units.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/reserve.h"

namespace interlock {

/// The quantity that a plan should have little of. Time, cost and energy are those of the goal, if
/// there is one, else of a step; memory is that of the fullest device.
enum class Aim { Time, Memory, Cost, Energy };
inline constexpr int kAims = 4;
/// Returns "time", "memory", "cost" or "energy".
const char* name_of(Aim aim);

/// Limits of what a plan may take.
struct PlanLimits {
  std::optional<Bytes> memory;           // of each device; else what `reserve` leaves of it
  std::optional<MemoryReserve> reserve;  // else the price of reserve.h
  std::optional<Seconds> time;           // as of Aim
  std::optional<double> cost;            // likewise, in the currency of the price
  std::optional<Watts> power;            // of all devices, a mean
};

/// A key that a search may vary beside the degrees, as "search" and the scenario write it.
struct SearchOption {
  const char* key;   // "shard"
  const char* path;  // "parallel.shard"
};
inline constexpr const char* kOffload = "training.offload";
inline constexpr const char* kTrainingPrecision = "training.precision";
inline constexpr const char* kMachines = "cluster.machines";  // "all" orders, or "as_written"
inline constexpr SearchOption kSearchOptions[] = {
    {"sequence_parallel", "parallel.sequence_parallel"},
    {"shard", "parallel.shard"},
    {"gradient_reduction", "parallel.gradient_reduction"},
    {"overlap_gradients", "parallel.overlap_gradients"},
    {"overlap_weights", "parallel.overlap_weights"},
    {"expert_overlap", "parallel.expert_overlap"},
    {"offload", kOffload},
    {"precision", kTrainingPrecision},
    {"machine_order", kMachines}};

/// Flows that are simulated in a second or two; and those of plans that would be the best.
inline constexpr double kFlowsOfSimulation = 2e6, kFlowsOfLeader = 1e7;

/// Effort, times devices, after a simulation said that quick estimates of plans on shared links are
/// far too short, so that the best would be proven only by one for each plan.
inline constexpr double kEffortBeyond = 1 << 19;

struct SearchCounts;

/// An empty list stands for the usual values, see PlanSpace.
struct SearchRequest {
  Aim aim = Aim::Time;
  PlanLimits limits;
  double worth = 0.01;            // share by which a plan must beat each faster one in something
  bool only_best = false;         // nothing but the best plan is asked for
  std::optional<double> to_beat;  // no plan whose aim takes as much is of use
  double most_flows = kFlowsOfSimulation, most_flows_of_leader = kFlowsOfLeader;
  double effort_beyond = kEffortBeyond;
  std::vector<int> devices, tensor, pipeline, data, context, expert, expert_tensor;
  std::vector<int> zero_stages, micro_batch_sizes, chunks;
  std::vector<JsonValue> strategies, schedules, recompute, partitions, context_layouts;
  std::map<std::string, std::vector<JsonValue>> options;  // by path; null: as the scenario says
  /// Throws Error for a plan that is of no use, e.g. to the program that is to run it; empty: each
  /// is of use.
  std::function<void(const Plan&)> check_use;
  /// Told what was counted so far whenever a plan is better known; may throw StopSearch, or be
  /// empty.
  std::function<void(const SearchCounts&)> counted;
};

/// Reads "search".
SearchRequest read_search(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
