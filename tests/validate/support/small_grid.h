// Every strategy and schedule on every small chain: the grid that properties are checked over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "tests/validate/support/trial.h"

namespace interlock {

/// The settings of a trial, in words a test can reason with.
struct TrialPolicy {
  std::string schedule;  // "naive", "naive-split", "gpipe", "1f1b", "eager", "list"
  int n_wise = 1;        // as many as stages: global
  bool all_heads = false;
  bool split = true;  // the backward, where a gradient is also needed below
  int in_flight = 1, update_every = 1;

  bool flushed() const { return schedule == "gpipe" || schedule == "1f1b"; }
  bool list() const { return schedule == "list"; }
};

struct GridPoint {
  TrialPolicy plan;
  Trial trial;  // two steps
};

/// Visits K in 1..5, M in 1..6, and every strategy and schedule that they allow; unequal costs of
/// whole ticks, and transfers of latency and bandwidth.
void for_small_grid(const std::function<void(const GridPoint&)>& visit);

}  // namespace interlock
