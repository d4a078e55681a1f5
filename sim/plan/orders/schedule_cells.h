// Cells of a schedule's text form: read one by one, shown around a mistake.
// SPDX-License-Identifier: Apache-2.0
//
// Example: "0F0,0F1,,0B0" is a row of four cells; its actions are {0, "F", 0, row 0, column 0}, {0,
// "F", 1, row 0, column 1} and {0, "B", 0, row 0, column 3}: the empty cell is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace interlock {

/// The action of a cell, or one of those of a cell that holds several.
struct Action {
  int stage = 0;
  std::string word;  // "F", "SEND_B", ...
  int micro_batch = -1;
  int row = 0, column = 0;     // of its cell, from 0
  bool overlaps_next = false;  // first half of a pair
};

/// A text cut into cells, blanks around them removed.
struct Cells {
  std::string file;
  std::vector<std::vector<std::string>> rows;
};
Cells split_cells(std::string_view text, const std::string& file);

/// Throws Error: "file:line: cell 3, "0F1": message", and the rows around the cell, it marked.
[[noreturn]] void refuse_cell(const Cells& cells, int row, int column, const std::string& message);

/// Returns the actions of every row in order. Throws: Error about the first cell that is none.
std::vector<std::vector<Action>> read_actions(const Cells& cells);

}  // namespace interlock
