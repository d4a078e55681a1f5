// Walking loops of instructions.
// SPDX-License-Identifier: Apache-2.0
#include "sim/run/cursor.h"

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
  if (stream.repeats > 0) advance();
}

// Empty segments (no instructions or no repeats) are stepped over.
void Cursor::advance() {
  if (instruction_ != nullptr && ++iteration_ < segments_[segment_].repeats) {
    enter_segment();
    return;
  }
  iteration_ = 0;
  for (int tries = 0; tries <= stream_->count; ++tries) {
    if (++segment_ == stream_->count) {
      segment_ = 0;
      if (++round_ >= stream_->repeats) break;
    }
    if (stream_->count == 0) break;
    if (segments_[segment_].count > 0 && segments_[segment_].repeats > 0) {
      enter_segment();
      return;
    }
  }
  instruction_ = nullptr;
}

void Cursor::enter_segment() {
  const Segment& segment = segments_[segment_];
  instruction_ = instructions_ + segment.first;
  end_ = instruction_ + segment.count;
  base_ = iteration_ * segment.stride + round_ * stream_->stride;
}

}  // namespace interlock
