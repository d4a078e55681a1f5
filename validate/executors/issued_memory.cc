// Walks what was issued once more, with the clocks of streams.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/issued_memory.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "validate/executors/unroll.h"

namespace interlock {
namespace {

class IssuedStreams {
 public:
  IssuedStreams(const Program& program, const TraceLog& log)
      : program_(program),
        time_(program.streams.size()),
        with_op_(program.streams.size()),
        rank_(program.streams.size()),
        free_(program.ranks.size()),
        queues_(program.channels.size()) {
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      const auto first = rank_.begin() + program.ranks[r].first_stream;
      std::fill(first, first + program.ranks[r].streams, static_cast<int>(r));
    }
    for (const Span& span : log.spans) spans_[{span.op, span.micro_batch}] = span;
    std::vector<Transfer> transfers = log.transfers;
    std::stable_sort(transfers.begin(), transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.start < b.start; });
    for (const Transfer& one : transfers) {
      transfers_[{one.channel, one.micro_batch}].push_back(one);
    }
  }

  std::vector<MemoryChange> walk(const std::vector<Issue>& issued) {
    for (std::size_t i = 0; i < issued.size(); ++i) {
      const auto [stream, instruction] = issued[i];
      switch (instruction.code) {
        case Opcode::Compute:
          compute(stream, instruction);
          break;
        case Opcode::Send:
          send(stream, instruction);
          break;
        case Opcode::Receive:
          receive(stream, instruction);
          break;
        case Opcode::Record: {
          Seconds& event = events_[generation(instruction)];
          event = std::max(event, time(stream));
          break;
        }
        case Opcode::Wait:
          if (instruction.micro_batch >= 0) wait_until(stream, events_[generation(instruction)]);
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
    Seconds sent, arrival;
  };
  struct Queue {
    std::deque<Message> messages;
    std::vector<Seconds> taken;
    std::size_t sent = 0;
  };

  Seconds& time(int stream) { return time_[static_cast<std::size_t>(stream)]; }
  int rank(int stream) const { return rank_[static_cast<std::size_t>(stream)]; }
  Seconds& free(int stream) { return free_[static_cast<std::size_t>(rank(stream))]; }
  void wait_until(int stream, Seconds then) { time(stream) = std::max(time(stream), then); }

  std::pair<int, int> generation(const Instruction& instruction) const {
    const Event& event = program_.events[static_cast<std::size_t>(instruction.index)];
    return {instruction.index, instruction.micro_batch / event.micro_batches};
  }

  /// Whether the rest of the stream until its next op changes memory only: that is done with it.
  bool leads_to_op(const std::vector<Issue>& issued, std::size_t at) const {
    if (program_.ranks[static_cast<std::size_t>(rank(issued[at].stream))].streams == 1)
      return false;
    for (std::size_t i = at + 1; i < issued.size(); ++i) {
      if (issued[i].stream != issued[at].stream) continue;
      const Opcode code = issued[i].instruction.code;
      if (code == Opcode::Compute) return true;
      if (code != Opcode::Allocate && code != Opcode::Free) return false;
    }
    return false;
  }

  /// Where a rank chooses, what stands before an op from an Allocate on is done when it begins.
  void memory(const std::vector<Issue>& issued, std::size_t at) {
    const auto [stream, instruction] = issued[at];
    std::vector<Instruction>& with = with_op_[static_cast<std::size_t>(stream)];
    const bool takes = instruction.code == Opcode::Allocate;
    if (!with.empty() || (takes && leads_to_op(issued, at))) {
      with.push_back(instruction);
    } else {
      change(time(stream), instruction, rank(stream));
    }
  }

  void compute(int stream, const Instruction& instruction) {
    const auto found = spans_.find({instruction.index, instruction.micro_batch});
    if (found == spans_.end()) return;
    wait_until(stream, free(stream));
    std::vector<Instruction>& with = with_op_[static_cast<std::size_t>(stream)];
    for (const Instruction& one : with) change(time(stream), one, rank(stream));
    with.clear();
    time(stream) = free(stream) = found->second.end;
  }

  void send(int stream, const Instruction& instruction) {
    const Channel& channel = program_.channels[static_cast<std::size_t>(instruction.index)];
    Queue& queue = queues_[static_cast<std::size_t>(instruction.index)];
    const auto depth = static_cast<std::size_t>(std::max(0, channel.depth));
    if (!channel.synchronous && depth > 0 && queue.sent >= depth) {
      wait_until(stream, queue.taken[queue.sent - depth]);
    }
    ++queue.sent;
    queue.messages.push_back({stream, instruction.micro_batch, time(stream), time(stream)});
    if (!channel.synchronous) hand_over(instruction.index, queue.messages.back(), time(stream));
  }

  /// Its bytes are the receiver's at once, and the sender's until it has left.
  void hand_over(int index, Message& message, Seconds now) {
    const Channel& channel = program_.channels[static_cast<std::size_t>(index)];
    std::deque<Transfer>& known = transfers_[{index, message.micro_batch}];
    Seconds end = message.arrival = now;
    if (!known.empty()) {
      end = std::max(now, known.front().end);
      message.arrival = std::max(now, known.front().arrival);
      known.pop_front();
    }
    changes_.push_back({now, channel.received.value_or(channel.bytes).value(), channel.to_rank,
                        MemoryClass::Boundary});
    if (channel.from_resident) return;
    if (channel.read_by_head) return let_go(index, message.micro_batch, end);
    give_back(channel, end);
  }

  void give_back(const Channel& channel, Seconds now) {
    changes_.push_back({now, -channel.bytes.value(), channel.from_rank, MemoryClass::Boundary});
  }

  /// Of a message that its transfer and a head of the sender read: the later of them gives it back.
  void let_go(int index, int micro_batch, Seconds now) {
    const auto [other, first] = held_.try_emplace({index, micro_batch}, now);
    if (first) return;
    give_back(program_.channels[static_cast<std::size_t>(index)], std::max(now, other->second));
    held_.erase(other);
  }

  void receive(int stream, const Instruction& instruction) {
    const Channel& channel = program_.channels[static_cast<std::size_t>(instruction.index)];
    Queue& queue = queues_[static_cast<std::size_t>(instruction.index)];
    Message message = queue.messages.front();
    queue.messages.pop_front();
    wait_until(stream, message.sent);
    if (channel.synchronous) hand_over(instruction.index, message, time(stream));
    wait_until(stream, message.arrival);
    queue.taken.push_back(time(stream));
    if (channel.synchronous || channel.depth == 0) wait_until(message.stream, time(stream));
  }

  void change(Seconds now, const Instruction& instruction, int rank) {
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(instruction.index)];
    if (buffer.message >= 0) return let_go(buffer.message, instruction.micro_batch, now);
    const double sign = instruction.code == Opcode::Allocate ? 1 : -1;
    changes_.push_back({now, sign * buffer.bytes.value(), rank, buffer.memory_class});
  }

  const Program& program_;
  std::map<std::pair<int, int>, Span> spans_;  // by op and micro-batch
  /// By channel and micro-batch: one for each loss.
  std::map<std::pair<int, int>, std::deque<Transfer>> transfers_;
  std::vector<Seconds> time_;                      // by stream, as programs know it
  std::vector<std::vector<Instruction>> with_op_;  // by stream: memory that its op begins with
  std::vector<int> rank_;                          // by stream
  std::vector<Seconds> free_;                      // by rank: when its last op ended
  std::vector<Queue> queues_;
  std::map<std::pair<int, int>, Seconds> events_;  // by event and generation: the last record
  std::map<std::pair<int, int>, Seconds> held_;    // by channel and micro-batch: who let go first
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
