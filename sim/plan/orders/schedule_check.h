// Schedule check: whether an order of one step can be run, and if not, which op is to blame.
// SPDX-License-Identifier: Apache-2.0
//
// Example: rank 0 runs 0F0 0B0, rank 1 runs 1B0 1F0. The mistake is at {rank 1, place 0}: "waits
// for 1F0, which comes later on rank 1; expected an order in which a rank can go on".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/schedules/schedule.h"

namespace interlock {

/// One step of global training, every rank's ops in order; updates may be left out.
struct StepOrder {
  int stages = 1;  // of all copies, as in Schedule
  int copies = 1;
  int micro_batches = 1;
  std::vector<int> rank_of_stage;      // (stages)
  std::vector<std::vector<Op>> ranks;  // (ranks)
};

/// A mistake in an order: the op at `place` of `rank`, and a sentence about it.
struct OrderMistake {
  int rank = 0, place = 0;
  std::string message;
};

/// Returns the first mistake, or nothing if the order is valid: every micro-batch has one forward
/// and one whole backward on each stage of its copy, on the stage's rank; all ranks can finish,
/// whatever the times are, if every one waits for what its next op reads (an overlapped pair for
/// both); and no message between two stages overtakes another.
std::optional<OrderMistake> find_mistake(const StepOrder& order);

/// Returns "3B1": the stage of the model, the letter, the micro-batch.
std::string name_of(const Op& op, const StepOrder& order);

}  // namespace interlock
