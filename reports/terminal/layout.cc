// Layout: words and grids set in columns of characters for a terminal.
// SPDX-License-Identifier: Apache-2.0
#include "reports/terminal/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reports/words/encode.h"

namespace interlock {
namespace {

constexpr std::size_t kColumnGap = 2;
constexpr std::size_t kLeastName = 16;  // columns of the first column before blocks are split
constexpr std::size_t kSplitName = 30;  // most columns of it in blocks, which have room

/// A grid with the width of every column, bars of `bar` columns included.
struct Widths {
  const Grid* grid;
  std::vector<std::size_t> widths;
  std::size_t bar = 0;
};

bool has_bar(const Grid& grid, std::size_t column) {
  return std::any_of(grid.rows.begin(), grid.rows.end(),
                     [&](const auto& row) { return row[column].bar.has_value(); });
}

Widths measure_grid(const Grid& grid, std::size_t bar) {
  Widths widths{&grid, {}, bar};
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    std::size_t width = std::max(display_width(grid.columns[column].head),
                                 display_width(grid.columns[column].unit));
    const std::size_t beside = bar > 0 && has_bar(grid, column) ? bar + 1 : 0;
    for (const auto& row : grid.rows) {
      width = std::max(width, display_width(clean_utf8(row[column].text)));
    }
    widths.widths.push_back(width + beside);
  }
  return widths;
}

std::size_t total_width(const Widths& widths) {
  return std::accumulate(widths.widths.begin(), widths.widths.end(), std::size_t{0}) +
         kColumnGap * (widths.widths.size() - 1);
}

/// Returns whether `grid` is laid out as one block, for which a first column of words may give way.
bool is_one_block(const Grid& grid, std::size_t width) {
  const Widths widths = measure_grid(grid, 0);
  const std::size_t first = widths.widths[0];
  const std::size_t gives = grid.columns[0].number ? 0 : first - std::min(first, kLeastName);
  return total_width(widths) <= width + gives;
}

/// Returns `grid` without the columns that are there only if there is room.
Grid without_extras(const Grid& grid) {
  Grid kept;
  for (const Column& column : grid.columns) {
    if (!column.if_room) kept.columns.push_back(column);
  }
  for (const auto& row : grid.rows) {
    std::vector<Cell>& cells = kept.rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!grid.columns[i].if_room) cells.push_back(row[i]);
    }
  }
  return kept;
}

/// Takes the widest bars with which everything fits side by side; else short ones. A first column
/// of words gives way before a block is split.
Widths choose_widths(const Grid& grid, std::size_t width) {
  Widths widths{};
  for (const std::size_t bar : {20, 10, 0}) {
    widths = measure_grid(grid, bar);
    if (total_width(widths) <= width) return widths;
  }
  widths = measure_grid(grid, 0);
  const bool words = !grid.columns[0].number;
  std::size_t& first = widths.widths[0];
  const std::size_t excess = total_width(widths) - width;
  if (words && first >= kLeastName + excess) {
    first -= excess;
    return widths;
  }
  Widths split = measure_grid(grid, 10);
  if (words) split.widths[0] = std::min(split.widths[0], kSplitName);
  return split;
}

/// Returns the columns of each block, without the first.
std::vector<std::vector<std::size_t>> split_blocks(const Widths& widths, std::size_t width) {
  std::vector<std::vector<std::size_t>> blocks(1);
  std::size_t used = widths.widths[0];
  for (std::size_t column = 1; column < widths.widths.size(); ++column) {
    const std::size_t needed = kColumnGap + widths.widths[column];
    if (used + needed > width && !blocks.back().empty()) {
      blocks.emplace_back();
      used = widths.widths[0];
    }
    blocks.back().push_back(column);
    used += needed;
  }
  return blocks;
}

