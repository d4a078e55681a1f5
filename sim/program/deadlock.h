// Deadlock: the sentence that says who waits for what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// Throws Error naming, for the first few streams that are not done, the instruction that each
/// stands at. Shapes: standing (streams), micro-batches as they are then; empty for those that are
/// done. Returns if all are.
void require_done(const Program& program, const std::vector<std::optional<Instruction>>& standing);

}  // namespace interlock
