// Walks all streams of a program beside the log of its run.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/causes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/causes/log_index.h"
#include "sim/program/cursor.h"

namespace interlock {
namespace {

constexpr double kJust = 1 - 1e-9;  // engines that share links are no more exact

Wait wait_for(Cargo cargo) {
  if (cargo == Cargo::Activation) return Wait::Activation;
  return cargo == Cargo::Gradient ? Wait::Gradient : Wait::Exchange;
}

class Walk {
  using Kind = TraceNode::Kind;

 public:
  Walk(const Program& program, const TraceLog& log)
      : program_(program),
        log_(log),
        index_(index_log(program, log)),
        queues_(program.channels.size()),
        events_(program.events.size()),
        begun_(log.collectives.size(), false) {
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      const Rank& rank = program.ranks[r];
      for (int s = 0; s < rank.streams; ++s) {
        const Stream& stream = program.streams[rank.first_stream + s];
        streams_.push_back({.cursor = Cursor(program, stream), .rank = static_cast<int>(r)});
      }
    }
    causes_.spans.resize(log.spans.size());
    causes_.transfers.resize(log.transfers.size());
    causes_.collectives.resize(log.collectives.size());
  }

  std::optional<Causes> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (Standing& stream : streams_) {
        while (!stream.cursor.done() && step(stream)) {
          stream.cursor.next();
          progress = true;
        }
        if (lost_) return std::nullopt;
      }
    }
    const bool whole = std::all_of(streams_.begin(), streams_.end(),
                                   [](const Standing& stream) { return stream.cursor.done(); });
    if (!whole || computed_ != log_.spans.size()) return std::nullopt;
    return std::move(causes_);
  }

 private:
  struct Standing {
    Cursor cursor;
    int rank = 0;
    Cause reached = {};  // why it is where it is
    bool handed_over = false;
    std::optional<Seconds> announced = {};  // when it was known that it would ask for a message
  };
  /// A receiver asks for a message, which its sender knows from `known` on.
  struct Ask {
    Cause cause;
    Seconds known;
  };
  struct Queue {
    std::vector<Cause> sent, taken;  // by message; why, and when it arrived
    std::vector<Ask> asked;
  };
  struct Generation {
    int records = 0;
    Cause last;
    bool complete = false;
  };
  /// One instruction; false if the stream stands.
  bool step(Standing& stream) {
    const Instruction& instruction = stream.cursor.instruction();
    switch (instruction.code) {
      case Opcode::Compute:
        return compute(stream);
      case Opcode::Send:
        return send(stream);
      case Opcode::Receive:
        return receive(stream);
      case Opcode::Record:
        return record(stream);
      case Opcode::Wait:
        return wait(stream);
      default:
        return true;
    }
  }

  bool compute(Standing& stream) {
    const int op = stream.cursor.instruction().index;
    const std::int32_t index = index_.spans.take(op, stream.cursor.micro_batch());
    if (index < 0) return lose();
    ++computed_;
    Cause cause = stream.reached;
    const TraceNode before = {Kind::Span, index_.span_before[index]};
    if (before.index >= 0 && stream.reached.node != before) {
      later(cause, {before, Wait::Device, log_.spans[before.index].end}, Wait::Device);
    }
    causes_.spans[index] = cause;
    if (!stream.announced && asks_after_op(stream)) stream.announced = log_.spans[index].start;
    stream.reached = {{Kind::Span, index}, Wait::Nothing, log_.spans[index].end};
    return true;
  }

  /// Whether nothing but ops come before a rendezvous: whoever sends then knows when. A rank of
  /// several streams does not know itself.
  bool asks_after_op(const Standing& stream) const {
    if (program_.ranks[stream.rank].streams > 1) return false;
    for (Cursor cursor = stream.cursor; !cursor.done(); cursor.next()) {
      const Instruction& instruction = cursor.instruction();
      if (instruction.code == Opcode::Receive) {
        const Channel& channel = program_.channels[instruction.index];
        return channel.depth == 0 && !channel.synchronous;
      }
      if (instruction.code == Opcode::Send || instruction.code == Opcode::Wait) return false;
    }
    return false;
  }

  bool send(Standing& stream) {
    stream.announced.reset();
    const int index = stream.cursor.instruction().index;
    const Channel& channel = program_.channels[index];
    Queue& queue = queues_[index];
    if (stream.handed_over) return stand_until_asked(stream, channel, queue);
    if (!channel.synchronous && channel.depth > 0) {
      const std::size_t sent = queue.sent.size(), depth = static_cast<std::size_t>(channel.depth);
      if (sent >= depth && queue.taken.size() <= sent - depth) return false;
      if (sent >= depth) later(stream.reached, queue.taken[sent - depth], Wait::Room);
    }
    if (channel.synchronous) {
      if (queue.asked.size() <= queue.sent.size()) return false;
      later(stream.reached, queue.asked[queue.sent.size()].cause, Wait::Room);
    }
    Cause carried = carry(stream, channel, index);
    if (lost_) return false;
    queue.sent.push_back(carried);
    if (channel.sender_waits) carried.at = log_.transfers[carried.node.index].end;
    const bool stands = channel.sender_waits || (channel.synchronous && channel.wire >= 0);
    if (stands) later(stream.reached, carried, carried.wait);
    stream.handed_over = channel.depth == 0 && !channel.synchronous;
    return !stream.handed_over || stand_until_asked(stream, channel, queue);
  }

  /// Why and when a message arrives that `stream` sends now.
  Cause carry(const Standing& stream, const Channel& channel, int index) {
    const Wait wait = wait_for(channel.cargo);
    if (channel.wire < 0) return {stream.reached.node, wait, stream.reached.at};
    const std::int32_t number = index_.transfers.take(index, stream.cursor.micro_batch());
    if (number < 0) {
      lose();
      return {};
    }
    const Transfer& transfer = log_.transfers[number];
    Cause cause = stream.reached;
    const std::int32_t before = index_.transfer_before[number];
    if (before >= 0 && transfer.start > transfer.sent) {
      cause = {{Kind::Transfer, before}, Wait::Wire, log_.transfers[before].end};
    }
    causes_.transfers[number] = cause;
    return {{Kind::Transfer, number}, wait, transfer.arrival};
  }

  /// Rendezvous: see docs/design.md.
  bool stand_until_asked(Standing& stream, const Channel& channel, const Queue& queue) {
    if (queue.asked.size() < queue.sent.size()) return false;
    const Ask& ask = queue.asked[queue.sent.size() - 1];
    const Seconds release = ask.cause.at - channel.occupancy - channel.latency;
    later(stream.reached, {ask.cause.node, Wait::Room, std::max(ask.known, release)}, Wait::Room);
    stream.handed_over = false;
    return true;
  }

  bool receive(Standing& stream) {
    const int index = stream.cursor.instruction().index;
    Queue& queue = queues_[index];
    if (program_.channels[index].replay >= 0) return lose();
    const std::size_t number = queue.taken.size();
    if (queue.asked.size() == number) {
      queue.asked.push_back({stream.reached, stream.announced.value_or(stream.reached.at)});
      stream.announced.reset();
    }
    if (queue.sent.size() <= number) return false;
    later(stream.reached, queue.sent[number], queue.sent[number].wait);
    queue.taken.push_back(stream.reached);
    return true;
  }

  bool record(Standing& stream) {
    const int index = stream.cursor.instruction().index;
    const int micro_batch = stream.cursor.micro_batch();
    const Event& event = program_.events[index];
    if (event.in_turn) stand_for_lane(stream, collective_of(event, micro_batch, stream.reached.at));
    note_record(index, micro_batch, stream.reached);
    return !lost_;
  }

  /// The stream stands until the collectives before number `number` that had been joined are done.
  void stand_for_lane(Standing& stream, std::int32_t number) {
    const std::int32_t before = number < 0 ? -1 : index_.collective_before[number];
    if (before < 0) return;
    std::int32_t first = before;  // of those that came one right after the other
    while (log_.collectives[first].start > joined(first) && index_.collective_before[first] >= 0) {
      first = index_.collective_before[first];
    }
    if (joined(first) > stream.reached.at) return;
    const Seconds end = log_.collectives[before].end;
    later(stream.reached, {{Kind::Collective, before}, Wait::Exchange, end}, Wait::Exchange);
  }

  void note_record(int index, int micro_batch, const Cause& cause) {
    const Event& event = program_.events[index];
    Generation& generation = events_[index][micro_batch / event.micro_batches];
    if (generation.records++ == 0 || cause.at > generation.last.at) generation.last = cause;
    if (generation.records < event.recorders) return;
    generation.complete = true;
    generation.last.wait = Wait::Sign;
    if (event.collective < 0) return;
    const std::int32_t number = collective_of(event, micro_batch, generation.last.at);
    if (number < 0) return static_cast<void>(lose());
    begun_[number] = true;
    const CollectiveSpan& span = log_.collectives[number];
    const std::int32_t before = index_.collective_before[number];
    Cause& begun = causes_.collectives[number] = generation.last;
    if (before >= 0 && span.start > span.joined) {
      begun = {{Kind::Collective, before}, Wait::Wire, log_.collectives[before].end};
    }
    generation.last = {{Kind::Collective, number}, Wait::Exchange, span.end};
    if (event.next >= 0) note_record(event.next, micro_batch, generation.last);
  }

  Seconds joined(std::int32_t number) const { return log_.collectives[number].joined; }

  /// The first one of `event` that was joined at `at` or later, or -1. One collective may be there
  /// for several events; the micro-batch is that of whoever joined last.
  std::int32_t collective_of(const Event& event, int micro_batch, Seconds at) const {
    const int first = micro_batch / event.micro_batches * event.micro_batches;
    std::int32_t found = -1;
    for (int b = first; b < first + event.micro_batches; ++b) {
      for (const std::int32_t number : index_.collectives.all(event.collective, b)) {
        if (begun_[number] || joined(number) < at * kJust) continue;
        if (found < 0 || joined(number) < joined(found)) found = number;
      }
    }
    return found;
  }

  bool wait(Standing& stream) {
    stream.announced.reset();
    if (stream.cursor.micro_batch() < 0) return true;
    const int index = stream.cursor.instruction().index;
    const Event& event = program_.events[index];
    const int number = stream.cursor.micro_batch() / event.micro_batches;
    const Generation& generation = events_[index][number];
    if (!generation.complete) return false;
    later(stream.reached, generation.last, generation.last.wait);
    return true;
  }

  /// `reached` is replaced if `other` is later.
  static void later(Cause& reached, const Cause& other, Wait wait) {
    if (other.at > reached.at) reached = {other.node, wait, other.at};
  }

  bool lose() { return !(lost_ = true); }

  const Program& program_;
  const TraceLog& log_;
  LogIndex index_;
  std::vector<Standing> streams_;
  std::vector<Queue> queues_;
  std::vector<std::map<int, Generation>> events_;
  std::vector<bool> begun_;  // by collective of the log
  Causes causes_;
  std::size_t computed_ = 0;  // ops that were met
  bool lost_ = false;
};

}  // namespace

std::optional<Causes> find_causes(const Program& program, const TraceLog& log) {
  return Walk(program, log).run();
}

}  // namespace interlock
