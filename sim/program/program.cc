// Walking and counting programs.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/program.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "sim/program/cursor.h"

namespace interlock {

const char* name_of(MemoryClass memory_class) {
  static constexpr const char* kNames[kMemoryClasses + 1] = {
      "weights", "weight_versions", "gradients",     "optimizer", "stash", "boundary",
      "head",    "workspace",       "communication", "host_stash"};
  return kNames[static_cast<int>(memory_class)];
}

std::array<Bytes, kMemoryClasses> always_held(const Rank& rank) {
  std::array<Bytes, kMemoryClasses> bytes = rank.resident;
  bytes[static_cast<std::size_t>(MemoryClass::Workspace)] += rank.libraries;
  return bytes;
}

SliceNumber slice_number(const Program& program, int micro_batch) {
  const int turn = micro_batch / program.slices;  // of a micro-batch, or of a step of several sizes
  SliceNumber number{turn, micro_batch % program.slices};
  if (program.slice_counts.empty()) return number;
  number.micro_batch *= whole_micro_batches(program);
  for (const int slices : program.slice_counts) {
    if (number.slice < slices) break;
    number.slice -= slices;
    ++number.micro_batch;
  }
  return number;
}

int whole_micro_batches(const Program& program) {
  if (program.slice_counts.empty()) return program.micro_batches / program.slices;
  return static_cast<int>(program.slice_counts.size());
}

std::int64_t turns_of(const Program& program, const Stream& stream, int index) {
  const int place = index - stream.first;
  const bool looped = stream.lead <= place && place < stream.count - stream.tail;
  return std::int64_t{program.segments[index].repeats} * (looped ? stream.repeats : 1);
}

namespace {

int tasks_of(const Program& program, const Instruction& instruction) {
  if (instruction.code == Opcode::Compute) return 1;
  if (instruction.code == Opcode::Send)
    return program.channels[instruction.index].wire >= 0 ? 1 : 0;
  if (instruction.code != Opcode::Record) return 0;
  int collectives = 0;
  for (int e = instruction.index; e >= 0; e = program.events[e].next) {
    collectives += program.events[e].collective >= 0 ? 1 : 0;
  }
  return collectives;
}

}  // namespace

std::int64_t count_tasks(const Program& program) {
  std::int64_t tasks = 0;
  for (const Stream& stream : program.streams) {
    visit_instructions(program, stream, [&](const Instruction& one, std::int64_t turns) {
      tasks += turns * tasks_of(program, one);
    });
  }
  return tasks;
}

bool shares_links(const Program& program) {
  return std::any_of(program.wires.begin(), program.wires.end(),
                     [](const Wire& wire) { return wire.shared; });
}

Seconds occupancy_alone(const Program& program, const Channel& channel) {
  if (channel.wire < 0 || !channel.flows.empty()) return channel.occupancy;
  const Wire& wire = program.wires[channel.wire];
  BytesPerSecond own(kInfinity);
  bool equals = false;  // cross its links, too
  for (const int link : wire.links) {
    const ProgramLink& crossed = program.links[link];
    own = std::min(own, crossed.bandwidth / crossed.share);
    equals =
        equals || crossed.share != 1 || std::count(wire.links.begin(), wire.links.end(), link) > 1;
  }
  return equals ? channel.occupancy * (wire.bandwidth / own) : channel.occupancy;
}

bool chooses_order(const Program& program) {
  return std::any_of(program.ranks.begin(), program.ranks.end(),
                     [](const Rank& rank) { return rank.streams > 1 && rank.order.empty(); });
}

}  // namespace interlock
