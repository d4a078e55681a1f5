// Threads: messages and events.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "validate/executors/thread_run.h"

namespace interlock {
namespace {

Seconds in_seconds(std::int64_t nanoseconds) {
  return Seconds(1e-9 * static_cast<double>(nanoseconds));
}

}  // namespace

bool ThreadedProgram::send(Stream& stream, Lock& lock) {
  const auto [code, index, micro_batch] = stream.instruction();
  const Channel& channel = program_.channels[index];
  Queue& queue = queues_[index];
  const bool stands = channel.synchronous || channel.depth == 0;
  if (stream.handed_over) {  // until it is taken
    if (queue.taken.size() < queue.sent) return false;
    stream.handed_over = false;
    stream.time = std::max(stream.time, queue.taken.back());
    return true;
  }
  if (!stands && channel.depth > 0) {
    const std::size_t depth = static_cast<std::size_t>(channel.depth);
    if (queue.sent - queue.taken.size() >= depth) return false;
    if (queue.sent >= depth) {
      stream.time = std::max(stream.time, queue.taken[queue.sent - depth]);
    }
  }
  Message message{.micro_batch = micro_batch};
  lock.unlock();
  message.left = now();
  if (workload_.send) workload_.send(index, micro_batch);
  message.landed = now();
  lock.lock();
  message.sent = stream.time;
  if (!channel.synchronous) give_times(index, message, stream.time);
  queue.messages.push_back(message);
  ++queue.sent;
  stream.handed_over = stands;
  poke(channel.to_rank);
  return !stands;
}

/// What the message does from the instant on at which it is on its way.
void ThreadedProgram::give_times(int index, Message& message, Time sent) {
  const Channel& channel = program_.channels[index];
  const Queue& queue = queues_[index];
  Time end = sent;
  message.timed = true;
  message.sent = message.arrival = sent;
  if (channel.wire >= 0 && options_.emulate_links) {
    message.left = std::max(sent, wire_free_[channel.wire]);
    end = wire_free_[channel.wire] = message.left + queue.occupancy;
    message.landed = message.arrival = end + queue.latency;
    log_.transfers.push_back({in_seconds(sent), in_seconds(message.left), in_seconds(end),
                              in_seconds(message.arrival), index, message.micro_batch});
  } else if (channel.wire >= 0) {
    const Seconds left = in_seconds(message.left), landed = in_seconds(message.landed);
    log_.transfers.push_back({left, left, landed, landed, index, message.micro_batch});
  }
  log_.memory.push_back({in_seconds(sent), channel.received.value_or(channel.bytes).value(),
                         channel.to_rank, MemoryClass::Boundary});
  if (channel.from_resident) return;
  if (channel.read_by_head) return let_go(index, message.micro_batch, end);
  log_.memory.push_back(
      {in_seconds(end), -channel.bytes.value(), channel.from_rank, MemoryClass::Boundary});
}

/// Of a message that its transfer and a head read.
void ThreadedProgram::let_go(int index, int micro_batch, Time time) {
  const auto end = holds_.let_go(index, micro_batch, time);
  if (!end) return;
  const Channel& channel = program_.channels[index];
  log_.memory.push_back(
      {in_seconds(*end), -channel.bytes.value(), channel.from_rank, MemoryClass::Boundary});
}

bool ThreadedProgram::receive(Stream& stream, Lock& lock) {
  const auto [code, index, micro_batch] = stream.instruction();
  const Channel& channel = program_.channels[index];
  Queue& queue = queues_[index];
  if (queue.messages.empty()) return false;
  Message& message = queue.messages.front();
  if (!message.timed) give_times(index, message, std::max(message.sent, stream.time));
  if (message.arrival > now()) {
    Device& device = devices_[stream.unrolled.rank];
    device.next = std::min(device.next, message.arrival);
    return false;
  }
  const Message taken = message;
  lock.unlock();
  if (workload_.receive) workload_.receive(index, micro_batch);
  lock.lock();
  if (taken.landed > stream.time) {
    stream.in_flight = taken.left;
    stream.arrival = taken.landed;
  }
  stream.time = std::max(stream.time, taken.arrival);
  queue.messages.pop_front();
  queue.taken.push_back(stream.time);
  poke(channel.from_rank);
  return true;
}

bool ThreadedProgram::record(const Stream& stream) {
  const auto [code, index, micro_batch] = stream.instruction();
  const Event& event = program_.events[index];
  Generation& generation = events_[index][micro_batch / event.micro_batches];
  generation.time = std::max(generation.time, stream.time);
  if (++generation.records < event.recorders) return true;
  for (int rank = 0; rank < static_cast<int>(devices_.size()); ++rank) poke(rank);
  return true;
}

bool ThreadedProgram::wait(Stream& stream) {
  const auto [code, index, micro_batch] = stream.instruction();
  if (micro_batch < 0) return true;
  const Event& event = program_.events[index];
  const Generation& generation = events_[index][micro_batch / event.micro_batches];
  if (generation.records < event.recorders) return false;
  stream.time = std::max(stream.time, generation.time);
  return true;
}

}  // namespace interlock
