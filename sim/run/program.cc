// Walking and counting programs.
// SPDX-License-Identifier: Apache-2.0
#include "sim/run/program.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace interlock {

const char* name_of(MemoryClass memory_class) {
  static constexpr const char* kNames[kMemoryClasses] = {
      "weights", "weight_versions", "gradients",    "optimizer", "stash", "boundary",
      "head",    "workspace",       "communication"};
  return kNames[static_cast<int>(memory_class)];
}

SliceNumber slice_number(const Program& program, int micro_batch) {
  const int turn = micro_batch / program.slices;  // of a micro-batch, or of a step of several sizes
  SliceNumber number{turn, micro_batch % program.slices};
  if (program.parts.empty()) return number;
  number.micro_batch *= whole_micro_batches(program);
  for (const int slices : program.parts) {
    if (number.slice < slices) break;
    number.slice -= slices;
    ++number.micro_batch;
  }
  return number;
}

int whole_micro_batches(const Program& program) {
  if (program.parts.empty()) return program.micro_batches / program.slices;
  return static_cast<int>(program.parts.size());
}

std::int64_t turns_of(const Program& program, const Stream& stream, int index) {
  const int place = index - stream.first;
  const bool looped = stream.lead <= place && place < stream.count - stream.tail;
  return std::int64_t{program.segments[index].repeats} * (looped ? stream.repeats : 1);
}

std::int64_t count_tasks(const Program& program) {
  std::int64_t tasks = 0;
  for (const Stream& stream : program.streams) {
    for (int s = stream.first; s < stream.first + stream.count; ++s) {
      const Segment& segment = program.segments[s];
      const auto begin = program.instructions.begin() + segment.first;
      tasks +=
          turns_of(program, stream, s) * std::count_if(begin, begin + segment.count, [&](auto& i) {
            if (i.code == Opcode::Send) return program.channels[i.index].wire >= 0;
            if (i.code == Opcode::Record) return program.events[i.index].collective >= 0;
            return i.code == Opcode::Compute;
          });
    }
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

}  // namespace interlock
