// The sweep: queues, rendezvous and wires.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/run/sweep.h"

namespace interlock {

bool Sweep::send(int stream, StreamState& state, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  const Channel& channel = program_.channels[index];
  ChannelState& queue = channels_[index];
  if (channel.synchronous) return meet_receiver(stream, state, cursor);
  if (queue.sender_stands) return stand_until_asked(stream, state, queue);
  double at = state.time;
  if (channel.depth > 0 && queue.room == 0) {
    if (queue.taken.empty()) {
      queue.sender = stream;
      return false;
    }
    at = std::max(at, queue.taken.front());
  }
  if (!wire_is_free_for(stream, index)) return false;
  if (channel.depth > 0) {
    queue.room > 0 ? --queue.room : (queue.taken.pop(), 0);
  }
  state.time = at;
  queue.messages.push(transfer(index, at, cursor.micro_batch()));
  wake(queue.receiver);
  return channel.depth != 0 || stand_until_asked(stream, state, queue);
}

/// Rendezvous: the message is on its way, but its sender stands until the receiver asks for it.
bool Sweep::stand_until_asked(int stream, StreamState& state, ChannelState& queue) {
  queue.sender_stands = queue.taken.empty();
  if (queue.sender_stands) {
    queue.sender = stream;
    return false;
  }
  state.time = std::max(state.time, queue.taken.front());
  queue.taken.pop();
  return true;
}

bool Sweep::receive(int stream, StreamState& state, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  const Channel& channel = program_.channels[index];
  ChannelState& queue = channels_[index];
  if (channel.synchronous) return meet_sender(stream, state, cursor);
  if (queue.messages.empty()) {
    queue.receiver = stream;
    return false;
  }
  const double asked = state.time;
  take(state, queue.messages.front());
  queue.messages.pop();
  if (channel.depth >= 0) {
    queue.taken.push(channel.depth == 0 ? asked : state.time);
    wake(queue.sender);
  }
  return true;
}

/// Synchronous, from the sender: it offers its message and stands until the receiver has it.
bool Sweep::meet_receiver(int stream, StreamState& state, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (!queue.taken.empty()) {
    state.time = queue.taken.front();
    queue.taken.pop();
    return true;
  }
  queue.sender = stream;
  queue.messages.push({state.time, 0});
  wake(queue.receiver);
  return false;
}

bool Sweep::meet_sender(int stream, StreamState& state, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.messages.empty()) {
    queue.receiver = stream;
    return false;
  }
  if (!wire_is_free_for(stream, index)) return false;
  const double met = std::max(state.time, queue.messages.front().sent);
  const Message message = transfer(index, met, cursor.micro_batch());
  queue.messages.pop();
  take(state, message);
  queue.taken.push(message.arrival);
  wake(queue.sender);
  return true;
}

/// In a frozen program, messages of a wire keep the order that was realised.
bool Sweep::wire_is_free_for(int stream, int channel) {
  const int wire = program_.channels[channel].wire;
  if (wire < 0 || program_.wire_order.empty() || program_.wire_order[wire].empty()) return true;
  WireState& state = wires_[wire];
  CHECK(state.turn < program_.wire_order[wire].size(), "a frozen wire order that is too short");
  if (program_.wire_order[wire][state.turn] == channel) return true;
  set_aside(state.waiting, stream);
  return false;
}

Sweep::Message Sweep::transfer(int index, double at, int micro_batch) {
  const Channel& channel = program_.channels[index];
  double end = at, arrival = at;
  if (channel.wire >= 0) {
    WireState& wire = wires_[channel.wire];
    const double start = std::max(at, wire.free);
    end = wire.free = start + channel.occupancy.value();
    arrival = end + channel.latency.value();
    makespan_ = std::max(makespan_, arrival);
    ++wire.turn;
    if (!wire.waiting.empty()) wake_all(wire.waiting);
    if (sink_.transfer) {
      sink_.transfer(
          {Seconds(at), Seconds(start), Seconds(end), Seconds(arrival), index, micro_batch});
    }
  }
  if (sink_.memory && channel.bytes > Bytes(0)) {
    change_memory(at, channel.to_rank, MemoryClass::Boundary, channel.bytes.value());
    change_memory(end, channel.from_rank, MemoryClass::Boundary, -channel.bytes.value());
  }
  return {at, arrival};
}

void Sweep::take(StreamState& state, const Message& message) {
  if (message.arrival <= state.time) return;
  state.time = message.arrival;
  state.message_sent = message.sent;
  state.message_arrival = message.arrival;
}

}  // namespace interlock
