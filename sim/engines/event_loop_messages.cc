// Messages of an event loop: queues, rendezvous, and the wires they travel on.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/engines/event_loop.h"

namespace interlock {

bool EventLoop::send(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (std::exchange(state.handed_over, false)) {
    const bool stood = queue.synchronous || queue.sender_waits;  // for the transfer
    const bool idled = !ranks_[state.rank].several_streams && now_ > state.stood_from;
    if (stood && (idled || program_.channels[index].in_line)) {
      state.message_sent = state.stood_from;
      state.message_arrival = now_;
    }
    return true;
  }
  if (queue.sender_waits) {
    state.handed_over = true;
    queue.sender = stream;
    transfer(index, state.cursor.micro_batch());
    return false;  // until the message has left
  }
  if (queue.synchronous) {
    queue.sender = stream;
    if (queue.receiver >= 0) meet(index, state.cursor.micro_batch());
    return false;  // until the message has arrived
  }
  if (queue.depth > 0 && queue.untaken >= queue.depth) {
    queue.sender = stream;
    return false;
  }
  transfer(index, state.cursor.micro_batch());
  return queue.depth != 0 || stand_until_asked(stream, state, queue);
}

/// Rendezvous: the message is on its way; its sender stands for as long as the message will have to
/// wait for the receiver, as far as that is known.
bool EventLoop::stand_until_asked(int stream, StreamState& state, ChannelState& queue) {
  state.handed_over = true;
  if (queue.asked < ++queue.sent) {
    queue.sender = stream;
    return false;
  }
  const double release = queue.ask_time - queue.way;
  if (release <= now_) {
    state.handed_over = false;
    return true;
  }
  heap_.push({release, stream, 0});
  return false;
}

/// A stream that starts an unbroken run of ops before a rendezvous Receive knows when it will ask.
void EventLoop::announce_receive(StreamState& state) {
  double end = now_;
  Cursor cursor = state.cursor;
  for (; !cursor.done(); cursor.next()) {
    const Instruction& instruction = cursor.instruction();
    switch (instruction.code) {
      case Opcode::Compute:
        end += times_.op(instruction.index, cursor.micro_batch());
        break;
      case Opcode::Receive:
        if (channels_[instruction.index].depth != 0 || channels_[instruction.index].synchronous) {
          return;
        }
        state.announced = true;
        ask(channels_[instruction.index], end);
        return;
      case Opcode::Wait:
        if (cursor.micro_batch() < 0) break;  // for nothing: the run goes on
        return;
      case Opcode::Send:
        return;
      default:
        break;
    }
  }
}

/// The receiver asks, or announces that it will ask, for the next message at `time`.
void EventLoop::ask(ChannelState& queue, double time) {
  ++queue.asked;
  queue.ask_time = time;
  if (queue.sender < 0 || queue.asked < queue.sent) return;
  const double release = time - queue.way;
  if (release <= now_) {
    wake(queue.sender);
  } else {
    heap_.push({release, std::exchange(queue.sender, -1), 0});
  }
}

bool EventLoop::receive(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.replay >= 0 && queue.was_taken && !has_arrived(queue)) {
    replayers_.push_back(stream);
    return false;
  }
  const bool asks = !state.waited;  // for this message, for the first time
  if (asks) state.waits_since = now_;
  if (asks && queue.depth == 0 && !queue.synchronous && !state.announced) ask(queue, now_);
  state.announced = false;
  if (queue.messages.empty()) {
    state.waited = true;
    queue.receiver = stream;
    if (queue.synchronous && queue.sender >= 0) meet(index, state.cursor.micro_batch());
    return false;
  }
  const Message& message = queue.messages.front();
  if (message.arrival > now_) {
    state.waited = true;
    heap_.push({message.arrival, stream, 0});
    return false;
  }
  if (std::exchange(state.waited, false) && message.arrival > state.waits_since) {
    state.message_sent = message.sent;
    state.message_arrival = message.arrival;
  }
  if (queue.synchronous && program_.channels[index].in_line) state.message_sent = message.sent;
  queue.messages.pop();
  queue.was_taken = true;
  --queue.untaken;
  if (queue.depth > 0 && !queue.synchronous) wake(queue.sender);
  return true;
}

/// Both streams of a synchronous channel stand there.
void EventLoop::meet(int index, int micro_batch) {
  streams_[channels_[index].sender].handed_over = true;
  transfer(index, micro_batch);
}

