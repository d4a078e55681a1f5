// Swept: which results of a sweep belong together, and along what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/result/result_file.h"

namespace interlock {

/// The quantity along an axis, and the value of each result.
struct Along {
  std::string path;  // of a sweep; empty: devices
  std::string label;
  std::vector<double> values;
  std::vector<double> marks;  // where the axis is logarithmic
  bool quality = false;       // published; a curve is then a scenario's, and points have names
};

/// Returns the swept number or quantity that takes the most values, the first of several; else the
/// published quality, else the number of devices; nothing if none differs. REQUIRES: results is not
/// empty.
std::optional<Along> find_axis(const std::vector<ReadResult>& results);

/// Names the curve of a result: its other swept values, else its file.
std::string curve_of(const ReadResult& result, const Along& along);
/// Names its point on the curve, if that is not clear from the axis.
std::string point_of(const ReadResult& result, const Along& along);

/// A sweep as a table, with results by their number. Example: schedules by micro-batches 2 and 4
/// are {{"gpipe", "1f1b"}, {2, 4}, {{0, 1}, {2, 3}}}.
struct SweptTable {
  std::vector<std::string> rows;    // all swept values but the last
  std::vector<SweptValue> columns;  // values of the last
  std::vector<std::vector<std::optional<std::size_t>>> cells;
};

/// Lays `results` out, rows and columns as they come; of several in one place the last. REQUIRES:
/// all have swept values.
SweptTable swept_table(const std::vector<ReadResult>& results);

/// Returns the last key of a path: "micro_batches".
std::string last_key(const std::string& path);

/// Returns a swept value in words: its label, with the key where that does not speak for itself.
std::string swept_words(const SweptValue& value);

}  // namespace interlock
