// The grammar of cells, and the picture of a cell among its neighbours.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/schedule_cells.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/text.h"

namespace interlock {

namespace {

constexpr std::size_t kMostDigits = 6;
constexpr std::size_t kMostQuoted = 60;  // bytes of a cell
constexpr std::array<std::string_view, 4> kComputeWords = {"F", "I", "W", "B"};
constexpr std::array<std::string_view, 4> kMessageWords = {"SEND_F", "RECV_F", "SEND_B", "RECV_B"};
constexpr std::array<std::string_view, 3> kShardWords = {"UNSHARD", "RESHARD", "REDUCE_GRAD"};
constexpr const char* kExpected = "expected stage, letter and micro-batch, e.g. 0F1";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Takes the number that `text` begins with; nothing if it begins with none or one too long.
std::optional<int> take_number(std::string_view& text) {
  std::size_t digits = 0;
  int value = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) {
    if (digits == kMostDigits) return std::nullopt;
    value = value * 10 + (text[digits++] - '0');
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

template <std::size_t size>
bool holds(const std::array<std::string_view, size>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// `text` as one action, or nothing if it is none.
std::optional<Action> parse_action(std::string_view text) {
  Action action;
  const auto stage = take_number(text);
  if (!stage) return std::nullopt;
  action.stage = *stage;
  const std::size_t end = std::min(text.find_first_of("0123456789"), text.size());
  action.word = text.substr(0, end);
  text.remove_prefix(end);
  const bool of_batch = holds(kComputeWords, action.word) || holds(kMessageWords, action.word);
  if (!of_batch && !holds(kShardWords, action.word)) return std::nullopt;
  if (of_batch || !text.empty()) {
    const auto micro_batch = take_number(text);
    if (!micro_batch || !text.empty()) return std::nullopt;
    action.micro_batch = *micro_batch;
  }
  return action;
}

/// Returns the actions of "0F7", of the pair "(0F7;7B3)OVERLAP_F_B" or of the messages that start
/// together "(0SEND_F0;2RECV_F0)BATCH_P2P"; none if it is none of these.
std::vector<Action> parse_cell(std::string_view text) {
  if (const auto action = parse_action(text)) return {*action};
  const std::size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return {};
  const std::string_view word = text.substr(end + 1);
  const bool pair = word == "OVERLAP_F_B";
  if (!pair && word != "BATCH_P2P") return {};
  text = text.substr(1, end - 1);
  std::vector<Action> actions;
  for (bool more = true; more;) {
    const std::size_t between = text.find(';');
    const auto action = parse_action(trimmed(text.substr(0, between)));
    more = between != std::string_view::npos;
    if (more) text.remove_prefix(between + 1);
    if (!action || !holds(pair ? kComputeWords : kMessageWords, action->word)) return {};
    actions.push_back(*action);
  }
  if (pair && actions.size() != 2) return {};
  actions.front().overlaps_next = pair;
  return actions;
}

/// The part of a row that a picture shows.
struct Frame {
  int first_row = 0, end_row = 0, first = 0, end = 0;
};

std::string shown(const Cells& cells, int row, int column) {
  const std::string& cell = cells.rows[row][column];
  return cell.empty() ? "." : printable(cell, kMostQuoted);
}

int end_in_row(const Cells& cells, const Frame& frame, int row) {
  return std::min(frame.end, static_cast<int>(cells.rows[row].size()));
}

/// Characters that each column of the frame takes.
std::vector<std::size_t> column_widths(const Cells& cells, const Frame& frame) {
  std::vector<std::size_t> widths(static_cast<std::size_t>(frame.end - frame.first), 1);
  for (int row = frame.first_row; row < frame.end_row; ++row) {
    for (int column = frame.first; column < end_in_row(cells, frame, row); ++column) {
      std::size_t& width = widths[column - frame.first];
      width = std::max(width, shown(cells, row, column).size());
    }
  }
  return widths;
}

/// Returns the rows and columns around a cell, one rank a line, the cell marked from below.
std::string picture(const Cells& cells, int row, int column) {
  constexpr int kBeside = 4;
  const Frame frame = {std::max(0, row - kBeside),
                       std::min(static_cast<int>(cells.rows.size()), row + kBeside + 1),
                       std::max(0, column - kBeside), column + kBeside + 1};
  const auto widths = column_widths(cells, frame);
  std::string text;
  for (int r = frame.first_row; r < frame.end_row; ++r) {
    std::string line = "  rank " + std::to_string(r) + (frame.first > 0 ? "  ..." : "");
    std::string mark;
    for (int c = frame.first; c < end_in_row(cells, frame, r); ++c) {
      const std::string cell = shown(cells, r, c);
      line += "  ";
      if (r == row && c == column)
        mark = std::string(line.size(), ' ') + std::string(cell.size(), '^');
      line += cell + std::string(widths[c - frame.first] - cell.size(), ' ');
    }
    const bool more = frame.end < static_cast<int>(cells.rows[r].size());
    line.erase(line.find_last_not_of(' ') + 1);
    text += "\n" + line + (more ? "  ..." : "") + (mark.empty() ? "" : "\n" + mark);
  }
  return text;
}

}  // namespace

Cells split_cells(std::string_view text, const std::string& file) {
  Cells cells{.file = file};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    auto& row = cells.rows.emplace_back();
    for (bool more = true; more;) {
      const std::size_t comma = line.find(',');
      row.emplace_back(trimmed(line.substr(0, comma)));
      more = comma != std::string_view::npos;
      if (more) line.remove_prefix(comma + 1);
    }
  }
  const auto blank = [](const auto& row) { return row.size() == 1 && row[0].empty(); };
  while (!cells.rows.empty() && blank(cells.rows.back())) cells.rows.pop_back();
  return cells;
}

void refuse_cell(const Cells& cells, int row, int column, const std::string& message) {
  throw Error(cells.file + ":" + std::to_string(row + 1) + ": cell " + std::to_string(column + 1) +
              ", " + in_quotes(cells.rows[row][column]) + ": " + message +
              picture(cells, row, column));
}

std::vector<std::vector<Action>> read_actions(const Cells& cells) {
  std::vector<std::vector<Action>> rows(cells.rows.size());
  for (int row = 0; row < static_cast<int>(rows.size()); ++row) {
    for (int column = 0; column < static_cast<int>(cells.rows[row].size()); ++column) {
      const std::string& cell = cells.rows[row][column];
      if (cell.empty()) continue;
      std::vector<Action> found = parse_cell(cell);
      if (found.empty()) {
        refuse_cell(cells, row, column, std::string("is no op; ") + kExpected);
      }
      for (Action& action : found) {
        action.row = row;
        action.column = column;
        rows[row].push_back(action);
      }
    }
  }
  return rows;
}

}  // namespace interlock
