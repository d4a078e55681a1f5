// Ops, buffers and events of a program, made when an instruction first needs them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/instruction_writer.h"

#include <algorithm>

namespace interlock {

InstructionWriter::InstructionWriter(Program& program, int stages)
    : program_(program), ops_of_stage_(stages), buffers_of_stage_(stages) {}

void InstructionWriter::emit(Opcode code, int index, int micro_batch) {
  program_.instructions.push_back({code, index, micro_batch});
}

void InstructionWriter::compute(const Op& op, const OpInfo& info) {
  auto& known = ops_of_stage_[op.stage];
  auto found = std::find_if(known.begin(), known.end(), [&](int index) {
    const OpInfo& other = program_.ops[index];
    return other.kind == info.kind && other.loss == info.loss && other.useful == info.useful &&
           other.duration == info.duration && other.flops == info.flops &&
           other.counted == info.counted && other.communication == info.communication &&
           other.inside == info.inside && other.compute_bound == info.compute_bound &&
           other.memory_bound == info.memory_bound && other.messages == info.messages;
  });
  if (found == known.end()) {
    program_.ops.push_back(info);
    known.push_back(static_cast<int>(program_.ops.size()) - 1);
    found = known.end() - 1;
  }
  emit(Opcode::Compute, *found, op.micro_batch);
}

void InstructionWriter::allocate(const Op& op, MemoryClass memory_class, Bytes bytes) {
  if (bytes > Bytes(0)) {
    emit(Opcode::Allocate, buffer(op.stage, memory_class, bytes), op.micro_batch);
  }
}

void InstructionWriter::free(const Op& op, MemoryClass memory_class, Bytes bytes) {
  if (bytes > Bytes(0)) {
    emit(Opcode::Free, buffer(op.stage, memory_class, bytes), op.micro_batch);
  }
}

void InstructionWriter::free_message(const Op& op, Bytes bytes, int channel) {
  if (bytes <= Bytes(0)) return;
  emit(Opcode::Free, buffer(op.stage, MemoryClass::Boundary, bytes, channel), op.micro_batch);
}

int InstructionWriter::event(int& known, int recorders, int micro_batches) {
  if (known < 0) {
    program_.events.push_back({.recorders = recorders, .micro_batches = micro_batches});
    known = static_cast<int>(program_.events.size()) - 1;
  }
  return known;
}

int InstructionWriter::buffer(int stage, MemoryClass memory_class, Bytes bytes, int message) {
  for (const int index : buffers_of_stage_[stage]) {
    const Buffer& known = program_.buffers[index];
    const bool same = known.memory_class == memory_class && known.bytes == bytes;
    if (same && known.message == message) return index;
  }
  program_.buffers.push_back({memory_class, stage, bytes, message});
  buffers_of_stage_[stage].push_back(static_cast<int>(program_.buffers.size()) - 1);
  return buffers_of_stage_[stage].back();
}

}  // namespace interlock
