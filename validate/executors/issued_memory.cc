// Walks what was issued once more, with the clocks of streams.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/issued_memory.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/engines/message_holds.h"
#include "sim/program/log_index.h"

namespace interlock {
namespace {

class IssuedStreams {
 public:
  IssuedStreams(const Program& program, const TraceLog& log)
      : program_(program),
        log_(log),
        index_(index_log(program, log)),
        rank_(ranks_of_streams(program)),
        time_(program.streams.size()),
        with_op_(program.streams.size()),
        free_(program.ranks.size()) {}

  std::vector<MemoryChange> walk(const std::vector<Issue>& issued) {
    for (std::size_t i = 0; i < issued.size(); ++i) {
      const Issue& issue = issued[i];
      switch (issue.instruction.code) {
        case Opcode::Compute:
          compute(issue);
          break;
        case Opcode::Send:
          send(issue);
          break;
        case Opcode::Receive:
          receive(issue);
          break;
        case Opcode::Record:
          record(issue);
          break;
        case Opcode::Wait:
          if (issue.slot >= 0) wait_until(issue.stream, at(events_, issue.slot));
          break;
        case Opcode::Allocate:
        case Opcode::Free:
          memory(issued, i);
          break;
      }
    }
    return std::move(changes_);
  }

 private:
  struct Message {
    int stream = 0, micro_batch = 0;  // the sender's
    Seconds sent, arrival, taken;
  };

  template <class T>
  static T& at(std::vector<T>& items, int index) {
    const auto place = static_cast<std::size_t>(index);
    if (items.size() <= place) items.resize(place + 1);
    return items[place];
  }
  const Channel& channel_of(int index) const {
    return program_.channels[static_cast<std::size_t>(index)];
  }
  void wait_until(int stream, Seconds then) {
    at(time_, stream) = std::max(at(time_, stream), then);
  }

  /// Returns whether the rest of the stream until its next op changes memory only: that is done
  /// with it.
  bool leads_to_op(const std::vector<Issue>& issued, std::size_t from) {
    const int rank = at(rank_, issued[from].stream);
    if (program_.ranks[static_cast<std::size_t>(rank)].streams == 1) return false;
    for (std::size_t i = from + 1; i < issued.size(); ++i) {
      if (issued[i].stream != issued[from].stream) continue;
      const Opcode code = issued[i].instruction.code;
      if (code == Opcode::Compute) return true;
      if (code != Opcode::Allocate && code != Opcode::Free) return false;
    }
    return false;
  }

  /// Keeps what stands before an op from an Allocate on, where a rank chooses, until the op begins.
  void memory(const std::vector<Issue>& issued, std::size_t place) {
    const Issue& issue = issued[place];
    std::vector<Instruction>& with = at(with_op_, issue.stream);
    const bool takes = issue.instruction.code == Opcode::Allocate;
    if (!with.empty() || (takes && leads_to_op(issued, place))) {
      with.push_back(issue.instruction);
    } else {
      change(issue.stream, issue.instruction);
    }
  }

  void compute(const Issue& issue) {
    const auto [code, op, micro_batch] = issue.instruction;
    const std::int32_t span = index_.spans.take(op, micro_batch);
    if (span < 0) return;
    Seconds& free = at(free_, at(rank_, issue.stream));
    wait_until(issue.stream, free);
    std::vector<Instruction>& with = at(with_op_, issue.stream);
    for (const Instruction& one : with) change(issue.stream, one);
    with.clear();
    at(time_, issue.stream) = free = log_.spans[static_cast<std::size_t>(span)].end;
  }

  /// Makes an event as late as the last stream that records it, and as the end of its collective.
  void record(const Issue& issue) {
    Seconds& event = at(events_, issue.slot);
    event = std::max(event, at(time_, issue.stream));
    const Event& own = program_.events[static_cast<std::size_t>(issue.instruction.index)];
    if (own.collective < 0 || !issue.completes) return;
    const std::int32_t found =
        index_.collectives.find(own, issue.instruction.micro_batch, Seconds(0));
    if (found < 0) return;
    index_.collectives.take(found);
    event = std::max(event, log_.collectives[static_cast<std::size_t>(found)].end);
  }

