// Unrolling: the loops of a stream written out, for executors that simply walk a list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/run/program.h"

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

}  // namespace interlock
