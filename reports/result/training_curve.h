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

/// The training of one scenario.
/// Example: three steps of two micro-batches under 1F1B that take 0.3, 0.2 and 0.2 s: losses {4.8,
/// 4.1, 3.7}, ends {0.3, 0.5, 0.7}, measured_step 0.2 s (the first step is left out), staleness
/// {{0, 6}}.
struct TrainingCurve {
  std::string name, strategy, schedule, executor;
  std::uint64_t seed = 1;
  int wanted_steps = 0;  // `losses` has fewer if the run was stopped
  /// The number of micro-batches by their staleness: updates between forward and own update, the
  /// most over stages.
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
