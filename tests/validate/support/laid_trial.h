// Trials of flushed schedules that lay several equal stages on each rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/validate/support/trial.h"

namespace interlock {

struct LaidCase {
  std::string schedule;  // its name
  int ranks = 1, chunks = 1, micro_batches = 1;
  StageTimes times;    // of a stage, which is a chunk
  std::string policy;  // further members of the schedule, as JSON
};

/// Returns whether a schedule says itself how many stages a rank has.
bool has_chunks(const std::string& schedule);
/// Stages lie in loops, under "zb-v" in a V; without transfers; two steps.
Trial laid_trial(const LaidCase& laid);
/// The rank that holds `stage`.
int rank_of(const LaidCase& laid, int stage);

}  // namespace interlock
