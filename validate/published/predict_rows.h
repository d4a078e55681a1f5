// Predicts measured rows, in several processes at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hardware/devices/device.h"
#include "validate/published/measurement_file.h"

namespace interlock {

/// The numbers of a simulation; 0: the scenario does not tell them.
struct RowValues {
  double step_time = 0, samples_per_s = 0, tokens_per_s = 0;
  double devices = 0;
  double forward = 0, backward = 0;                          // s, of the stage in the middle
  double mean_forward = 0, mean_input = 0, mean_weight = 0;  // s, means over stages
  double peak_memory = 0, used_memory = 0;                   // bytes, of the fullest device
  double peak_stash = 0, state_memory = 0;                   // likewise
  double last_peak = 0, last_held = 0;  // bytes, of the last rank; held: from step to step
  double mfu = 0;           // the whole score matrix counted, as Megatron-LM and torchtitan do
  double palm_mfu = 0;      // and an input embedding of its own as if it multiplied, as PaLM does
  bool fits = true;         // into the memory of the devices
  bool leaves_room = true;  // beside it for what processes hold, see scenarios/plan/reserve.h
  bool knows_memory = false;
};

/// The device, framework and model of a row, in the words of a scenario.
struct RowSetup {
  std::string device;     // "H100"
  std::string framework;  // "nemo"; "inline": its numbers are the row's own; empty: none
  std::string model;      // "dense", "experts", or "network": it has no tokens
};

struct RowPrediction {
  RowValues values;
  RowSetup setup;
  double wall_time = 0;  // s, that predicting took; for people
  std::string choice;    // which of the candidates it is
  std::string problem;   // why there is nothing; empty: all is well
};

/// The efficiencies that a row is priced with: those of its device, or those that it would borrow
/// if the catalogue knew no device of its architecture.
enum class Efficiencies { Own, Borrowed };

/// Processes that predict rows, at least one; `told` hears how many rows are done, and `stop` is
/// asked now and then whether to leave the others.
struct RowJobs {
  int processes = 1;
  std::function<void(std::size_t done, std::size_t of)> told = {};
  std::function<bool()> stop = {};
};

/// Predicts `rows`. The order of results is that of rows; those that were left say so.
std::vector<RowPrediction> predict_rows(const std::vector<const MeasuredRow*>& rows,
                                        const RowJobs& jobs,
                                        Efficiencies efficiencies = Efficiencies::Own);

/// The problem of a row that was left.
inline constexpr const char* kLeftRow = "interrupted before it was predicted";

/// Predicts one row, in this process: the fastest of its candidates that fit, or of all if none
/// does.
RowPrediction predict_row(const MeasuredRow& row, Efficiencies efficiencies = Efficiencies::Own);

/// Lets `device` borrow from the nearest device of another architecture, in the place of what it
/// states. Returns the lender's name; empty: it was calibrated, or there is no lender.
std::string borrow_from_others(Device& device);

}  // namespace interlock