  void send(const Issue& issue) {
    if (issue.after >= 0) wait_until(issue.stream, at(messages_, issue.after).taken);
    const Seconds now = at(time_, issue.stream);
    Message& message = at(messages_, issue.slot);
    message = {issue.stream, issue.instruction.micro_batch, now, now, {}};
    const int index = issue.instruction.index;
    if (!channel_of(index).synchronous) hand_over(index, message, now);
  }

  /// Gives the bytes of a message to the receiver at once; the sender holds them until it has left.
  void hand_over(int index, Message& message, Seconds now) {
    const Channel& channel = channel_of(index);
    const std::int32_t known = index_.transfers.take(index, message.micro_batch);
    Seconds end = message.arrival = now;
    if (known >= 0) {
      const Transfer& transfer = log_.transfers[static_cast<std::size_t>(known)];
      end = std::max(now, transfer.end);
      message.arrival = std::max(now, transfer.arrival);
    }
    changes_.push_back(
        {now, held_by_receiver(channel).value(), channel.to_rank, MemoryClass::Boundary});
    if (channel.from_resident) return;
    if (channel.read_by_head) return let_go(index, message.micro_batch, end);
    give_back(channel, end);
  }

  void give_back(const Channel& channel, Seconds now) {
    changes_.push_back(
        {now, -held_by_sender(channel).value(), channel.from_rank, MemoryClass::Boundary});
  }

  void let_go(int index, int micro_batch, Seconds now) {
    const auto end = holds_.let_go(index, micro_batch, now);
    if (end) give_back(channel_of(index), *end);
  }

  void receive(const Issue& issue) {
    const int index = issue.instruction.index;
    const Channel& channel = channel_of(index);
    Message& message = at(messages_, issue.slot);
    wait_until(issue.stream, message.sent);
    if (channel.synchronous) hand_over(index, message, at(time_, issue.stream));
    wait_until(issue.stream, message.arrival);
    message.taken = at(time_, issue.stream);
    if (channel.synchronous || channel.depth == 0) wait_until(message.stream, message.taken);
  }

  void change(int stream, const Instruction& instruction) {
    const Seconds now = at(time_, stream);
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(instruction.index)];
    if (buffer.message >= 0) return let_go(buffer.message, instruction.micro_batch, now);
    const double sign = instruction.code == Opcode::Allocate ? 1 : -1;
    changes_.push_back({now, sign * buffer.bytes.value(), at(rank_, stream), buffer.memory_class});
  }

  const Program& program_;
  const TraceLog& log_;
  LogIndex index_;
  std::vector<int> rank_;                          // by stream
  std::vector<Seconds> time_;                      // by stream, as programs know it
  std::vector<std::vector<Instruction>> with_op_;  // by stream: memory that its op begins with
  std::vector<Seconds> free_;                      // by rank: when its last op ended
  std::vector<Message> messages_;                  // by slot
  std::vector<Seconds> events_;                    // by slot of a generation: the last record
  MessageHolds<Seconds> holds_;
  std::vector<MemoryChange> changes_;
};

}  // namespace

std::vector<MemoryChange> memory_of_issued(const Program& program, const std::vector<Issue>& issued,
                                           const TraceLog& log) {
  return IssuedStreams(program, log).walk(issued);
}

void deliver_in_order(const TraceLog& log, const TraceSink& sink) {
  std::vector<std::pair<Seconds, std::function<void()>>> entries;
  if (sink.memory) {
    for (const MemoryChange& change : log.memory) {
      entries.emplace_back(change.time, [&] { sink.memory(change); });
    }
  }
  if (sink.transfer) {
    for (const Transfer& transfer : log.transfers) {
      entries.emplace_back(transfer.sent, [&] { sink.transfer(transfer); });
    }
  }
  if (sink.collective) {
    for (const CollectiveSpan& span : log.collectives) {
      entries.emplace_back(span.joined, [&] { sink.collective(span); });
    }
  }
  if (sink.span) {
    for (const Span& span : log.spans) {
      entries.emplace_back(span.start, [&] { sink.span(span); });
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [time, tell] : entries) tell();
}

}  // namespace interlock