void EventLoop::transfer(int index, int micro_batch) {
  ChannelState& queue = channels_[index];
  ++queue.untaken;
  if (sink_.memory) memory_.begin_message(index, now_);
  const Pending pending{index, micro_batch, now_};
  if (queue.wire < 0) {
    report(pending, now_, now_, now_);
  } else if (!queue.shared) {
    double& free = wire_free_[queue.wire];
    const double start = std::max(now_, free);
    const auto way = times_.message(index, micro_batch, {queue.occupancy, queue.latency});
    free = start + way.occupancy;
    if (rates_) load_while_sent(index, start, free);
    report(pending, start, free, free + way.latency);
  } else {
    SharedWire& wire = wires_[queue.wire];
    wire.pending.push(pending);
    if (!wire.carrying) carry(queue.wire);
  }
}

/// Starts the front message of a wire that shares links.
void EventLoop::carry(int index) {
  SharedWire& wire = wires_[index];
  wire.carrying = true;
  wire.started = now_;
  const Pending& message = wire.pending.front();
  const Channel& channel = program_.channels[message.channel];
  const double factor = times_.of_message(message.channel, message.micro_batch);
  if (rates_) change_loads(message.channel, true);
  if (channel.flows.empty()) {
    const double alone = channels_[message.channel].occupancy;
    return start_shared(index, channel.bytes * factor, scaled(alone, factor));
  }
  wire.flows_left = static_cast<int>(channel.flows.size());
  for (const WireFlow& flow : channel.flows) {
    start_flow(flow, factor);
  }
}

/// Starts a flow that takes `factor` times as long as its bytes do: with `factor` times the bytes.
void EventLoop::start_flow(const WireFlow& flow, double factor) {
  const Seconds alone = flow.bytes / program_.wires[flow.wire].bandwidth;
  start_shared(flow.wire, flow.bytes * factor, scaled(in_ticks(program_, alone), factor));
}

void EventLoop::end_shared(int index, double time) {
  const int whole = program_.wires[index].part_of;
  SharedWire& wire = wires_[whole < 0 ? index : whole];
  CHECK(wire.carrying, "a transfer ended that was not under way");
  now_ = std::max(now_, time);
  if (const int communicator = program_.wires[index].communicator; communicator >= 0) {
    wire.carrying = false;
    return end_flow(communicator);
  }
  if (whole >= 0 && --wire.flows_left > 0) return;
  const Pending pending = wire.pending.front();
  wire.pending.pop();
  wire.carrying = false;
  const double factor = times_.of_message(pending.channel, pending.micro_batch);
  const double latency = scaled(channels_[pending.channel].latency, factor);
  if (rates_) change_loads(pending.channel, false);
  report(pending, wire.started, now_, now_ + latency);
  if (!wire.pending.empty()) carry(whole < 0 ? index : whole);
}

/// Tells the sink and the waiting stream the times of a message, once they are known.
void EventLoop::report(const Pending& pending, double start, double end, double arrival) {
  if (channels_[pending.channel].wire >= 0) {
    makespan_ = std::max(makespan_, arrival);
    if (sink_.transfer) {
      sink_.transfer({in_seconds(program_, pending.sent), in_seconds(program_, start),
                      in_seconds(program_, end), in_seconds(program_, arrival), pending.channel,
                      pending.micro_batch});
    }
  }
  if (sink_.memory) memory_.end_message(pending.channel, pending.micro_batch, end);
  ChannelState& queue = channels_[pending.channel];
  // A sender that waits stands from its Send on, a synchronous one from the transfer's start.
  if (queue.sender >= 0 && (queue.synchronous || queue.sender_waits)) {
    streams_[queue.sender].stood_from = queue.synchronous ? start : pending.sent;
  }
  if (queue.sender_waits) wake_at(queue.sender, end);
  deliver(pending.channel, {pending.sent, arrival});
}

void EventLoop::wake_at(int& stream, double time) {
  if (stream < 0) return;
  if (time > now_) {
    heap_.push({time, std::exchange(stream, -1), 0});
  } else {
    wake(stream);
  }
}

void EventLoop::deliver(int index, const Message& message) {
  ChannelState& queue = channels_[index];
  queue.messages.push(message);
  wake_at(queue.receiver, message.arrival);
  if (queue.synchronous) wake_at(queue.sender, message.arrival);
}

}  // namespace interlock
