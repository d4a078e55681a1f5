// Scenarios of parallel layouts, and whether two runs of one tell the same of every device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/simulate/run_scenario.h"
#include "sim/lower/unfold.h"

namespace interlock {

/// The sections of a scenario as JSON; `parallel`, `training` are members without their braces.
struct LayoutTrial {
  std::string model, cluster, parallel, training;
  std::string fold = "\"auto\"";
  std::string engine = "auto";
  std::string partition = "\"balanced\"";
  std::string variation = {};  // members of the section; none: no section
  bool skip_periods = true;
  bool memory_contention = false;
};

/// A transformer of a few blocks that every tensor layout up to 8 can divide; one with experts.
std::string small_transformer(int layers, bool experts = false);
/// Another, for degrees that 24 is a multiple of.
std::string divisible_transformer(int layers, bool experts = false);

std::string document(const LayoutTrial& trial);
/// Throws: Error as the scenario does.
Question load(const LayoutTrial& trial);
ScenarioResult run(const LayoutTrial& trial);

/// Returns the dimensions that are folded, as JSON: ["data", "tensor"].
std::string folded_dimensions(const Unfolded& unfolded);

/// The first figure in which a run that folds differs by more than `epsilon` of it from one that
/// does not, device by device and link by link; "" if none does.
std::string difference(const ScenarioResult& folded, const ScenarioResult& whole, double epsilon);

enum class RandomCluster { Any, Mesh };
/// A scenario of the layouts, schedules, strategies and clusters that there are, on up to 32
/// devices, also of two machines or with a slow link; equal seeds make equal ones. Some are refused
/// when they are loaded. Mesh: a link for each pair, all alike.
LayoutTrial random_layout(std::uint64_t seed, RandomCluster cluster = RandomCluster::Any);

}  // namespace interlock
