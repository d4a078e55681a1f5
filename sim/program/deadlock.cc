// Who waits for what when nothing can go on.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/deadlock.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace interlock {

namespace {

constexpr int kMostListed = 8;

std::string waits_for(const Program& program, const Instruction& instruction) {
  const std::string batch = " of micro-batch " + std::to_string(instruction.micro_batch);
  const auto named = [&](int stage) { return std::to_string(model_stage(program, stage)); };
  switch (instruction.code) {
    case Opcode::Compute: {
      const OpInfo& op = program.ops[instruction.index];
      return "for its turn to run " + named(op.stage) + letter(op.kind) +
             std::to_string(instruction.micro_batch);
    }
    case Opcode::Receive: {
      const Channel& channel = program.channels[instruction.index];
      return "on stage " + named(channel.to_stage) + " for a message from stage " +
             named(channel.from_stage) + batch;
    }
    case Opcode::Send: {
      const Channel& channel = program.channels[instruction.index];
      return "on stage " + named(channel.from_stage) + " for room in the queue to stage " +
             named(channel.to_stage) + batch;
    }
    case Opcode::Record:
    case Opcode::Wait:
      if (program.events[instruction.index].collective >= 0) {
        return "for the others of its group to join a collective" + batch;
      }
      return "for the other stages before its update" + batch;
    case Opcode::Allocate:
    case Opcode::Free:
      break;
  }
  return "for its turn" + batch;
}

/// Says what to try if streams cannot go on: copies that need both of them, or more room in queues.
std::string what_to_try(const Program& program) {
  const auto& channels = program.channels;
  if (std::any_of(channels.begin(), channels.end(), [](auto& c) { return c.synchronous; })) {
    return "copies beside compute for this schedule; try \"copies\": \"overlapped\"";
  }
  return "queues deep enough for the schedule; try \"queue\": \"unlimited\"";
}

}  // namespace

void require_done(const Program& program, const std::vector<std::optional<Instruction>>& standing) {
  std::string waiting;
  int count = 0;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
      if (!standing[s] || ++count > kMostListed) continue;
      waiting += "\n  rank " + std::to_string(r) + " waits " + waits_for(program, *standing[s]);
    }
  }
  if (count == 0) return;
  if (count > kMostListed) {
    waiting += "\n  and " + std::to_string(count - kMostListed) + " more";
  }
  throw Error("the schedule deadlocks: nothing can go on, and " + std::to_string(count) +
              " streams are not done" + waiting + "\nexpected " + what_to_try(program));
}

}  // namespace interlock
