// Walking loops of instructions.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/cursor.h"

#include <algorithm>
#include <iterator>

namespace interlock {

Code code_without_memory(const Program& program) {
  Code code;
  code.segments = program.segments;
  for (Segment& segment : code.segments) {
    const auto begin = program.instructions.begin() + segment.first;
    segment.first = static_cast<std::int32_t>(code.instructions.size());
    std::copy_if(begin, begin + segment.count, std::back_inserter(code.instructions),
                 [](const Instruction& instruction) {
                   return instruction.code != Opcode::Allocate && instruction.code != Opcode::Free;
                 });
    segment.count = static_cast<std::int32_t>(code.instructions.size()) - segment.first;
  }
  return code;
}

Cursor::Cursor(const Instruction* instructions, const Segment* segments, const Stream& stream)
    : instructions_(instructions), segments_(segments + stream.first), stream_(&stream) {
  advance();
}

// Empty segments (no instructions or no repeats) are stepped over.
void Cursor::advance() {
  if (instruction_ != nullptr && ++iteration_ < segments_[segment_].repeats) {
    enter_segment();
    return;
  }
  iteration_ = 0;
  while (next_segment()) {
    if (segments_[segment_].count > 0 && segments_[segment_].repeats > 0) {
      enter_segment();
      return;
    }
  }
  instruction_ = nullptr;
}

/// Steps to the segment after this one; false at the end of the stream.
bool Cursor::next_segment() {
  const std::int32_t tail = stream_->count - stream_->tail;
  ++segment_;
  if (segment_ == stream_->lead && round_ == 0 && stream_->repeats <= 0) segment_ = tail;
  if (segment_ == tail && stream_->lead < tail) {
    segment_ = ++round_ < stream_->repeats ? stream_->lead : tail;
  }
  const bool looped = stream_->lead <= segment_ && segment_ < tail;
  round_base_ = looped ? round_ * stream_->stride : 0;
  return segment_ < stream_->count;
}

void Cursor::enter_segment() {
  const Segment& segment = segments_[segment_];
  instruction_ = instructions_ + segment.first;
  end_ = instruction_ + segment.count;
  base_ = iteration_ * segment.stride + round_base_;
}

bool only_memory_before_op(Cursor cursor) {
  for (; !cursor.done(); cursor.next()) {
    const Opcode code = cursor.instruction().code;
    if (code != Opcode::Allocate && code != Opcode::Free) return code == Opcode::Compute;
  }
  return false;
}

}  // namespace interlock
