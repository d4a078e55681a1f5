// TrainingCurve: how one scenario trained, step by step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "reports/result/execution_record.h"

namespace interlock {

/// How one scenario trained.
struct TrainingCurve {
  std::string name, strategy, schedule, executor;
  std::uint64_t seed = 1;
  int wanted_steps = 0;  // `losses` has fewer if the run was stopped
  /// Updates between a micro-batch's forward and its own update, the most over stages: how many
  /// micro-batches had that many.
  std::map<int, std::int64_t> staleness;
  std::vector<double> losses;  // the network's, mean over the micro-batches of each step
  std::vector<std::vector<double>> stage_losses;  // (stages, steps) of losses on stages; else empty
  std::vector<Seconds> ends;                      // of each step, measured; empty without a clock
  Seconds simulated_step;                         // predicted before the run
  Seconds measured_step;                          // median; 0 without a clock
  std::vector<std::int64_t> peaks;                // bytes that tensors held, by device
  std::vector<std::int64_t> simulated_peaks;      // likewise, predicted
  std::optional<ExecutionRecord> execution;       // of GPUs
};

}  // namespace interlock
