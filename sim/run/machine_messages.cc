// Messages of a machine: queues, rendezvous, and the wires they travel on.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/run/machine.h"

namespace interlock {

bool Machine::send(int stream, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  const Channel& channel = program_.channels[index];
  ChannelState& queue = channels_[index];
  if (std::exchange(streams_[stream].handed_over, false)) return true;
  if (channel.synchronous) {
    queue.sender = stream;
    if (queue.receiver >= 0) meet(index, cursor.micro_batch());
    return false;  // until the message has arrived
  }
  if (channel.depth > 0 && queue.untaken >= channel.depth) {
    queue.sender = stream;
    return false;
  }
  const bool asked_for = queue.receiver >= 0 && queue.untaken == 0;
  transfer(index, cursor.micro_batch());
  if (channel.depth != 0 || asked_for) return true;
  queue.sender = stream;  // until the receiver asks for it
  streams_[stream].handed_over = true;
  return false;
}

bool Machine::receive(int stream, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  const Channel& channel = program_.channels[index];
  ChannelState& queue = channels_[index];
  StreamState& state = streams_[stream];
  const bool asks = !state.waited;  // for this message, for the first time
  if (asks && channel.depth == 0 && !channel.synchronous) wake(queue.sender);
  if (queue.messages.empty()) {
    state.waited = true;
    queue.receiver = stream;
    if (channel.synchronous && queue.sender >= 0) meet(index, cursor.micro_batch());
    return false;
  }
  const Message& message = queue.messages.front();
  if (message.arrival > now_) {
    state.waited = true;
    heap_.push({message.arrival, stream, 0});
    return false;
  }
  if (std::exchange(state.waited, false)) {
    state.message_sent = message.sent;
    state.message_arrival = message.arrival;
  }
  queue.messages.pop();
  --queue.untaken;
  if (channel.depth > 0 && !channel.synchronous) wake(queue.sender);
  return true;
}

/// Both streams of a synchronous channel stand there.
void Machine::meet(int index, int micro_batch) {
  streams_[channels_[index].sender].handed_over = true;
  transfer(index, micro_batch);
}

void Machine::transfer(int index, int micro_batch) {
  const Channel& channel = program_.channels[index];
  ++channels_[index].untaken;
  if (sink_.memory && channel.bytes > Bytes(0)) {
    change_memory(now_, channel.to_rank, MemoryClass::Boundary, channel.bytes.value());
  }
  const Pending pending{index, micro_batch, now_};
  if (channel.wire < 0) {
    report(pending, now_, now_, now_);
    return;
  }
  WireState& wire = wires_[channel.wire];
  if (!program_.wires[channel.wire].shared) {
    const double start = std::max(now_, wire.free);
    wire.free = start + channel.occupancy.value();
    report(pending, start, wire.free, wire.free + channel.latency.value());
    return;
  }
  wire.pending.push(pending);
  if (!wire.carrying) carry(channel.wire);
}

/// Starts the front message of a wire that shares links.
void Machine::carry(int index) {
  WireState& wire = wires_[index];
  wire.carrying = true;
  wire.started = now_;
  start_shared(index, program_.channels[wire.pending.front().channel]);
}

void Machine::end_shared(int index, double time) {
  WireState& wire = wires_[index];
  CHECK(wire.carrying, "a transfer ended that was not under way");
  now_ = std::max(now_, time);
  const Pending pending = wire.pending.front();
  wire.pending.pop();
  wire.carrying = false;
  report(pending, wire.started, now_, now_ + program_.channels[pending.channel].latency.value());
  if (!wire.pending.empty()) carry(index);
}

/// The times of a message are known: tells the sink, and whoever waits for it.
void Machine::report(const Pending& pending, double start, double end, double arrival) {
  const Channel& channel = program_.channels[pending.channel];
  if (channel.wire >= 0) {
    makespan_ = std::max(makespan_, arrival);
    if (sink_.transfer) {
      sink_.transfer({Seconds(pending.sent), Seconds(start), Seconds(end), Seconds(arrival),
                      pending.channel, pending.micro_batch});
    }
  }
  if (channel.bytes > Bytes(0)) {
    change_memory(end, channel.from_rank, MemoryClass::Boundary, -channel.bytes.value());
  }
  deliver(pending.channel, {pending.sent, arrival});
}

void Machine::deliver(int index, const Message& message) {
  ChannelState& queue = channels_[index];
  queue.messages.push(message);
  auto wake_at_arrival = [&](int& stream) {
    if (stream < 0) return;
    if (message.arrival > now_) {
      heap_.push({message.arrival, std::exchange(stream, -1), 0});
    } else {
      wake(stream);
    }
  };
  wake_at_arrival(queue.receiver);
  if (program_.channels[index].synchronous) wake_at_arrival(queue.sender);
}

}  // namespace interlock
