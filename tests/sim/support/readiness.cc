// Walking streams along a trace.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/support/readiness.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "sim/program/cursor.h"
#include "sim/program/ticks.h"

namespace interlock {

namespace {

/// The work of both sides of a channel so far, message by message.
struct Exchange {
  std::vector<Seconds> offered;   // the sender came to its Send
  std::vector<Seconds> accepted;  // the message was handed over
  std::vector<Seconds> asked;     // the receiver let the sender of a rendezvous go
  std::vector<Seconds> taken;
  std::vector<Seconds> arrivals;  // from the trace; between ranks only
  std::size_t sends_done = 0;
};

class Walker {
 public:
  Walker(const Program& program, const TraceLog& log)
      : program_(program),
        exchanges_(program.channels.size()),
        events_(program.events.size()),
        ops_(program.streams.size()) {
    for (const Span& span : log.spans) {
      spans_[{span.rank, span.op, span.micro_batch}].push_back(span);
    }
    for (const Transfer& t : log.transfers) exchanges_[t.channel].arrivals.push_back(t.arrival);
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      const Rank& rank = program.ranks[r];
      for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
        walks_.push_back({Cursor(program, program.streams[s]), static_cast<int>(r), Seconds(0)});
      }
    }
  }

  std::vector<std::vector<ReadyOp>> walk() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < walks_.size(); ++s) {
        while (!walks_[s].cursor.done() && step(s)) {
          const Opcode code = walks_[s].cursor.instruction().code;
          const bool breaks =
              code == Opcode::Send || code == Opcode::Receive || code == Opcode::Wait;
          if (breaks) walks_[s].run_start.reset();
          walks_[s].cursor.next();
          walks_[s].offered = false;
          moved = true;
        }
      }
    }
    for (const Walk& walk : walks_) CHECK(walk.cursor.done(), "a trace that is no whole run");
    return ops_;
  }

 private:
  struct Walk {
    Cursor cursor;
    int rank = 0;
    Seconds time;
    std::optional<Seconds> run_start;  // of the ops since the last other instruction
    bool offered = false;    // has told the other side that it stands at its Send or Receive
    std::size_t number = 0;  // of the message
  };

  bool step(std::size_t s) {
    Walk& walk = walks_[s];
    const Instruction& instruction = walk.cursor.instruction();
    switch (instruction.code) {
      case Opcode::Compute:
        compute(s, walk);
        return true;
      case Opcode::Send:
        return send(walk, program_.channels[instruction.index], exchanges_[instruction.index]);
      case Opcode::Receive:
        return receive(walk, program_.channels[instruction.index], exchanges_[instruction.index]);
      case Opcode::Record:
        generation(walk).push_back(walk.time);
        return true;
      case Opcode::Wait:
        return wait(walk);
      case Opcode::Allocate:
      case Opcode::Free:
        return true;
    }
    return true;
  }

  void compute(std::size_t s, Walk& walk) {
    const int op = walk.cursor.instruction().index;
    auto& spans = spans_[{walk.rank, op, walk.cursor.micro_batch()}];
    CHECK(!spans.empty(), "an op that did not run");
    const Span span = spans.front();
    spans.erase(spans.begin());
    if (!walk.run_start) walk.run_start = span.start;
    ops_[s].push_back({program_.ops[op], span.micro_batch, walk.time, span.start, span.end});
    walk.time = span.end;
  }

  bool send(Walk& walk, const Channel& channel, Exchange& exchange) {
    if (!walk.offered) {
      walk.offered = true;
      walk.number = exchange.offered.size();
      exchange.offered.push_back(walk.time);
    }
    const std::size_t n = walk.number;
    if (channel.synchronous) {
      if (exchange.asked.size() <= n) return false;
      walk.time = exchange.arrivals.at(n);
      return true;
    }
    if (channel.depth > 0 && n >= static_cast<std::size_t>(channel.depth)) {
      const std::size_t untaken = n - channel.depth;
      if (exchange.taken.size() <= untaken) return false;
      walk.time = std::max(walk.time, exchange.taken[untaken]);
    }
    if (exchange.accepted.size() == n) exchange.accepted.push_back(walk.time);
    if (channel.depth == 0) {
      if (exchange.asked.size() <= n) return false;
      walk.time = std::max(walk.time, exchange.asked[n]);
    }
    return true;
  }

  /// When the sender of a rendezvous knows that its message will be asked for as it arrives. A rank
  /// of one stream knows when it will ask from the start of its last unbroken run of ops.
  Seconds asking_time(const Walk& walk, const Channel& channel) const {
    if (!walk.run_start || program_.ranks[walk.rank].streams > 1) return walk.time;
    const double way = in_ticks(program_, channel.occupancy) + in_ticks(program_, channel.latency);
    const double asks = in_ticks(program_, walk.time);  // whole ticks, as sums of seconds are not
    return std::max(*walk.run_start, in_seconds(program_, asks - way));
  }

  bool receive(Walk& walk, const Channel& channel, Exchange& exchange) {
    if (!walk.offered) {
      walk.offered = true;
      walk.number = exchange.asked.size();
      exchange.asked.push_back(asking_time(walk, channel));
    }
    const std::size_t n = walk.number;
    if (channel.synchronous) {
      if (exchange.offered.size() <= n) return false;
      walk.time = exchange.arrivals.at(n);
      return true;
    }
    if (exchange.accepted.size() <= n) return false;
    const bool local = channel.wire < 0;
    walk.time = std::max(walk.time, local ? exchange.accepted[n] : exchange.arrivals.at(n));
    exchange.taken.push_back(walk.time);
    return true;
  }

  std::vector<Seconds>& generation(const Walk& walk) {
    const int index = walk.cursor.instruction().index;
    return events_[index][walk.cursor.micro_batch() / program_.events[index].micro_batches];
  }

  bool wait(Walk& walk) {
    if (walk.cursor.micro_batch() < 0) return true;  // before the first: nothing to wait for
    const std::vector<Seconds>& records = generation(walk);
    const Event& event = program_.events[walk.cursor.instruction().index];
    if (static_cast<int>(records.size()) < event.recorders) return false;
    walk.time = std::max(walk.time, *std::max_element(records.begin(), records.end()));
    return true;
  }

  const Program& program_;
  std::map<std::tuple<int, int, int>, std::vector<Span>> spans_;
  std::vector<Exchange> exchanges_;
  std::vector<std::map<int, std::vector<Seconds>>> events_;
  std::vector<Walk> walks_;
  std::vector<std::vector<ReadyOp>> ops_;
};

}  // namespace

std::vector<std::vector<ReadyOp>> readiness(const Program& program, const TraceLog& log) {
  return Walker(program, log).walk();
}

}  // namespace interlock
