// Walking and counting programs.
// SPDX-License-Identifier: Apache-2.0
#include "sim/run/program.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace interlock {

const char* name_of(MemoryClass memory_class) {
  static constexpr const char* kNames[kMemoryClasses] = {
      "weights", "weight_versions", "gradients", "optimizer",
      "stash",   "boundary",        "head",      "workspace"};
  return kNames[static_cast<int>(memory_class)];
}

std::int64_t count_tasks(const Program& program) {
  std::int64_t tasks = 0;
  for (const Stream& stream : program.streams) {
    std::int64_t once = 0;
    for (int s = stream.first; s < stream.first + stream.count; ++s) {
      const Segment& segment = program.segments[s];
      const auto begin = program.instructions.begin() + segment.first;
      once += segment.repeats * std::count_if(begin, begin + segment.count, [&](auto& i) {
                if (i.code == Opcode::Send) return program.channels[i.index].wire >= 0;
                return i.code == Opcode::Compute;
              });
    }
    tasks += once * stream.repeats;
  }
  return tasks;
}

bool shares_links(const Program& program) {
  return std::any_of(program.wires.begin(), program.wires.end(),
                     [](const Wire& wire) { return wire.shared; });
}

bool chooses_order(const Program& program) {
  return std::any_of(program.ranks.begin(), program.ranks.end(),
                     [](const Rank& rank) { return rank.streams > 1 && rank.order.empty(); });
}

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
