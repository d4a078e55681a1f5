// The events of a simulated run, done for real one after the other.
// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/support/clocked_ranks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/run/cursor.h"
#include "sim/run/engines.h"

namespace interlock {
namespace {

/// Of one instant, what gives memory back comes first, and messages leave before ops begin.
enum class EventKind : std::uint8_t { OpEnds, TransferEnds, MessageLeaves, OpPasses, OpBegins };

struct ClockEvent {
  double time = 0;
  EventKind kind = EventKind::OpEnds;
  int rank = 0, index = 0, micro_batch = 0;  // op or channel
};

std::vector<ClockEvent> events_of(const Program& program) {
  std::vector<ClockEvent> events;
  run_native(
      program,
      {.span =
           [&](const Span& s) {
             const bool instant = s.start == s.end;  // as a backward of a table alone
             const EventKind kind = instant ? EventKind::OpPasses : EventKind::OpBegins;
             events.push_back({s.start.value(), kind, s.rank, s.op, s.micro_batch});
             if (instant) return;
             events.push_back({s.end.value(), EventKind::OpEnds, s.rank, s.op, s.micro_batch});
           },
       .transfer =
           [&](const Transfer& t) {
             const int rank = program.channels[static_cast<std::size_t>(t.channel)].from_rank;
             events.push_back(
                 {t.sent.value(), EventKind::MessageLeaves, rank, t.channel, t.micro_batch});
             events.push_back(
                 {t.end.value(), EventKind::TransferEnds, rank, t.channel, t.micro_batch});
           }});
  std::stable_sort(events.begin(), events.end(), [](const ClockEvent& a, const ClockEvent& b) {
    return a.time < b.time || (a.time == b.time && a.kind < b.kind);
  });
  return events;
}

struct Clock {
  const Program& program;
  CpuRun run;
  std::vector<Cursor> cursors;   // by stream
  std::vector<EndOfOp> working;  // by rank: the op under way

  /// The stream of `rank` whose next op is this one; takes the messages that come before it.
  void take_messages(const ClockEvent& event) {
    const Rank& rank = program.ranks[static_cast<std::size_t>(event.rank)];
    for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
      Cursor& cursor = cursors[static_cast<std::size_t>(s)];
      Cursor ahead = cursor;
      while (!ahead.done() && ahead.instruction().code != Opcode::Compute) ahead.next();
      if (ahead.done() || ahead.instruction().index != event.index ||
          ahead.micro_batch() != event.micro_batch) {
        continue;
      }
      for (; cursor.instruction().code != Opcode::Compute; cursor.next()) {
        if (cursor.instruction().code == Opcode::Receive) {
          run.workload.receive(cursor.instruction().index, cursor.micro_batch());
        }
      }
      cursor.next();
      return;
    }
  }

  void begin_op(const ClockEvent& event) {
    take_messages(event);
    working[static_cast<std::size_t>(event.rank)] = run.begin(event.index, event.micro_batch);
  }

  /// The op gives its memory back; messages that stay on the rank are handed over.
  void end_op(const ClockEvent& event) {
    working[static_cast<std::size_t>(event.rank)]();
    const Rank& rank = program.ranks[static_cast<std::size_t>(event.rank)];
    for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
      Cursor ahead = cursors[static_cast<std::size_t>(s)];
      for (; !ahead.done() && ahead.instruction().code != Opcode::Compute &&
             ahead.instruction().code != Opcode::Receive;
           ahead.next()) {
        send_within(ahead);
      }
    }
  }

  void send_within(const Cursor& at) {
    const Instruction& instruction = at.instruction();
    if (instruction.code != Opcode::Send) return;
    const auto channel = static_cast<std::size_t>(instruction.index);
    if (program.channels[channel].wire >= 0) return;
    const std::pair<int, int> key = {instruction.index, at.micro_batch()};
    if (std::find(within.begin(), within.end(), key) != within.end()) return;
    within.push_back(key);
    run.workload.send(instruction.index, at.micro_batch());
  }
  std::vector<std::pair<int, int>> within;  // messages that stayed on a rank
};

}  // namespace

Outcome train_by_the_clock(const Job& job, CpuOptions options) {
  const Program& program = job.program;
  options.keeps_sent = true;
  Clock clock = {.program = program,
                 .run = make_cpu_run(job, options),
                 .working = std::vector<EndOfOp>(program.ranks.size())};
  for (const Stream& stream : program.streams) clock.cursors.emplace_back(program, stream);
  for (const ClockEvent& event : events_of(program)) {
    switch (event.kind) {
      case EventKind::OpPasses:
        clock.begin_op(event);
        clock.end_op(event);
        break;
      case EventKind::OpBegins:
        clock.begin_op(event);
        break;
      case EventKind::OpEnds:
        clock.end_op(event);
        break;
      case EventKind::MessageLeaves:
        clock.run.workload.send(event.index, event.micro_batch);
        break;
      case EventKind::TransferEnds:
        clock.run.sent(event.index, event.micro_batch);
        break;
    }
  }
  return clock.run.outcome();
}

}  // namespace interlock
