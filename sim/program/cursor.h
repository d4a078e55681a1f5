// Cursor: walking the instructions of a stream, in order or as they are written.
// SPDX-License-Identifier: Apache-2.0
//
// Example: rank 0 of the 1F1B in program.h. The cursor stands at Allocate (0), Allocate (0), F (0),
// Send (0), then enters the loop: ..., F (1), Send (1), Receive (0), B (0), ..., F (2), and so on.
// In the second step the same instructions stand at micro-batches 4 higher.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// Instructions and the segments that loop over them, apart from the rest of a program.
struct Code {
  std::vector<Instruction> instructions;
  std::vector<Segment> segments;
};
/// Returns the code of `program` without Allocate and Free, for runs whose memory is not watched.
Code code_without_memory(const Program& program);

/// Walks the instructions of one stream in order. Cheap to copy.
class Cursor {
 public:
  Cursor(const Program& program, const Stream& stream)
      : Cursor(program.instructions.data(), program.segments.data(), stream) {}
  Cursor(const Code& code, const Stream& stream)
      : Cursor(code.instructions.data(), code.segments.data(), stream) {}
  bool done() const { return instruction_ == nullptr; }
  const Instruction& instruction() const { return *instruction_; }
  int micro_batch() const { return instruction_->micro_batch + base_; }
  /// Returns the instruction at which the stream stands, with the micro-batch of this turn; nothing
  /// at the end.
  std::optional<Instruction> standing() const {
    if (done()) return std::nullopt;
    return Instruction{instruction_->code, instruction_->index, micro_batch()};
  }
  void next() {
    if (++instruction_ == end_) advance();
  }

 private:
  Cursor(const Instruction* instructions, const Segment* segments, const Stream& stream);
  void advance();
  bool next_segment();
  void enter_segment();

  const Instruction* instruction_ = nullptr;
  const Instruction* end_ = nullptr;
  const Instruction* instructions_;
  const Segment* segments_;  // of the stream
  const Stream* stream_;
  std::int32_t base_ = 0, round_base_ = 0;  // added to micro-batches: in all; by the round
  std::int32_t segment_ = -1, iteration_ = 0, round_ = 0;
};

/// Calls `visit` with each instruction that is written in the stream, and how often it runs.
template <class Visit>
void visit_instructions(const Program& program, const Stream& stream, const Visit& visit) {
  for (int s = stream.first; s < stream.first + stream.count; ++s) {
    const Instruction* const first = program.instructions.data() + program.segments[s].first;
    const std::int64_t turns = turns_of(program, stream, s);
    for (int i = 0; i < program.segments[s].count; ++i) visit(first[i], turns);
  }
}

/// Returns true if only Allocate and Free come before the next Compute, if there is one.
bool only_memory_before_op(Cursor cursor);

}  // namespace interlock