std::string bar_text(double share, std::size_t width) {
  const double filled = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  std::string text;
  for (std::size_t i = 0; i < width; ++i) {
    text += i < static_cast<std::size_t>(std::lround(filled)) ? "█" : "░";
  }
  return text;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string head_line(const Widths& widths, const std::vector<std::size_t>& block,
                      std::string Column::*part) {
  const auto& columns = widths.grid->columns;
  const auto cell = [&](std::size_t i) {
    const bool bar = widths.bar > 0 && has_bar(*widths.grid, i);
    const std::size_t beside = bar ? widths.bar + 1 : 0;
    return pad(pad(columns[i].*part, widths.widths[i] - beside, columns[i].number),
               widths.widths[i]);
  };
  std::string line = cell(0);
  for (const std::size_t column : block) line += std::string(kColumnGap, ' ') + cell(column);
  return line;
}

std::string cell_text(const Widths& widths, const std::vector<Cell>& row, std::size_t column,
                      const TableStyle& style) {
  const Cell& cell = row[column];
  const bool bar = widths.bar > 0 && has_bar(*widths.grid, column);
  const std::size_t width = widths.widths[column] - (bar ? widths.bar + 1 : 0);
  std::string text = paint(pad(clean_utf8(cell.text), width, widths.grid->columns[column].number),
                           cell.alarm ? Ink::Alarm : Ink::Plain, style);
  if (bar)
    text.append(" ").append(paint(bar_text(cell.bar.value_or(0), widths.bar), Ink::Bar, style));
  return text;
}

std::string row_lines(const Widths& widths, const std::vector<std::size_t>& block,
                      const std::vector<Cell>& row, const TableStyle& style) {
  const auto names = wrap(row[0].text, widths.widths[0]);
  std::string line = pad(names[0], widths.widths[0], widths.grid->columns[0].number);
  for (const std::size_t column : block) {
    line += std::string(kColumnGap, ' ') + cell_text(widths, row, column, style);
  }
  std::string lines = trimmed(line);
  for (std::size_t i = 1; i < names.size(); ++i) lines += names[i] + "\n";
  return lines;
}

/// Bytes of `word` that go on a line of `width` columns: up to a sign between its parts, or all
/// that fit. REQUIRES: the word is wider.
std::size_t cut_of(const std::string& word, std::size_t width) {
  std::size_t fits = 0;
  for (std::size_t columns = 0; columns <= width; ++fits) {
    if ((static_cast<unsigned char>(word[fits]) & 0xc0) != 0x80) ++columns;
  }
  --fits;
  const std::size_t sign = word.find_last_of("=,:;/_-", fits - 1);
  return sign == std::string::npos || sign < fits / 3 ? fits : sign + 1;
}

}  // namespace

std::string paint(std::string_view text, Ink ink, const TableStyle& style) {
  if (!style.colour || ink == Ink::Plain) return std::string(text);
  const char* code = ink == Ink::Strong  ? "\x1b[1m"
                     : ink == Ink::Faint ? "\x1b[2m"
                     : ink == Ink::Bar   ? "\x1b[36m"
                                         : "\x1b[31m";
  return code + std::string(text) + "\x1b[0m";
}

std::string pad(std::string_view text, std::size_t width, bool right_aligned) {
  const std::size_t has = display_width(text);
  const std::string blanks(has < width ? width - has : 0, ' ');
  return right_aligned ? blanks + std::string(text) : std::string(text) + blanks;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines{""};
  std::string rest = clean_utf8(text);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    std::string word = rest.substr(0, end);
    rest.erase(0, std::min(end + 1, rest.size()));
    const std::size_t used = display_width(lines.back());
    if (used > 0 && used + 1 + display_width(word) <= width) {
      lines.back() += " " + word;
      continue;
    }
    if (used > 0) lines.emplace_back();
    while (display_width(word) > width) {
      const std::size_t cut = cut_of(word, width);
      lines.back() = word.substr(0, cut);
      word.erase(0, cut);
      lines.emplace_back();
    }
    lines.back() = word;
  }
  return lines;
}

std::string paragraph(const std::string& text, Ink ink, const TableStyle& style) {
  std::string lines;
  for (const auto& line : wrap(text, static_cast<std::size_t>(std::max(style.width, 60)))) {
    lines += paint(line, ink, style) + "\n";
  }
  return lines;
}

std::string headline_lines(const std::vector<Headline>& headlines, const TableStyle& style) {
  std::size_t label_width = 0, value_width = 0;
  for (const auto& headline : headlines) {
    label_width = std::max(label_width, display_width(headline.label));
    value_width = std::max(value_width, display_width(headline.value));
  }
  const std::size_t indent = label_width + value_width + 4;
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  const std::size_t room = std::max<std::size_t>(width - std::min(indent, width), 16);
  std::string text;
  for (const auto& headline : headlines) {
    const Ink ink = headline.alarm ? Ink::Alarm : Ink::Strong;
    text += pad(headline.label, label_width) + "  " + paint(headline.value, ink, style);
    const auto notes = wrap(headline.note, room);
    if (!notes[0].empty()) {
      text += std::string(value_width - display_width(headline.value) + 2, ' ');
      text += paint(notes[0], headline.alarm ? Ink::Alarm : Ink::Faint, style);
    }
    text += "\n";
    for (std::size_t i = 1; i < notes.size(); ++i) {
      text += std::string(indent, ' ') + paint(notes[i], Ink::Faint, style) + "\n";
    }
  }
  return text;
}

std::string lay_out(const Grid& whole, const TableStyle& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  const Grid smaller = without_extras(whole);
  const bool narrow = total_width(measure_grid(whole, 0)) > width && is_one_block(smaller, width);
  const Grid& grid = narrow ? smaller : whole;
  const Widths widths = choose_widths(grid, width);
  std::string text;
  for (const auto& block : split_blocks(widths, width)) {
    if (!text.empty()) text += "\n";
    for (const auto part : {&Column::head, &Column::unit}) {
      const std::string line = trimmed(head_line(widths, block, part));
      if (line != "\n") text += paint(line.substr(0, line.size() - 1), Ink::Strong, style) + "\n";
    }
    for (const auto& row : grid.rows) text += row_lines(widths, block, row, style);
  }
  return text;
}

}  // namespace interlock
