// Who waits for what when nothing can go on.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/deadlock.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace interlock {

namespace {

constexpr int kMostListed = 8;

/// Names a message of `channel` by the op that makes it, as "0F1"; a split backward's I as B.
std::string name_of(const Program& program, const Channel& channel, int micro_batch) {
  const char made = channel.cargo == Cargo::Activation ? 'F' : 'B';
  return std::to_string(model_stage(program, channel.from_stage)) + made +
         std::to_string(micro_batch);
}

/// Says what an end of a message in line waits for.
std::string waits_in_line(const Program& program, const Instruction& instruction) {
  const Channel& channel = program.channels[instruction.index];
  const bool sends = instruction.code == Opcode::Send;
  return std::string("in its line to ") + (sends ? "send " : "receive ") +
         name_of(program, channel, instruction.micro_batch) +
         (sends ? " to rank " : " from rank ") +
         std::to_string(sends ? channel.to_rank : channel.from_rank) +
         ", which has not come to that";
}

/// Returns true if messages of `program` stand in line, in streams behind the first of their rank.
bool has_lines(const Program& program) {
  return std::ranges::any_of(program.channels,
                             [](const Channel& channel) { return channel.in_line; });
}

/// Says what a stream of `rank` waits for at `instruction`.
std::string waits_for(const Program& program, int rank, const Instruction& instruction) {
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
      if (channel.in_line) return waits_in_line(program, instruction);
      return "on stage " + named(channel.to_stage) + " for a message from stage " +
             named(channel.from_stage) + batch;
    }
    case Opcode::Send: {
      const Channel& channel = program.channels[instruction.index];
      if (channel.in_line) return waits_in_line(program, instruction);
      return "on stage " + named(channel.from_stage) + " for room in the queue to stage " +
             named(channel.to_stage) + batch;
    }
    case Opcode::Record:
    case Opcode::Wait:
      if (const int channel = program.events[instruction.index].message; channel >= 0) {
        const Channel& message = program.channels[channel];
        return "until " + name_of(program, message, instruction.micro_batch) +
               (message.from_rank == rank ? " has left" : " has come");
      }
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
  if (has_lines(program)) {
    return "sends and receives that meet in the order of both ranks; try \"receives\": \"early\", "
           "or \"batched_messages\": true, in /training/schedule";
  }
  if (std::any_of(channels.begin(), channels.end(), [](auto& c) { return c.synchronous; })) {
    return "copies beside compute for this schedule; try \"copies\": \"overlapped\"";
  }
  return "queues deep enough for the schedule; try \"queue\": \"unlimited\"";
}

}  // namespace

void require_done(const Program& program, const std::vector<std::optional<Instruction>>& standing) {
  std::string waiting;
  int count = 0;
  bool any = false;
  const bool lines = has_lines(program);
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
      if (!standing[s]) continue;
      any = true;
      const bool lines_up = lines && s > rank.first_stream;
      const bool has_come =
          standing[s]->code == Opcode::Send || standing[s]->code == Opcode::Receive;
      if (lines_up && !has_come) continue;  // behind an op, or a message, of the rank
      if (++count > kMostListed) continue;
      waiting += "\n  rank " + std::to_string(r) + " waits " +
                 waits_for(program, static_cast<int>(r), *standing[s]);
    }
  }
  CHECK(any == (count > 0), "some op, or end of a message, stands");
  if (count == 0) return;
  if (count > kMostListed) {
    waiting += "\n  and " + std::to_string(count - kMostListed) + " more";
  }
  throw Error("the schedule deadlocks: nothing can go on, and " + std::to_string(count) +
              " streams are not done" + waiting + "\nexpected " + what_to_try(program));
}

}  // namespace interlock
