// The events of a simulated run, done for real one after the other.
// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/support/clocked_ranks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/engines/engines.h"
#include "sim/program/cursor.h"

namespace interlock {
namespace {

/// The order of events of one instant: those that free memory come first, and messages leave before
/// ops begin.
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

/// A stream between and in its ops.
struct ClockedStream {
  Cursor cursor;  // behind the op under way
  bool computing = false;
  std::vector<Instruction> sends = {};  // of its last op, that are yet to leave
  int asked = 0;  // Receives before its next op whose message is taken as soon as it is there
};

struct Clock {
  const Program& program;
  CpuRun run;
  std::vector<ClockedStream> streams = {};
  std::vector<EndOfOp> working = {};       // by rank: the op under way
  std::vector<ClockEvent> late = {};       // messages whose op is yet to pass
  std::vector<int> sent = {}, taken = {};  // by channel, of those within a rank

  bool is_within(int channel) const {
    return program.channels[static_cast<std::size_t>(channel)].wire < 0;
  }
  template <class Use>
  void for_streams(int rank, Use use) {
    const Rank& own = program.ranks[static_cast<std::size_t>(rank)];
    for (int s = own.first_stream; s < own.first_stream + own.streams; ++s) {
      use(streams[static_cast<std::size_t>(s)]);
    }
  }

  /// The stream whose next op this is takes the messages that come before it.
  void take_messages(const ClockEvent& event) {
    for_streams(event.rank, [&](ClockedStream& stream) {
      Cursor ahead = stream.cursor;
      while (!ahead.done() && ahead.instruction().code != Opcode::Compute) ahead.next();
      if (stream.computing || ahead.done() || ahead.instruction().index != event.index ||
          ahead.micro_batch() != event.micro_batch) {
        return;
      }
      for (; stream.cursor.instruction().code != Opcode::Compute; stream.cursor.next()) {
        const auto [code, channel, base] = stream.cursor.instruction();
        if (code != Opcode::Receive) continue;
        run.workload.receive(channel, stream.cursor.micro_batch());
        if (stream.asked-- <= 0 && is_within(channel)) ++taken[static_cast<std::size_t>(channel)];
      }
      stream.cursor.next();
      stream.asked = 0;
      stream.computing = true;
    });
  }

  void begin_op(const ClockEvent& event) {
    take_messages(event);
    working[static_cast<std::size_t>(event.rank)] = run.begin(event.index, event.micro_batch);
    settle(event.rank);
  }

  /// The op gives its memory back; what it made leaves, if it may.
  void end_op(const ClockEvent& event) {
    working[static_cast<std::size_t>(event.rank)]();
    for_streams(event.rank, [&](ClockedStream& stream) {
      if (!std::exchange(stream.computing, false)) return;
      for (Cursor ahead = stream.cursor; !ahead.done(); ahead.next()) {
        const Opcode code = ahead.instruction().code;
        if (code == Opcode::Compute || code == Opcode::Receive) break;
        if (code == Opcode::Send) stream.sends.push_back(*ahead.standing());
      }
    });
    settle(event.rank);
    for (const ClockEvent& message : std::exchange(late, {})) leave(message);
  }

  /// A message to another rank is on its way, as the engine says; behind the op that makes it, if
  /// that takes no time.
  void leave(const ClockEvent& event) {
    bool left = false;
    for_streams(event.rank, [&](ClockedStream& stream) {
      if (stream.sends.empty() || stream.sends.front().index != event.index ||
          stream.sends.front().micro_batch != event.micro_batch) {
        return;
      }
      run.workload.send(event.index, event.micro_batch);
      stream.sends.erase(stream.sends.begin());
      left = true;
    });
    if (!left) return late.push_back(event);
    settle(event.rank);
  }

  /// Messages within the rank are handed over as soon as there is room for them.
  void settle(int rank) {
    for (bool progress = true; progress;) {
      progress = false;
      for_streams(rank, [&](ClockedStream& stream) {
        progress = send_within(stream) || progress;
        progress = ask_within(stream) || progress;
      });
    }
  }
  bool send_within(ClockedStream& stream) {
    if (stream.computing || stream.sends.empty()) return false;
    const auto [code, index, micro_batch] = stream.sends.front();
    const auto channel = static_cast<std::size_t>(index);
    const int depth = program.channels[channel].depth;
    if (!is_within(index) || (depth > 0 && sent[channel] - taken[channel] >= depth)) return false;
    run.workload.send(index, micro_batch);
    ++sent[channel];
    stream.sends.erase(stream.sends.begin());
    return true;
  }
  /// A stream that is done with its last op takes what its next one reads.
  bool ask_within(ClockedStream& stream) {
    if (stream.computing || !stream.sends.empty()) return false;
    int receive = 0;
    for (Cursor ahead = stream.cursor; !ahead.done(); ahead.next()) {
      const auto [code, index, base] = ahead.instruction();
      if (code == Opcode::Compute) return false;
      if (code != Opcode::Receive || receive++ < stream.asked) continue;
      const auto channel = static_cast<std::size_t>(index);
      if (is_within(index) && sent[channel] == taken[channel]) return false;
      if (is_within(index)) ++taken[channel];
      ++stream.asked;
      return true;
    }
    return false;
  }
};

}  // namespace

Outcome train_by_the_clock(const Job& job, CpuOptions options) {
  const Program& program = job.program;
  options.keeps_sent = true;
  Clock clock = {.program = program,
                 .run = make_cpu_run(job, options),
                 .working = std::vector<EndOfOp>(program.ranks.size()),
                 .sent = std::vector<int>(program.channels.size()),
                 .taken = std::vector<int>(program.channels.size())};
  for (const Stream& stream : program.streams) clock.streams.push_back({Cursor(program, stream)});
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
        clock.leave(event);
        break;
      case EventKind::TransferEnds:
        clock.run.sent(event.index, event.micro_batch);
        break;
    }
  }
  return clock.run.outcome();
}

}  // namespace interlock
