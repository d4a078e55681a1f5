// ResultFile: result and training JSON read back, as far as figures need it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "reports/result/training_curve.h"
#include "scenarios/load/scenario.h"
#include "sim/measure/metrics.h"

namespace interlock {

struct ReadDevice {
  int device = 0;  // as the machine counts
  double busy = 0, useful = 0;
  std::array<double, kTimeUses> time{};
  std::optional<Bubbles> bubbles;  // seconds of a step; none of runs that were not explained
  double peak_memory = 0;          // bytes, here and below
  double peak_stash = 0;
  std::array<double, kMemoryClasses> memory{};
};

struct ReadResult {
  std::string file, name;
  std::vector<SweptValue> swept;
  int devices = 1;  // of the whole layout
  double step_time = 0;
  std::optional<double> tokens_per_s, samples_per_s;
  double busy = 0, useful = 0;
  std::optional<double> mfu;
  double exposed = 0;  // seconds of a step
  double traffic = 0;  // bytes of a step, on all links together
  std::optional<double> memory_capacity;
  std::optional<double> run_time;                      // seconds of a whole run, where there is one
  std::optional<double> peers_at_work, share_of_best;  // of a swarm, likewise
  std::optional<double> range_low, range_high;         // of the step time, seconds
  std::optional<double> energy, power;                 // J of a step; W
  std::optional<double> cost;                          // of a step
  std::optional<double> goal_time, goal_energy, goal_cost;  // s, J, money
  std::string currency;
  std::optional<double> quality;  // as the scenario tells it
  std::string quality_measure;
  std::vector<ReadDevice> simulated;
  std::shared_ptr<const JsonValue> scenario;  // none if the result has none
};

/// What files hold, in order; one kind only.
struct ResultFiles {
  std::vector<ReadResult> results;
  std::vector<TrainingCurve> curves;
};

/// Throws: Error if a document has no result, is of another version or lacks a key, or if results
/// and training curves are mixed.
ResultFiles read_result_files(const std::vector<JsonValue>& documents);

}  // namespace interlock
