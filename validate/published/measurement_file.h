// MeasurementFile: measured runs of others, each with the scenario that restates it.
// SPDX-License-Identifier: Apache-2.0
//
// A file holds the tables of one source. A table has a scenario, which is the base of all its rows,
// and columns: paths of keys that a row sets (as --set would), words that tell rows apart, and what
// was measured. docs/validation.md has the form.
//
// Example: the columns "id", "base", "series", "cluster.devices", "parallel.pipeline" and
// "measured.speed_up" with the row ["K=4, M=1", "K=2, M=1", "TPU v3", 4, 4, 1.07] make a
// MeasuredRow with that id, base and series, with measured {SpeedUp: 1.07}, and with the table's
// scenario on four devices as its document.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// Names a measured quantity, in the unit of its name.
enum class Measurand {
  StepTime,         // step_time_s
  StepDifference,   // step_difference_s: over the step time of the row `base`
  SamplesPerS,      // samples_per_s, of all devices together
  TokensPerS,       // tokens_per_s, likewise
  TflopsPerDevice,  // tflops_per_device, by flops_per_step of the row
  SpeedUp,          // speed_up: samples a second over those of the row `base`
  Forward,          // forward_s: one pass of the stage in the middle
  Backward,         // backward_s, likewise: both of its halves
  MeanForward,      // mean_forward_s: one pass, mean over the stages
  MeanInput,        // mean_backward_input_s, likewise
  MeanWeight,       // mean_backward_weight_s, likewise
  PeakMemory,       // peak_memory_bytes, of the fullest device
  UsedMemory,       // used_memory_bytes: with context, communicators and what allocators keep
  PeakStash,        // peak_stash_bytes, of the fullest device
  StateMemory,      // state_memory_bytes: weights, gradients and optimiser states, likewise
  LastPeak,         // last_peak_bytes: peak_memory_bytes of the last rank
  LastHeld,         // last_held_bytes: what the last rank holds between two steps
  StashRatio,       // stash_ratio: peak_stash_bytes over those of the row `base`
};
inline constexpr int kMeasurands = 18;
/// Returns the names by Measurand: "step_time_s", ...
const std::vector<std::string>& measurand_names();
/// Returns true if a quantity is one of memory, not of speed.
bool is_memory(Measurand what);
/// Returns true if a quantity compares a row with another one.
bool needs_base(Measurand what);

/// The errors that a table should reach: shares, and nothing where nothing was promised.
struct AccuracyTarget {
  std::optional<double> mape, most;        // at most
  std::optional<double> spearman, orders;  // at least
};

/// One of several scenarios that a row may have been: the fastest that fits stands for it.
struct CandidateScenario {
  std::string name;
  JsonValue document;
};

struct MeasuredRow {
  std::string id;
  std::string series;  // rows that are ranked against each other; empty: none
  std::string group;   // rows that have a summary of their own, e.g. of one model; empty: none
  std::string base;    // another row of the table, with which it is compared
  std::string note;    // what the source says of it
  std::string remark;  // why we believe that the prediction is off
  std::string fitted;  // rates and times that were fitted on it; empty: none
  double flops_per_step = 0;   // of all devices; 0: not given
  bool out_of_memory = false;  // it did not run; nothing is measured
  std::map<Measurand, double> measured;
  JsonValue document;                         // its scenario
  std::vector<CandidateScenario> candidates;  // what the source leaves open; empty: nothing
};

/// Returns what was fitted on this quantity of `row`; empty if nothing. Rates do not change memory.
std::string fitted_on(const MeasuredRow& row, Measurand what);

struct MeasuredTable {
  std::string name;
  bool memory_stated = true;  // else it is unknown what fits
  std::map<Measurand, AccuracyTarget> targets;
  std::vector<MeasuredRow> rows;
};

struct MeasurementFile {
  std::string name;  // of the file, without folders and ending
  std::string title;
  std::string paper, place, address, licence;  // where it was published
  std::vector<std::string> notes;
  std::vector<MeasuredTable> tables;
};

/// Reads one file. Throws: Error with every mistake of it; what a scenario makes of the keys that
/// rows set is not looked at.
MeasurementFile read_measurements(const std::string& path);
/// Reads measurements from a document that is already parsed.
MeasurementFile read_measurements(const JsonValue& document, const std::string& name);

/// Returns the names of the files that are shipped, sorted.
std::vector<std::string> published_names();
/// Returns the path of one of them.
std::string published_path(const std::string& name);

}  // namespace interlock
