// Training reports: loss against steps, and against the time that they took or would take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "reports/figures.h"
#include "reports/report.h"

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
  std::vector<Seconds> ends;                  // of each step, measured; empty: nobody had a clock
  Seconds simulated_step;                     // predicted before the run
  Seconds measured_step;                      // median; 0: nobody had a clock
  std::vector<std::int64_t> peaks;            // bytes that tensors held, by device
  std::vector<std::int64_t> simulated_peaks;  // likewise, predicted
};

std::vector<std::string> names_of(const std::vector<TrainingCurve>& curves);

/// A row for each curve: first and last loss, step time measured and simulated, memory. The first
/// and the last loss are means of as many steps, at most 20, and no step is in both.
Grid training_grid(const std::vector<TrainingCurve>& curves);
/// What its columns mean.
std::string training_note(const std::vector<TrainingCurve>& curves);
/// Both for a terminal, and how old the weights of forwards were.
std::string training_table(const std::vector<TrainingCurve>& curves, const TableStyle& style);

/// "interlock-training/1", see docs/training.md.
std::string training_json(const std::vector<TrainingCurve>& curves);

/// Three panels side by side: loss against steps, measured time and simulated time. Each point is
/// the mean of a hundredth of the run.
std::string training_svg(const std::vector<TrainingCurve>& curves);

}  // namespace interlock
