// Carries causes along the issues of a program, beside the log of its run.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/causes.h"

#include <algorithm>
#include <utility>

#include "sim/program/issue_order.h"
#include "sim/program/log_index.h"

namespace interlock {
namespace {

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
        ranks_(ranks_of_streams(program)),
        streams_(program.streams.size()) {
    causes_.spans.resize(log.spans.size());
    causes_.transfers.resize(log.transfers.size());
    causes_.collectives.resize(log.collectives.size());
  }

  std::optional<Causes> run() {
    visit_issues(program_, code_without_memory(program_),
                 [&](const Issue& issue, const Cursor& cursor) {
                   step(issue, cursor);
                   return !lost_;
                 });
    if (lost_ || computed_ != log_.spans.size()) return std::nullopt;
    return std::move(causes_);
  }

 private:
  struct Standing {
    Cause reached;                          // why it is where it is
    std::optional<Seconds> announced = {};  // when it was known that it would ask for a message
  };
  struct Message {
    int sender = 0, micro_batch = 0;  // its stream; as the sender counts
    Cause sent, taken;                // why, and when it arrived
  };

  void step(const Issue& issue, const Cursor& cursor) {
    Standing& stream = streams_[issue.stream];
    switch (issue.instruction.code) {
      case Opcode::Compute:
        return compute(stream, issue, cursor);
      case Opcode::Send:
        return send(stream, issue);
      case Opcode::Receive:
        return receive(stream, issue);
      case Opcode::Record:
        return record(stream, issue);
      case Opcode::Wait:
        stream.announced.reset();
        if (issue.slot >= 0) wait(stream, issue);
        return;
      default:
        return;
    }
  }

  void wait(Standing& stream, const Issue& issue) {
    const int message = program_.events[issue.instruction.index].message;
    const Cause& generation = at(generations_, issue.slot);
    later(stream.reached, generation,
          message < 0 ? generation.wait : wait_for(program_.channels[message].cargo));
  }

  void compute(Standing& stream, const Issue& issue, const Cursor& cursor) {
    const auto [code, op, micro_batch] = issue.instruction;
    const std::int32_t index = index_.spans.take(op, micro_batch);
    if (index < 0) return lose();
    ++computed_;
    Cause cause = stream.reached;
    const TraceNode before = {Kind::Span, index_.span_before[index]};
    if (before.index >= 0 && stream.reached.node != before) {
      later(cause, {before, Wait::Device, log_.spans[before.index].end});
    }
    causes_.spans[index] = cause;
    // A rank of several streams does not know itself.
    const bool knows = program_.ranks[ranks_[issue.stream]].streams == 1;
    if (knows && !stream.announced && asks_after_op(cursor)) {
      stream.announced = log_.spans[index].start;
    }
    stream.reached = {{Kind::Span, index}, Wait::Nothing, log_.spans[index].end};
  }

  /// Returns whether nothing but ops come before a rendezvous: its sender then knows when.
  bool asks_after_op(Cursor cursor) const {
    for (; !cursor.done(); cursor.next()) {
      const Instruction& instruction = cursor.instruction();
      if (instruction.code == Opcode::Receive) {
        return is_rendezvous(program_.channels[instruction.index]);
      }
      if (instruction.code == Opcode::Send || instruction.code == Opcode::Wait) return false;
    }
    return false;
  }

  static bool is_rendezvous(const Channel& channel) {
    return channel.depth == 0 && !channel.synchronous;
  }

  void send(Standing& stream, const Issue& issue) {
    stream.announced.reset();
    const Channel& channel = program_.channels[issue.instruction.index];
    if (issue.after >= 0) later(stream.reached, messages_[issue.after].taken, Wait::Room);
    at(messages_, issue.slot) = {issue.stream, issue.instruction.micro_batch, {}, {}};
    if (!channel.synchronous) carry(issue.instruction.index, messages_[issue.slot]);
  }

  /// Notes why and when `message` arrives that its sender hands over now.
  void carry(int index, Message& message) {
    const Channel& channel = program_.channels[index];
    Cause& sender = streams_[message.sender].reached;
    const Wait wait = wait_for(channel.cargo);
    message.sent = {sender.node, wait, sender.at};
    if (channel.wire < 0) return;
    const std::int32_t number = index_.transfers.take(index, message.micro_batch);
    if (number < 0) return lose();
    const Transfer& transfer = log_.transfers[number];
    Cause& cause = causes_.transfers[number] = sender;
    const std::int32_t before = index_.transfer_before[number];
    if (before >= 0 && transfer.start > transfer.sent) {
      cause = {{Kind::Transfer, before}, Wait::Wire, log_.transfers[before].end};
    }
    message.sent = {{Kind::Transfer, number}, wait, transfer.arrival};
    if (channel.sender_waits) {
      later(sender, {message.sent.node, wait, transfer.end});
    } else if (channel.synchronous) {
      later(sender, message.sent);
    }
  }

