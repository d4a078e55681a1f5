// Threads: what one rank does, and how it sleeps.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"
#include "validate/executors/stopwatch.h"
#include "validate/executors/thread_run.h"

namespace interlock {
namespace {

constexpr std::int64_t kLook = 20'000'000;  // how often it looks whether it shall stop

}  // namespace

ThreadedProgram::Time ThreadedProgram::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              begin_)
      .count();
}

/// The thread of a rank.
void ThreadedProgram::live(int rank) {
  Lock lock(mutex_);  // free once the run has begun
  try {
    work(devices_[rank], lock);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    end_run(std::current_exception());
  }
  --alive_;
  // Who is still asleep may have waited for this rank.
  if (asleep_ > 0 && asleep_ == alive_) end_run(nullptr);
}

void ThreadedProgram::work(Device& device, Lock& lock) {
  while (!over(device)) {
    if (must_stop()) return end_run(nullptr);
    while (enter_all(device, lock)) {
    }
    if (ended_) return;
    if (Stream* const stream = pick(device)) {
      compute(device, *stream, lock);
    } else if (!over(device)) {
      sleep(device, lock);
    }
  }
}

bool ThreadedProgram::over(const Device& device) const {
  if (ended_) return true;
  const auto first = streams_.begin() + device.first_stream;
  return std::all_of(first, first + device.streams, [](const Stream& s) { return s.done(); });
}

/// Does what streams can do before their next op; whether to look again, because some went on or,
/// while a message was handed over, somebody changed something. Else all is as they saw it.
bool ThreadedProgram::enter_all(Device& device, Lock& lock) {
  bool progress = false;
  device.next = kNever;
  device.poked = false;
  for (int s = device.first_stream; s < device.first_stream + device.streams; ++s) {
    Stream& stream = streams_[s];
    while (!ended_ && !stream.done() && passes(stream, lock)) {
      ++stream.at;
      progress = true;
    }
  }
  return (progress || device.poked) && !ended_;
}

bool ThreadedProgram::passes(Stream& stream, Lock& lock) {
  const Instruction& instruction = stream.instruction();
  switch (instruction.code) {
    case Opcode::Compute:
      return false;
    case Opcode::Send:
      return send(stream, lock);
    case Opcode::Receive:
      return receive(stream, lock);
    case Opcode::Record:
      return record(stream);
    case Opcode::Wait:
      return wait(stream);
    case Opcode::Allocate:
      if (leads_to_op(stream.unrolled.code, stream.at)) return false;  // taken with its op
      [[fallthrough]];
    case Opcode::Free:
      change_memory(stream, instruction);
      return true;
  }
  return false;
}

/// The op that a free device begins; null if there is none.
ThreadedProgram::Stream* ThreadedProgram::pick(Device& device) {
  const std::vector<std::int32_t>& order = program_.ranks[&device - devices_.data()].order;
  Stream* first = nullptr;
  for (int lane = 0; lane < device.streams; ++lane) {
    Stream& stream = streams_[device.first_stream + lane];
    if (!leads_to_op(stream.unrolled.code, stream.at)) continue;
    if (device.streams > 1 && !order.empty()) {
      if (order[device.turn] == lane) return &stream;
    } else if (first == nullptr || priority_of(program_, stream.unrolled, stream.at) <
                                       priority_of(program_, first->unrolled, first->at)) {
      first = &stream;
    }
  }
  return first;
}

void ThreadedProgram::compute(Device& device, Stream& stream, Lock& lock) {
  stream.time = std::max(stream.time, device.free);
  for (; stream.instruction().code != Opcode::Compute; ++stream.at) {
    change_memory(stream, stream.instruction());
  }
  const auto [code, op, micro_batch] = stream.instruction();
  ++device.turn;
  lock.unlock();
  const Time start = now();
  const Stopwatch watch;
  if (workload_.compute) workload_.compute(op, micro_batch);
  const Seconds cpu = watch.cpu();
  const Time end = now();
  device.samples.push_back(
      {op, micro_batch, Seconds(1e-9 * static_cast<double>(end - start)), cpu});
  lock.lock();
  Time exposed = 0;
  if (stream.in_flight) {
    exposed = std::min(start, stream.arrival) - std::max(device.free, *stream.in_flight);
    exposed = std::max<Time>(0, exposed);
  }
  const auto seconds = [](Time time) { return Seconds(1e-9 * static_cast<double>(time)); };
  log_.spans.push_back(
      {seconds(start), seconds(end), seconds(exposed), stream.unrolled.rank, op, micro_batch});
  stream.in_flight.reset();
  stream.time = device.free = end;
  ++stream.at;
}

void ThreadedProgram::change_memory(const Stream& stream, const Instruction& instruction) {
  const Buffer& buffer = program_.buffers[instruction.index];
  if (buffer.message >= 0) return let_go(buffer.message, instruction.micro_batch, stream.time);
  const double sign = instruction.code == Opcode::Allocate ? 1 : -1;
  log_.memory.push_back({Seconds(1e-9 * static_cast<double>(stream.time)),
                         sign * buffer.bytes.value(), stream.unrolled.rank, buffer.memory_class});
}

/// Until somebody pokes the rank, or what it looked for arrives: the last bit of that is spent
/// awake.
void ThreadedProgram::sleep(Device& device, Lock& lock) {
  const bool by_the_clock = device.next != kNever;
  device.asleep = !by_the_clock;
  if (device.asleep && ++asleep_ == alive_) return end_run(nullptr);
  const Time until = by_the_clock ? device.next - kWakeUpDelay.count() : kNever;
  for (Time time = now(); !device.poked && !ended_ && time < until; time = now()) {
    if (must_stop()) return end_run(nullptr);
    const Time look = options_.stop == nullptr ? until : std::min(until, time + kLook);
    if (look == kNever) {
      device.changed.wait(lock);
    } else {
      device.changed.wait_until(lock, begin_ + std::chrono::nanoseconds(look));
    }
  }
  if (device.poked || ended_) return;
  lock.unlock();
  while (now() < device.next) {
  }
  lock.lock();
}

bool ThreadedProgram::must_stop() const { return options_.stop != nullptr && *options_.stop; }

/// Something of this rank's has changed.
void ThreadedProgram::poke(int rank) {
  Device& device = devices_[rank];
  device.poked = true;
  if (std::exchange(device.asleep, false)) --asleep_;
  device.changed.notify_one();
}

/// Nobody begins anything any more. The first failure counts.
void ThreadedProgram::end_run(std::exception_ptr failure) {
  if (!ended_) failure_ = std::move(failure);
  ended_ = true;
  for (int rank = 0; rank < static_cast<int>(devices_.size()); ++rank) poke(rank);
}

}  // namespace interlock
