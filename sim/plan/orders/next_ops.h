// Next ops: what a rank does after an op, whichever turn of its loops it is in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/schedules/schedule.h"

namespace interlock {

/// Parts the first and the last turn of runs, so that each backward of `sequence` has the same op
/// before it in every turn.
void part_turns_at_backwards(Sequence& sequence);

/// Returns a few ops after op `index` of run `run`; nothing where that depends on the turn: at both
/// ends of the loop over runs. REQUIRES: part_turns_at_backwards(sequence) was called; ops that are
/// no backward may be missing.
std::vector<Op> ops_after(const Sequence& sequence, std::size_t run, std::size_t index);

}  // namespace interlock
