// Layout: words and grids set in columns of characters for a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/headlines/headlines.h"
#include "reports/report.h"

namespace interlock {

enum class Ink { Plain, Strong, Faint, Bar, Alarm };
/// Returns `text` in `ink` if `style` has colour, else as it is.
std::string paint(std::string_view text, Ink ink, const TableStyle& style);

/// Fills `text` up with spaces to `width` columns, on its left if `right_aligned`.
std::string pad(std::string_view text, std::size_t width, bool right_aligned = false);

/// Breaks `text` between words into lines of at most `width` columns; cuts longer words.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// Returns `text` in lines of the style's width, at least 60 columns, each with its end.
std::string paragraph(const std::string& text, Ink ink, const TableStyle& style);

/// Returns `label   value   note`, one headline a line; a note that does not fit goes on below.
std::string headline_lines(const std::vector<Headline>& headlines, const TableStyle& style);

/// Returns `whole` as lines of at most style.width columns. What does not fit beside the first
/// column goes into further blocks below, which repeat it; columns that want room are left out
/// before that.
std::string lay_out(const Grid& whole, const TableStyle& style);

}  // namespace interlock
