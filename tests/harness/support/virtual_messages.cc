// Logical clocks: messages, from their sender over a wire to their receiver.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "tests/harness/support/virtual_clocks.h"

namespace interlock {

bool VirtualClocks::send(Stream& stream) {
  const auto [code, index, micro_batch] = stream.instruction();
  const Channel& channel = program_.channels[index];
  Queue& queue = queues_[index];
  if (channel.synchronous) return send_synchronously(stream, queue);
  if (channel.depth > 0) {
    const int untaken = static_cast<int>(queue.messages.size() - queue.taken);
    if (untaken >= channel.depth) return false;
  }
  if (!stream.handed_over) hand_over(index, micro_batch);
  if (channel.sender_waits) return has_left(stream, queue);
  if (channel.depth != 0) return true;
  // Rendezvous: it stands for as long as its message would wait, as far as that is known.
  const std::size_t message = queue.messages.size() - 1;
  const Ticks way = queue.occupancy + queue.latency;
  stream.handed_over = queue.asks.size() <= message || queue.asks[message] - way > now_;
  return !stream.handed_over;
}

/// The sender stands until its message has left.
bool VirtualClocks::has_left(Stream& stream, const Queue& queue) {
  const Message& message = queue.messages.back();
  const Ticks left = message.arrival - queue.latency;
  const bool in_line = program_.channels[stream.instruction().index].in_line;
  stream.handed_over = !message.timed || left > now_;
  if (stream.handed_over) {
    if (message.timed) expect(left);
  } else if (in_line || !devices_[stream.unrolled.rank].several) {  // which idled meanwhile
    stream.message_sent = message.sent;
    stream.message_arrival = left;
  }
  return !stream.handed_over;
}

/// Both streams are needed from the start of the transfer to its arrival.
bool VirtualClocks::send_synchronously(Stream& stream, Queue& queue) {
  const auto [code, index, micro_batch] = stream.instruction();
  if (!stream.handed_over) queue.offered = micro_batch;
  stream.handed_over = true;
  meet(index);
  if (queue.offered) return false;
  const Message& message = queue.messages.back();
  if (!message.timed || message.arrival > now_) return false;
  stream.handed_over = false;
  const bool in_line = program_.channels[index].in_line;
  if (in_line || !devices_[stream.unrolled.rank].several) {  // which idled meanwhile
    stream.message_sent = message.start;
    stream.message_arrival = message.arrival;
  }
  return true;
}

bool VirtualClocks::receive(Stream& stream) {
  const int index = stream.instruction().index;
  const Channel& channel = program_.channels[index];
  Queue& queue = queues_[index];
  if (channel.synchronous && queue.messages.size() == queue.taken) {
    queue.wanted = true;
    meet(index);
  } else if (!channel.synchronous && channel.depth == 0 && stream.asked != stream.at) {
    stream.asked = stream.at;
    ask(queue, now_);
  }
  if (!has_arrived(queue)) return false;
  const Message& message = queue.messages[queue.taken++];
  if (message.arrival > stream.since || (channel.synchronous && channel.in_line)) {
    stream.message_sent = message.sent;
    stream.message_arrival = message.arrival;
  }
  return true;
}

void VirtualClocks::meet(int index) {
  Queue& queue = queues_[index];
  if (!queue.offered || !queue.wanted) return;
  hand_over(index, *queue.offered);
  queue.offered.reset();
  queue.wanted = false;
}

/// Rendezvous: a stream that begins an op knows when it will come to a Receive if nothing but ops
/// lies before that.
void VirtualClocks::announce(Stream& stream) {
  const std::vector<Instruction>& code = stream.unrolled.code;
  Ticks time = now_;
  for (std::size_t at = stream.at; at < code.size(); ++at) {
    const Instruction& instruction = code[at];
    if (instruction.code == Opcode::Compute) {
      time += in_ticks(program_.ops[instruction.index].duration);
    }
    if (instruction.code == Opcode::Send) return;
    if (instruction.code == Opcode::Wait && instruction.micro_batch >= 0) return;
    if (instruction.code != Opcode::Receive) continue;
    const Channel& channel = program_.channels[instruction.index];
    if (channel.depth != 0 || channel.synchronous || stream.asked == at) return;
    stream.asked = at;
    return ask(queues_[instruction.index], time);
  }
}

void VirtualClocks::ask(Queue& queue, Ticks time) {
  queue.asks.push_back(time);
  changed_ = true;
  expect(time - queue.occupancy - queue.latency);
}

/// The message is sent. Its bytes are the receiver's from now on.
void VirtualClocks::hand_over(int index, int micro_batch) {
  const Channel& channel = program_.channels[index];
  Queue& queue = queues_[index];
  queue.messages.push_back({.micro_batch = micro_batch, .sent = now_});
  changed_ = true;
  change_memory(now_, channel.to_rank, MemoryClass::Boundary, held_by_receiver(channel).value());
  if (channel.wire < 0) return give_times(index, queue.messages.back(), now_);
  ways_[channel.wire].pending.push_back(index);
  carry(channel.wire);
}

/// First in, first out; or, in a frozen program, in the order that it says, whenever they are sent.
void VirtualClocks::carry(int wire) {
  Way& way = ways_[wire];
  while (!way.pending.empty()) {
    auto next = way.pending.begin();
    if (!program_.wire_order.empty()) {
      CHECK(way.turn < program_.wire_order[wire].size(), "an order of all messages of the wire");
      next = std::find(next, way.pending.end(), program_.wire_order[wire][way.turn]);
      if (next == way.pending.end()) return;
    }
    const int channel = *next;
    way.pending.erase(next);
    ++way.turn;
    std::vector<Message>& messages = queues_[channel].messages;
    const auto message =
        std::find_if(messages.begin() + static_cast<std::ptrdiff_t>(queues_[channel].taken),
                     messages.end(), [](const Message& one) { return !one.timed; });
    CHECK(message != messages.end(), "a message for each that waits");
    const Ticks start = std::max(message->sent, way.free);
    way.free = start + queues_[channel].occupancy;
    give_times(channel, *message, start);
  }
}

void VirtualClocks::give_times(int index, Message& message, Ticks start) {
  const Channel& channel = program_.channels[index];
  const bool travels = channel.wire >= 0;
  const Ticks end = travels ? start + queues_[index].occupancy : start;
  message.timed = true;
  message.start = start;
  message.arrival = travels ? end + queues_[index].latency : end;
  expect(message.arrival);
  if (channel.read_by_head) {
    read_half(index, message.micro_batch, end);
  } else if (!channel.from_resident) {
    change_memory(end, channel.from_rank, MemoryClass::Boundary, -held_by_sender(channel).value());
  }
  if (!travels) return;
  makespan_ = std::max(makespan_, message.arrival);
  if (!sink_.transfer) return;
  sink_.transfer({in_seconds(message.sent), in_seconds(start), in_seconds(end),
                  in_seconds(message.arrival), index, message.micro_batch});
}

bool VirtualClocks::has_arrived(const Queue& queue) const {
  if (queue.taken == queue.messages.size()) return false;
  const Message& next = queue.messages[queue.taken];
  return next.timed && next.arrival <= now_;
}

}  // namespace interlock
