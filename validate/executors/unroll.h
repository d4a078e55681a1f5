// Unrolling: the loops of a stream written out, for executors that simply walk a list.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a stream with repeats 2 x { 3 x { F (0) } stride 1 } and stride 3 has the code F (0), F
// (1), F (2), F (3), F (4), F (5).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// The work of one stream in order, each instruction with the micro-batch of its turn.
struct UnrolledStream {
  int rank = 0, number = 0;  // number of the stream in its rank
  std::vector<Instruction> code;
};

/// Returns the streams of `program`, written out.
std::vector<UnrolledStream> unroll(const Program& program);

/// Returns whether only memory changes stand between code[at] and an op that follows.
bool leads_to_op(const std::vector<Instruction>& code, std::size_t at);

/// Returns the priority of the op that a stream stands at, or before whose allocations it stands. A
/// rank runs the op with the least of these: F, H, R, I, B, W, U; the nearer loss; the older
/// micro-batch; the lower stage; the lower stream. REQUIRES: leads_to_op(stream.code, at).
std::array<int, 5> priority_of(const Program& program, const UnrolledStream& stream,
                               std::size_t at);

}  // namespace interlock
