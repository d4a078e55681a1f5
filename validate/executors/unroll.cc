// Writing out lead, rounds of segments, and tail.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/unroll.h"

#include "base/error.h"

namespace interlock {
namespace {

void append(const Program& program, const Segment& segment, int later,
            std::vector<Instruction>& code) {
  for (int turn = 0; turn < segment.repeats; ++turn) {
    for (int i = segment.first; i < segment.first + segment.count; ++i) {
      code.push_back(program.instructions[i]);
      code.back().micro_batch += later + turn * segment.stride;
    }
  }
}

std::vector<Instruction> unroll(const Program& program, const Stream& stream) {
  std::vector<Instruction> code;
  const Segment* segments = program.segments.data() + stream.first;
  const int tail = stream.count - stream.tail;
  for (int s = 0; s < stream.lead; ++s) append(program, segments[s], 0, code);
  for (int round = 0; round < stream.repeats; ++round) {
    for (int s = stream.lead; s < tail; ++s) {
      append(program, segments[s], round * stream.stride, code);
    }
  }
  for (int s = tail; s < stream.count; ++s) append(program, segments[s], 0, code);
  return code;
}

}  // namespace

std::vector<UnrolledStream> unroll(const Program& program) {
  std::vector<UnrolledStream> streams(program.streams.size());
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    for (int number = 0; number < rank.streams; ++number) {
      const int stream = rank.first_stream + number;
      CHECK(stream < static_cast<int>(streams.size()), "a stream for each that ranks name");
      streams[stream] = {static_cast<int>(r), number, unroll(program, program.streams[stream])};
    }
  }
  return streams;
}

bool leads_to_op(const std::vector<Instruction>& code, std::size_t at) {
  while (at < code.size() && (code[at].code == Opcode::Allocate || code[at].code == Opcode::Free)) {
    ++at;
  }
  return at < code.size() && code[at].code == Opcode::Compute;
}

std::array<int, 5> priority_of(const Program& program, const UnrolledStream& stream,
                               std::size_t at) {
  while (stream.code[at].code != Opcode::Compute) ++at;
  const OpInfo& op = program.ops[stream.code[at].index];
  return {static_cast<int>(op.kind), op.loss - op.stage, stream.code[at].micro_batch, op.stage,
          stream.number};
}

}  // namespace interlock
