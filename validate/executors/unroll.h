// Unrolling: the loops of a stream written out, for executors that simply walk a list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// What one stream does, in order, each instruction with the micro-batch of its turn.
struct UnrolledStream {
  int rank = 0, lane = 0;  // number of the stream in its rank
  std::vector<Instruction> code;
};

/// The streams of `program`, written out.
std::vector<UnrolledStream> unroll(const Program& program);

/// Whether nothing but memory changes stand between code[at] and an op that follows.
bool leads_to_op(const std::vector<Instruction>& code, std::size_t at);

/// Of the ops that streams of a rank stand at, or stand before what they take for, the one with the
/// least of these is picked: F, H, R, I, B, W, U; the nearer loss; the older micro-batch; the lower
/// stage; the lower stream. REQUIRES: leads_to_op(stream.code, at).
std::array<int, 5> priority_of(const Program& program, const UnrolledStream& stream,
                               std::size_t at);

}  // namespace interlock
