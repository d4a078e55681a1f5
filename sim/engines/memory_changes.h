// MemoryChanges: what a run of a native engine takes and gives back of the memory of its devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/engines/message_holds.h"
#include "sim/program/cursor.h"
#include "sim/program/ticks.h"
#include "sim/program/trace.h"

namespace interlock {

/// Tells a sink that watches memory what instructions, messages and collectives do to it. Times are
/// ticks.
class MemoryChanges {
 public:
  /// REQUIRES: both outlive it.
  MemoryChanges(const Program& program, const TraceSink& sink) : program_(program), sink_(sink) {}

  /// Does what the Allocate or Free at which a stream of `rank` stands says.
  void change(const Cursor& cursor, int rank, double time) {
    const Instruction& instruction = cursor.instruction();
    const Buffer& buffer = program_.buffers[instruction.index];
    if (buffer.message >= 0) return let_go(buffer.message, cursor.micro_batch(), time);
    const double sign = instruction.code == Opcode::Allocate ? 1 : -1;
    tell(time, rank, buffer.memory_class, sign * buffer.bytes.value());
  }
  /// Gives the receiver of a message its bytes, at the time at which it may leave.
  void begin_message(int channel, double time) {
    const Channel& what = program_.channels[channel];
    tell(time, what.to_rank, MemoryClass::Boundary, held_by_receiver(what).value());
  }
  /// Frees the bytes of a message that has left, unless its sender keeps them.
  void end_message(int channel, int micro_batch, double time) {
    const Channel& what = program_.channels[channel];
    if (what.read_by_head) return let_go(channel, micro_batch, time);
    if (!what.from_resident) give_back(what, time);
  }
  /// Frees on all members what a collective that ends gives back.
  void end_collective(const Event& event, double time) {
    if (event.gives_back < 0) return;
    const Buffer& buffer = program_.buffers[event.gives_back];
    const int communicator = program_.collectives[event.collective].communicator;
    for (const int rank : program_.communicators[communicator].ranks) {
      tell(time, rank, buffer.memory_class, -buffer.bytes.value());
    }
  }

 private:
  /// Frees a message once both its transfer and a head have read it.
  void let_go(int channel, int micro_batch, double time) {
    const auto end = holds_.let_go(channel, micro_batch, time);
    if (end) give_back(program_.channels[channel], *end);
  }
  void give_back(const Channel& channel, double time) {
    tell(time, channel.from_rank, MemoryClass::Boundary, -held_by_sender(channel).value());
  }
  void tell(double time, int rank, MemoryClass memory_class, double bytes) {
    sink_.memory({in_seconds(program_, time), bytes, rank, memory_class});
  }

  const Program& program_;
  const TraceSink& sink_;
  MessageHolds<double> holds_;
};

}  // namespace interlock
