// Threads: starting and joining them, and the trace of what they did.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "sim/program/deadlock.h"
#include "validate/executors/issued_memory.h"
#include "validate/executors/stopwatch.h"
#include "validate/executors/thread_run.h"

namespace interlock {

ThreadedProgram::ThreadedProgram(const Program& program, const Workload& workload,
                                 const ThreadOptions& options)
    : program_(program),
      workload_(workload),
      options_(options),
      devices_(program.ranks.size()),
      queues_(program.channels.size()),
      wire_free_(program.wires.size(), 0),
      communicator_free_(program.communicators.size(), 0),
      events_(program.events.size()),
      alive_(static_cast<int>(program.ranks.size())) {
  for (UnrolledStream& unrolled : unroll(program)) streams_.push_back({std::move(unrolled)});
  for (std::size_t r = 0; r < devices_.size(); ++r) {
    devices_[r].first_stream = program.ranks[r].first_stream;
    devices_[r].streams = program.ranks[r].streams;
  }
  for (std::size_t c = 0; c < queues_.size(); ++c) {
    queues_[c].occupancy = std::llround(1e9 * program.channels[c].occupancy.value());
    queues_[c].latency = std::llround(1e9 * program.channels[c].latency.value());
  }
}

ThreadRun ThreadedProgram::run(const TraceSink& sink) {
  {
    std::vector<std::jthread> threads;
    start_all(threads);
  }  // joined
  if (failure_) std::rethrow_exception(failure_);
  ThreadRun result = summarise();
  deliver_in_order(log_, sink);
  if (result.stopped) return result;
  std::vector<std::optional<Instruction>> standing(streams_.size());
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (!streams_[s].done()) standing[s] = streams_[s].instruction();
  }
  require_done(program_, standing);
  return result;
}

/// Starts all ranks at once, when there is a thread for each.
void ThreadedProgram::start_all(std::vector<std::jthread>& threads) {
  const Lock lock(mutex_);
  try {
    for (int rank = 0; rank < static_cast<int>(devices_.size()); ++rank) {
      threads.emplace_back([this, rank] { live(rank); });
    }
  } catch (const std::system_error& failure) {
    end_run(std::make_exception_ptr(
        Error("cannot start a thread for each of " + std::to_string(devices_.size()) +
              " devices: " + failure.code().message() +
              "; expected more memory, or a higher limit of threads (ulimit -u)")));
  } catch (...) {
    end_run(std::current_exception());
  }
  begin_ = std::chrono::steady_clock::now();
}

ThreadRun ThreadedProgram::summarise() {
  ThreadRun result;
  result.stopped = ended_ && options_.stop != nullptr && *options_.stop;
  Seconds end;
  for (const Span& span : log_.spans) end = std::max(end, span.end);
  for (const Transfer& transfer : log_.transfers) end = std::max(end, transfer.arrival);
  const std::int64_t done = static_cast<std::int64_t>(log_.spans.size() + log_.transfers.size());
  result.summary = {"threads", done, end};
  for (Device& device : devices_) {
    result.samples.insert(result.samples.end(), device.samples.begin(), device.samples.end());
  }
  return result;
}

ThreadRun run_threads(const Program& program, const Workload& workload,
                      const ThreadOptions& options, const TraceSink& sink) {
  CHECK(why_not_executable(program).empty(), "a program that can be run for real");
  return ThreadedProgram(program, workload, options).run(sink);
}

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

/// Sets the times of a message that is on its way from the instant `sent` on.
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
  log_.memory.push_back({in_seconds(sent), held_by_receiver(channel).value(), channel.to_rank,
                         MemoryClass::Boundary});
  if (channel.from_resident) return;
  if (channel.read_by_head) return let_go(index, message.micro_batch, end);
  log_.memory.push_back({in_seconds(end), -held_by_sender(channel).value(), channel.from_rank,
                         MemoryClass::Boundary});
}

