// RangeIndex: which of the ranges of a thread is the innermost at an instant.
// SPDX-License-Identifier: Apache-2.0
//
// Example: ranges {0, 100, index 7}, {10, 40, index 8} and {20, 30, index 9}: at(25) is 9, at(35)
// is 8, at(60) is 7, at(200) is nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace interlock {

struct NamedRange {
  std::int64_t start = 0, end = 0;  // both belong to it
  std::int32_t index = 0;           // what it is, to who made it
};

class RangeIndex {
 public:
  RangeIndex() = default;
  /// REQUIRES: the ranges nest; of those that do not, any may be found.
  explicit RangeIndex(std::vector<NamedRange> ranges);
  /// Returns the index of the innermost range that holds `instant`.
  std::optional<std::int32_t> at(std::int64_t instant) const;
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<NamedRange> ranges_;
  std::vector<std::int32_t> around_;  // of each the position of the one around it; below 0: none
};

}  // namespace interlock
