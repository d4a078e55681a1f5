// Deadlock: the sentence that says who waits for what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/run/cursor.h"
#include "sim/run/program.h"

namespace interlock {

/// Throws Error naming, for the first few streams that are not done, the instruction that each
/// waits at. Shapes: cursors (streams). Returns if all are done.
void require_done(const Program& program, const std::vector<Cursor>& cursors);

}  // namespace interlock
