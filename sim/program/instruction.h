// Instructions: what a rank's streams are made of, and the loops that repeat them.
// SPDX-License-Identifier: Apache-2.0
//
// A stream is written as loops, so that its size does not grow with the run:
//   stream = lead, repeats x { segment = repeats x { instructions } }, tail,
// where the micro-batch of an instruction is its own plus stride times iteration, on both levels;
// the segments of lead and tail run once.
//
// Example: repeats 2 x { 3 x { F (0) } stride 1 } with stride 3 computes F0 F1 F2, then F3 F4 F5.
//
// Compute    runs ops[index] on the rank's device.
// Send       hands a message to channels[index]. Waits for room (see Channel); the transfer itself
//            runs beside compute unless the channel is synchronous.
// Receive    waits until the oldest untaken message of channels[index] has arrived, and takes it.
// Record     counts towards events[index]; Wait waits until its generation is complete: number
//            micro_batch / event.micro_batches, or nothing for a micro-batch below 0.
// Allocate   takes, Free gives back buffers[index] on the rank. A message's bytes are taken on the
//            receiving rank when its transfer is handed over, and given back on the sending rank
//            when the transfer ends; the receiver frees them with Free. A Free of a message
//            (Buffer::message) is the sender's: its bytes are given back when that has come and the
//            transfer has ended. On a rank of several streams an Allocate before an op waits until
//            the op is chosen.
#pragma once

#include <cstdint>

namespace interlock {

enum class MemoryClass : std::uint8_t {
  Weights,
  WeightVersions,
  Gradients,
  Optimizer,
  Stash,
  Boundary,
  Head,
  Workspace,
  Communication,
  HostStash,  // in the memory of the device's host
};
inline constexpr int kMemoryClasses = 9;  // of a device: all before HostStash
/// Returns "weights", "weight_versions", ...: the keys of the result.
const char* name_of(MemoryClass memory_class);

enum class Opcode : std::uint8_t { Compute, Send, Receive, Record, Wait, Allocate, Free };

struct Instruction {
  Opcode code = Opcode::Compute;
  std::int32_t index = 0;
  std::int32_t micro_batch = 0;
  bool operator==(const Instruction&) const = default;
};

struct Segment {
  std::int32_t first = 0, count = 0;  // in Program::instructions
  std::int32_t repeats = 1, stride = 1;
};

struct Stream {
  std::int32_t first = 0, count = 0;  // in Program::segments
  std::int32_t repeats = 1, stride = 0;
  std::int32_t lead = 0, tail = 0;  // segments at the start and the end
};

}  // namespace interlock
