// Swept: which results of a sweep belong together, and along what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/result/result_file.h"

namespace interlock {

/// What goes along the axis, and the value of each result.
struct Along {
  std::string path;  // of a sweep; empty: devices
  std::string label;
  std::vector<double> values;
  std::vector<double> marks;  // where the axis is logarithmic
  bool quality = false;       // published; a curve is then a scenario's, and points have names
};

/// The swept number or quantity that takes the most values, the first of several; else the
/// published quality, else the number of devices. Throws: Error if nothing differs. REQUIRES:
/// results is not empty.
Along find_axis(const std::vector<ReadResult>& results);

/// What names the curve of a result: its other swept values, else its file.
std::string curve_of(const ReadResult& result, const Along& along);
/// What names its point on the curve, where that is not clear from the axis.
std::string point_of(const ReadResult& result, const Along& along);

/// A swept value in words: its label, with the key where that does not speak for itself.
std::string swept_words(const SweptValue& value);

}  // namespace interlock
