// find_schedules: orders of work that are fast and fit, by list scheduling and local search.
// SPDX-License-Identifier: Apache-2.0
//
// Every hand-made schedule that fits the layout is a candidate, so the result is never worse than
// the best of them. Then orders of our own: list orders by many rules, then the best of them with
// some ops moved. What an order is worth is not computed here but asked of a judge, which runs it.
// The search ends after a number of evaluations, not by a clock, and draws its moves from a seed:
// the same inputs give the same order.
#pragma once

#include <functional>
#include <vector>

#include "sim/plan/orders/list_order.h"

namespace interlock {

/// Functions that judge a schedule.
struct ScheduleJudge {
  std::function<double(const SchedulePolicy&)> step_time;           // infinite if it cannot run
  std::function<std::vector<double>(const SchedulePolicy&)> peaks;  // (ranks) bytes
};

struct SearchInputs {
  std::vector<SchedulePolicy> candidates;  // hand-made
  std::vector<SchedulePolicy> starts;      // candidates as orders, to move ops of
  SchedulePolicy own;                      // of orders that are found, but for split_backward
  std::vector<ListInputs> lists;           // backward split, and fused; may be empty
  std::vector<double> capacity;            // (ranks) bytes
  double bound = 0;                        // no step is shorter
  int evaluations = 1000;
  int seed = 1;
};

struct FoundSchedules {
  std::vector<SchedulePolicy> fitting;  // the best found, then candidates that it beats; best first
  double least_memory = 0;              // bytes of a rank that the least of all orders takes
};

/// Returns the best orders that fit.
/// Example: two ranks of 15 MB and two candidates: one of 11 ms with peaks of {22, 12} MB, one of
/// 12 ms with {12, 12} MB. Without lists and starts, `fitting` is the second, and least_memory is
/// 12 MB.
FoundSchedules find_schedules(const SearchInputs& inputs, const ScheduleJudge& judge);

}  // namespace interlock
