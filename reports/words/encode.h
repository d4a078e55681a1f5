// Encode: text and numbers made safe to stand inside HTML, SVG, Markdown and script data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace interlock {

/// Returns `text` as valid UTF-8 without control characters; what does not fit becomes U+FFFD.
std::string clean_utf8(std::string_view text);

/// Returns `text` for HTML and XML, in content and in quoted attributes; cleaned first.
std::string escape_markup(std::string_view text);

/// Returns `text` for a cell of a Markdown table: bars would end it, a "<" begin markup.
std::string markdown_cell(std::string_view text);

/// Returns `text` for a cell of a LaTeX table: its signs are escaped, and those beyond Latin spelt.
std::string latex_cell(std::string_view text);

/// Columns that cleaned `text` takes on a terminal, one for each code point.
std::size_t display_width(std::string_view text);

/// Returns the standard base64 of `size` bytes.
std::string base64(const void* bytes, std::size_t size);

/// Returns base64 of the numbers as they lie in memory (little-endian on all machines we know).
template <class Number>
std::string base64(const std::vector<Number>& numbers) {
  return base64(numbers.data(), numbers.size() * sizeof(Number));
}

}  // namespace interlock