/// Notes that the transfer or the head that reads a message is done; the later one frees it.
void ThreadedProgram::let_go(int index, int micro_batch, Time time) {
  const auto end = holds_.let_go(index, micro_batch, time);
  if (!end) return;
  const Channel& channel = program_.channels[index];
  log_.memory.push_back({in_seconds(*end), -held_by_sender(channel).value(), channel.from_rank,
                         MemoryClass::Boundary});
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

bool ThreadedProgram::record(const Stream& stream, Lock& lock) {
  const auto [code, index, micro_batch] = stream.instruction();
  const Event& event = program_.events[index];
  if (event.collective >= 0 && workload_.join) {
    lock.unlock();
    workload_.join(index, stream.unrolled.rank, micro_batch);
    lock.lock();
  }
  Generation& generation = events_[index][micro_batch / event.micro_batches];
  generation.time = std::max(generation.time, stream.time);
  if (++generation.records < event.recorders) return true;
  if (event.collective >= 0) exchange(index, micro_batch, generation, lock);
  generation.done = true;
  for (int rank = 0; rank < static_cast<int>(devices_.size()); ++rank) poke(rank);
  return true;
}

/// Carries out a collective that all members have joined.
void ThreadedProgram::exchange(int index, int micro_batch, Generation& generation, Lock& lock) {
  const int number = program_.events[index].collective;
  const Collective& collective = program_.collectives[number];
  const Time joined = generation.time;
  lock.unlock();
  Time begin = now();
  if (workload_.exchange) workload_.exchange(index, micro_batch);
  Time end = now();
  lock.lock();
  if (options_.emulate_links) {
    Time& free = communicator_free_[collective.communicator];
    begin = std::max(joined, free);
    free = begin + std::llround(1e9 * collective.occupancy.value()) +
           std::llround(1e9 * collective.latency.value());
    end = free;
  }
  generation.begun = begin;
  generation.time = std::max(joined, end);
  log_.collectives.push_back(
      {in_seconds(joined), in_seconds(begin), in_seconds(end), number, micro_batch});
}

bool ThreadedProgram::wait(Stream& stream) {
  const auto [code, index, micro_batch] = stream.instruction();
  if (micro_batch < 0) return true;
  const Event& event = program_.events[index];
  const Generation& generation = events_[index][micro_batch / event.micro_batches];
  if (!generation.done) return false;
  if (event.collective >= 0 && generation.time > now()) {
    Device& device = devices_[stream.unrolled.rank];
    device.next = std::min(device.next, generation.time);
    return false;
  }
  if (event.collective >= 0 && generation.time > stream.time) {
    stream.in_flight = generation.begun;
    stream.arrival = generation.time;
  }
  stream.time = std::max(stream.time, generation.time);
  return true;
}

namespace {

constexpr std::int64_t kLook = 20'000'000;  // how often it looks whether it shall stop

}  // namespace

ThreadedProgram::Time ThreadedProgram::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              begin_)
      .count();
}

/// Runs the thread of a rank.
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

/// Carries out the instructions of all streams before their next op. Returns whether to look again,
/// because some went on or the device was poked while a message was handed over. Else nothing has
/// changed since they looked.
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
      return record(stream, lock);
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

/// Returns the op that a free device begins; null if there is none.
ThreadedProgram::Stream* ThreadedProgram::pick(Device& device) {
  const std::vector<std::int32_t>& order = program_.ranks[&device - devices_.data()].order;
  Stream* first = nullptr;
  for (int number = 0; number < device.streams; ++number) {
    Stream& stream = streams_[device.first_stream + number];
    if (!leads_to_op(stream.unrolled.code, stream.at)) continue;
    if (device.streams > 1 && !order.empty()) {
      if (order[device.turn] == number) return &stream;
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

/// Sleeps until another rank pokes this one, or the message arrives that it looked for: the last
/// bit of that is spent awake.
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

/// Wakes `rank`, as something that it waits for may have changed.
void ThreadedProgram::poke(int rank) {
  Device& device = devices_[rank];
  device.poked = true;
  if (std::exchange(device.asleep, false)) --asleep_;
  device.changed.notify_one();
}

/// Ends the run: no stream goes on. The first failure counts.
void ThreadedProgram::end_run(std::exception_ptr failure) {
  if (!ended_) failure_ = std::move(failure);
  ended_ = true;
  for (int rank = 0; rank < static_cast<int>(devices_.size()); ++rank) poke(rank);
}

}  // namespace interlock