  void receive(Standing& stream, const Issue& issue) {
    const int index = issue.instruction.index;
    const Channel& channel = program_.channels[index];
    if (channel.replay >= 0) return lose();
    Message& message = messages_[issue.slot];
    const Cause asked = stream.reached;
    const Seconds known = stream.announced.value_or(asked.at);
    stream.announced.reset();
    Cause& sender = streams_[message.sender].reached;
    if (channel.synchronous) {
      later(sender, asked, Wait::Room);
      carry(index, message);
    } else if (is_rendezvous(channel)) {  // see docs/design.md
      const Seconds release = asked.at - occupancy_alone(program_, channel) - channel.latency;
      later(sender, {asked.node, Wait::Room, std::max(known, release)});
    }
    later(stream.reached, message.sent);
    message.taken = stream.reached;
  }

  void record(Standing& stream, const Issue& issue) {
    const auto [code, index, micro_batch] = issue.instruction;
    const Event& event = program_.events[index];
    if (event.in_turn && issue.after < 0) {
      stand_for_communicator(stream,
                             index_.collectives.find(event, micro_batch, stream.reached.at));
    }
    const Cause cause = issue.after < 0 ? stream.reached : generations_[issue.after];
    Cause& generation = at(generations_, issue.slot);
    if (generation.wait == Wait::Nothing) {
      generation = cause;
      generation.wait = Wait::Sign;
    }
    later(generation, cause, Wait::Sign);
    if (issue.completes && event.collective >= 0) join(event, micro_batch, generation);
  }

  /// Makes the stream stand until the collectives before number `number` that were joined are done.
  void stand_for_communicator(Standing& stream, std::int32_t number) {
    const std::int32_t before = number < 0 ? -1 : index_.collective_before[number];
    if (before < 0) return;
    std::int32_t first = before;  // of those that came one right after the other
    while (log_.collectives[first].start > joined(first) && index_.collective_before[first] >= 0) {
      first = index_.collective_before[first];
    }
    if (joined(first) > stream.reached.at) return;
    later(stream.reached, end_of_collective(before));
  }

  /// Notes why the collective began that all have joined now. `generation` is its end from then on.
  void join(const Event& event, int micro_batch, Cause& generation) {
    const std::int32_t number = index_.collectives.find(event, micro_batch, generation.at);
    if (number < 0) return lose();
    index_.collectives.take(number);
    const std::int32_t before = index_.collective_before[number];
    causes_.collectives[number] = generation;
    if (before >= 0 && log_.collectives[number].start > joined(number)) {
      causes_.collectives[number] = end_of_collective(before);
      causes_.collectives[number].wait = Wait::Wire;
    }
    generation = end_of_collective(number);
  }

  Seconds joined(std::int32_t number) const { return log_.collectives[number].joined; }
  Cause end_of_collective(std::int32_t number) const {
    return {{Kind::Collective, number}, Wait::Exchange, log_.collectives[number].end};
  }

  /// Replaces `reached` if `other` is later.
  static void later(Cause& reached, const Cause& other) { later(reached, other, other.wait); }
  static void later(Cause& reached, const Cause& other, Wait wait) {
    if (other.at > reached.at) reached = {other.node, wait, other.at};
  }

  template <class T>
  static T& at(std::vector<T>& slots, std::int32_t slot) {
    if (slots.size() <= static_cast<std::size_t>(slot)) slots.resize(slot + 1);
    return slots[slot];
  }

  void lose() { lost_ = true; }

  const Program& program_;
  const TraceLog& log_;
  LogIndex index_;
  std::vector<int> ranks_;  // by stream
  std::vector<Standing> streams_;
  std::vector<Message> messages_;  // by slot
  std::vector<Cause> generations_;
  Causes causes_;
  std::size_t computed_ = 0;  // ops that were met
  bool lost_ = false;
};

}  // namespace

std::optional<Causes> find_causes(const Program& program, const TraceLog& log) {
  return Walk(program, log).run();
}

}  // namespace interlock
