// Schedules expanded and written as text.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/schedule.h"

namespace interlock {

char letter(OpKind kind) { return "FHRIBWU"[static_cast<int>(kind)]; }

void split_turns(Sequence& sequence, std::size_t index, int turns) {
  Run rest = sequence.runs[index];
  sequence.runs[index].repeats = turns;
  rest.repeats -= turns;
  for (Op& op : rest.ops) op.micro_batch += turns * rest.stride;
  if (index < static_cast<std::size_t>(sequence.lead)) ++sequence.lead;
  if (index + static_cast<std::size_t>(sequence.tail) >= sequence.runs.size()) ++sequence.tail;
  sequence.runs.insert(sequence.runs.begin() + static_cast<std::ptrdiff_t>(index) + 1, rest);
}

std::vector<Op> expand(const Sequence& sequence) {
  std::vector<Op> ops;
  auto append = [&](std::size_t first, std::size_t end, int later) {
    for (std::size_t r = first; r < end; ++r) {
      const Run& run = sequence.runs[r];
      for (int iteration = 0; iteration < run.repeats; ++iteration) {
        for (Op op : run.ops) {
          op.micro_batch += iteration * run.stride + later;
          ops.push_back(op);
        }
      }
    }
  };
  const std::size_t tail = sequence.runs.size() - sequence.tail;
  append(0, sequence.lead, 0);
  for (int round = 0; round < sequence.repeats; ++round) {
    append(sequence.lead, tail, round * sequence.stride);
  }
  append(tail, sequence.runs.size(), 0);
  return ops;
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (const auto& sequences : schedule.ranks) {
    std::string line;
    for (const Sequence& sequence : sequences) {
      if (!line.empty()) line += " |";
      for (const Op& op : expand(sequence)) {
        if (!line.empty()) line += ' ';
        line += std::to_string(op.stage) + letter(op.kind) + std::to_string(op.micro_batch);
        if (op.kind == OpKind::I) line += ':' + std::to_string(op.loss);
      }
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace interlock
