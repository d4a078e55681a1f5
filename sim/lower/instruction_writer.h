// InstructionWriter: appends instructions to a program, making what they refer to at first use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/stage_cost.h"
#include "sim/program/program.h"

namespace interlock {

/// Example: allocate(0F0, Stash, 4 MiB) and allocate(0F1, Stash, 4 MiB) append Allocate (buffer 0,
/// micro-batch 0) and Allocate (buffer 0, micro-batch 1): both are of one buffer of stage 0.
class InstructionWriter {
 public:
  InstructionWriter(Program& program, int stages);

  void emit(Opcode code, int index, int micro_batch);
  /// Writes a Compute of `op` as `info` says, which may be a part of it.
  void compute(const Op& op, const OpInfo& info);
  void allocate(const Op& op, MemoryClass memory_class, Bytes bytes);
  void free(const Op& op, MemoryClass memory_class, Bytes bytes);
  /// Frees a message that leaves by `channel`, which only its transfer still reads after `op`.
  void free_message(const Op& op, Bytes bytes, int channel);
  /// Returns the event remembered in `known`, made at the first call.
  int event(int& known, int recorders, int micro_batches);
  /// Returns the index of the stage's buffer with this class and size; creates it on first use.
  int buffer(int stage, MemoryClass memory_class, Bytes bytes, int message = -1);

 private:
  Program& program_;
  std::vector<std::vector<int>> ops_of_stage_, buffers_of_stage_;
};

}  // namespace interlock
