// Words and numbers for people: quantities in and out, and the nearest known name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace interlock {

/// A quantity as people write it. Example: "80 GiB" is {value 80 * 2^30, dimension Size}.
/// GB = 10^9, GiB = 2^30, `Gb/s` counts bits, prefixes are case-sensitive.
struct WrittenQuantity {
  enum class Dimension { Time, Size, Bandwidth, FlopRate, Power, Energy };
  double value = 0;  // SI, may be negative or zero: range is the caller's business
  Dimension dimension = Dimension::Time;
};
/// Returns nothing if `text` is not a finite number followed by a known unit.
std::optional<WrittenQuantity> parse_quantity(std::string_view text);
/// Returns the units that parse_quantity knows of a dimension: "ns", "us", ... of times.
std::vector<std::string> unit_names(WrittenQuantity::Dimension dimension);

/// Returns the bytes of the character at the start of `text`; 0 if it is empty or no valid UTF-8.
std::size_t utf8_length(std::string_view text);
/// Returns `text` with control characters and invalid bytes escaped, cut with "..." after `most`
/// bytes: "abcde..." of "abcdef" and 5.
std::string printable(std::string_view text, std::size_t most);
/// Quotes what the user wrote for a message: printable characters only, in double quotes.
std::string in_quotes(std::string_view text);

// For people, three significant digits: "1.83 ms", "74.5 GiB", "412 TFLOP/s", "300 GB/s",
// "6.5 kW", "1.2 MWh".
std::string format(Seconds value);
std::string format(Bytes value);
std::string format(BytesPerSecond value);
std::string format(FlopsPerSecond value);
std::string format(Watts value);
std::string format(Joules value);
/// Returns a fraction in per cent: "12.3%" for 0.123.
std::string format_percent(double fraction);
/// Returns a plain number with three significant digits and thousands as k, M, G: "1.52 k".
std::string format_number(double value);

/// Returns the name nearest to `word` by edit distance, if it is near enough to be a likely slip.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& names);
/// Joins names as in a sentence: "a", "a or b", "a, b or c".
std::string join_choices(const std::vector<std::string>& names);

}  // namespace interlock
