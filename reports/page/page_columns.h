// PageColumns: arrays of numbers for the scripts of the HTML page, compressed as one.
// SPDX-License-Identifier: Apache-2.0
//
// Example: add({1, 258}) of 32-bit numbers to an empty block returns {0, 2}, and the block holds 1
// 2, 0 1, 0 0, 0 0. differences({5, 6, 7, 9}) are {5, 1, 1, 2}.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace interlock {

/// The place of a column in the block: its first byte, and its number of numbers. The lowest bytes
/// of all its numbers come first, then the second ones, and so on: bytes that are alike stand side
/// by side, which compresses best.
using ColumnPlace = std::array<std::size_t, 2>;

/// Collects columns of numbers. web/data.js knows which type each one has, and expands them.
class PageColumns {
 public:
  template <class Number>
  ColumnPlace add(const std::vector<Number>& column) {
    return add(column.data(), column.size(), sizeof(Number));
  }

  /// Returns all columns in zlib's format, as base64.
  std::string packed() const;

 private:
  ColumnPlace add(const void* column, std::size_t count, std::size_t size);

  std::string bytes_;
};

/// Returns each number less the one before it: counters become one number again and again, which
/// compresses to almost nothing.
std::vector<std::int32_t> differences(std::vector<std::int32_t> numbers);

/// Returns `value` to three and a half digits, rounded down, but above 0: a gap of 0 means the same
/// instant.
float coarse(double value);

}  // namespace interlock
