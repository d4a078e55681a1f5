// Draft: a schedule's text on its way to an order, and the passes over it.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two rows, "0F0,1F1,1B1,0B0" and "1F0,1B0,0F1,0B1", are two stages and two micro-batches
// that take two ways: copy_of is {0, 1}, ways are {{0, 1}, {1, 0}}, and the forward of stage 1 for
// micro-batch 1 is the second action of row 0.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/orders/schedule_cells.h"

namespace interlock {

/// Cells that were read, and what is known of the whole.
struct Draft {
  Cells cells;
  std::vector<std::vector<Action>> rows;
  int stages = 0, micro_batches = 0;               // of one copy; of the step
  std::map<std::pair<int, int>, Action> forwards;  // by stage and micro-batch, the first found
  std::vector<int> copy_of;                        // (micro_batches)
  std::vector<std::vector<int>> ways;              // (copies, stages) ranks

  [[noreturn]] void refuse(const Action& action, const std::string& message) const {
    refuse_cell(cells, action.row, action.column, message);
  }
};

/// Returns true if an action is F, I, W or B.
bool is_compute(const Action& action);
/// Refuses a rank that runs nothing.
void require_ops(const Draft& draft);
/// Reads B as the input half where a W follows, unless the file has a letter for the input half.
void read_old_letters(Draft& draft);
/// Fills forwards and sizes.
void find_forwards(Draft& draft);
/// Fills copies and ways: one way for all micro-batches, or two that have no rank of a stage in
/// common and are taken by half of them each, a model and its copy.
void find_copies(Draft& draft);
/// Refuses communication and sharding that contradict the compute.
void check_dropped(const Draft& draft);

}  // namespace interlock
