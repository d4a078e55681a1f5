// Measures: what figures and tables of many results can show of each, by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/result/result_file.h"

namespace interlock {

/// A measure of every result, in one unit for all. Example: of steps of 0.021 s and 0.033 s
/// "step_time" has the label "step time (ms)", values {0.021, 0.033}, unit 0.001 and decimals 1:
/// "21.0" and "33.0" are shown.
struct Measured {
  std::string key;                            // "step_time"
  std::string label;                          // "step time (ms)"
  std::vector<std::optional<double>> values;  // (results), as results have them
  double unit = 1;                            // in which they are shown
  int decimals = 0;                           // of what is shown
};

/// A measure that pages show of sweeps, and whether its largest value is the best.
struct PageMeasure {
  std::string key;
  bool more_is_better = false;
};
std::vector<PageMeasure> page_measures();

/// Returns the names of all measures, in the order of help texts.
std::vector<std::string> measure_names();

/// Returns the measures that `list` names, with commas between them: "step_time,memory". `speed_up`
/// is over the first result; `gain` over the first whose swept values are the same but for the last
/// path; `break_even` over the best that trains end to end without stale weights and fits.
/// Throws: Error for an unknown name. REQUIRES: results is not empty.
std::vector<Measured> measured(const std::string& list, const std::vector<ReadResult>& results);

/// The rates of several results, all in one unit: tokens, samples, micro-batches or steps each
/// second, the first of these that every result knows.
struct Rates {
  std::string unit;
  std::vector<double> values;  // (results)
};
Rates rates_of(const std::vector<ReadResult>& results);

/// Returns the text of a value as a table shows it: "12.3", or a dash if it is unknown.
std::string shown(const Measured& measure, std::size_t result);

}  // namespace interlock
