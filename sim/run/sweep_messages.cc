// The sweep: queues, rendezvous and wires.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/run/sweep.h"

namespace interlock {

bool Sweep::send(int stream, StreamState& state) {
  state.run_start = kNever;
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.synchronous) return meet_receiver(stream, state);
  if (queue.sender_stands) return stand_until_asked(stream, state, queue);
  double at = state.time;
  if (queue.depth > 0 && queue.room == 0) {
    if (queue.taken.empty()) {
      queue.sender = stream;
      return false;
    }
    at = std::max(at, queue.taken.front());
  }
  if (!wire_is_free_for(stream, index)) return false;
  if (queue.depth > 0) {
    queue.room > 0 ? --queue.room : (queue.taken.pop(), 0);
  }
  state.time = at;
  queue.messages.push(transfer(index, at, state.cursor.micro_batch()));
  // Who watches memory must keep what it is told until all neighbours have come as far.
  steps_back_ = sink_.memory && queue.depth != 0;
  wake(queue.receiver);
  if (queue.sender_waits) stand_until_left(state, queue.wire);
  return queue.depth != 0 || stand_until_asked(stream, state, queue);
}

/// The message that was sent last over `wire` keeps its sender until it has left.
void Sweep::stand_until_left(StreamState& state, int wire) {
  const double left = wire_free_[wire];
  if (left > state.time && !ranks_[state.rank].several_streams) {
    state.message_sent = state.time;
    state.message_arrival = left;
  }
  state.time = std::max(state.time, left);
}

/// Rendezvous: the message is on its way; its sender stands for as long as the message will have to
/// wait for the receiver, as far as that is known.
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

bool Sweep::receive(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.synchronous) return meet_sender(stream, state);
  if (queue.messages.empty()) {
    queue.receiver = stream;
    return false;
  }
  if (queue.replay >= 0 && std::exchange(queue.was_taken, true)) replay(state, queue);
  const double release = release_time(state, queue);
  take(state, queue.messages.front());
  queue.messages.pop();
  if (queue.depth >= 0) {
    queue.taken.push(queue.depth == 0 ? release : state.time);
    wake(queue.sender);
  }
  state.run_start = kNever;
  return true;
}

/// Whole turns on old inputs until the message has arrived.
void Sweep::replay(StreamState& state, const ChannelState& queue) {
  const double turn = times_.op(queue.replay, state.cursor.micro_batch());
  while (queue.messages.front().arrival > state.time) {
    run_op(state, queue.replay, state.time, state.time + turn);
  }
  makespan_ = std::max(makespan_, state.time);
}

/// When a rendezvous lets its sender go: a message's way before the receiver asks, but not before
/// the receiver knew when that would be, which is when it began its last unbroken run of ops.
double Sweep::release_time(const StreamState& state, const ChannelState& queue) const {
  if (state.run_start == kNever || ranks_[state.rank].several_streams) return state.time;
  return std::max(state.run_start, state.time - queue.occupancy - queue.latency);
}

/// Synchronous, from the sender: it offers its message and stands until the receiver has it.
bool Sweep::meet_receiver(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (!queue.taken.empty()) {
    state.time = queue.taken.front();
    queue.taken.pop();
    if (!ranks_[state.rank].several_streams) {  // it stood for the transfer
      const auto way =
          times_.message(index, state.cursor.micro_batch(), {queue.occupancy, queue.latency});
      state.message_sent = state.time - way.occupancy - way.latency;
      state.message_arrival = state.time;
    }
    return true;
  }
  queue.sender = stream;
  queue.messages.push({state.time, 0});
  wake(queue.receiver);
  return false;
}

bool Sweep::meet_sender(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.messages.empty()) {
    queue.receiver = stream;
    return false;
  }
  if (!wire_is_free_for(stream, index)) return false;
  const double met = std::max(state.time, queue.messages.front().sent);
  const Message message = transfer(index, met, state.cursor.micro_batch());
  queue.messages.pop();
  take(state, message);
  queue.taken.push(message.arrival);
  wake(queue.sender);
  return true;
}

/// In a frozen program, messages of a wire keep the order that was realised.
bool Sweep::wire_is_free_for(int stream, int channel) {
  const int wire = channels_[channel].wire;
  if (wire < 0 || program_.wire_order.empty()) return true;
  const auto& order = program_.wire_order[wire];
  Turns& turns = wire_turns_[wire];
  CHECK(turns.next < order.size(), "a frozen wire order that is too short");
  if (order[turns.next] == channel) return true;
  turns.waiting.push_back(stream);
  return false;
}

void Sweep::wire_was_used(int wire) {
  if (program_.wire_order.empty()) return;
  ++wire_turns_[wire].next;
  wake_all(wire_turns_[wire].waiting);
}

Sweep::Message Sweep::transfer(int index, double at, int micro_batch) {
  const ChannelState& queue = channels_[index];
  double end = at, arrival = at;
  if (queue.wire >= 0) {
    const double start = std::max(at, wire_free_[queue.wire]);
    const auto way = times_.message(index, micro_batch, {queue.occupancy, queue.latency});
    end = wire_free_[queue.wire] = start + way.occupancy;
    arrival = end + way.latency;
    makespan_ = std::max(makespan_, arrival);
    wire_was_used(queue.wire);
    if (sink_.transfer) {
      sink_.transfer({in_seconds(program_, at), in_seconds(program_, start),
                      in_seconds(program_, end), in_seconds(program_, arrival), index,
                      micro_batch});
    }
  }
  if (sink_.memory) {
    const Channel& channel = program_.channels[index];
    change_memory(at, channel.to_rank, MemoryClass::Boundary,
                  channel.received.value_or(channel.bytes).value());
    if (channel.read_by_head) {
      let_go(index, micro_batch, end);
    } else if (!channel.from_resident) {
      change_memory(end, channel.from_rank, MemoryClass::Boundary, -channel.bytes.value());
    }
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
