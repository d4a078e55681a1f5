// Logical clocks: instants, streams, what a device does next, events and collectives.
// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/support/virtual_clocks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "sim/program/deadlock.h"

namespace interlock {

VirtualClocks::VirtualClocks(const Program& program, const TraceSink& sink)
    : program_(program),
      sink_(sink),
      devices_(program.ranks.size()),
      queues_(program.channels.size()),
      ways_(program.wires.size()),
      events_(program.events.size()),
      groups_(program.communicators.size()) {
  for (UnrolledStream& unrolled : unroll(program)) streams_.push_back({std::move(unrolled)});
  for (std::size_t r = 0; r < devices_.size(); ++r) {
    devices_[r].several = program.ranks[r].streams > 1;
  }
  for (std::size_t c = 0; c < queues_.size(); ++c) {
    queues_[c].occupancy = in_ticks(program.channels[c].occupancy);
    queues_[c].latency = in_ticks(program.channels[c].latency);
  }
}

VirtualClocks::Ticks VirtualClocks::in_ticks(Seconds duration) const {
  return std::llrint(duration.value() * program_.ticks_per_second);
}

Seconds VirtualClocks::in_seconds(Ticks ticks) const {
  return Seconds(static_cast<double>(ticks) / program_.ticks_per_second);
}

/// Something happens at `time`.
void VirtualClocks::expect(Ticks time) {
  if (time > now_) instants_.insert(time);
}

RunSummary VirtualClocks::run() {
  settle();
  while (!instants_.empty()) {
    now_ = *instants_.begin();
    instants_.erase(instants_.begin());
    settle();
  }
  std::vector<std::optional<Instruction>> standing(streams_.size());
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (!streams_[s].done()) standing[s] = streams_[s].instruction();
  }
  require_done(program_, standing);
  return {"virtual", count_tasks(program_), in_seconds(makespan_)};
}

/// Everything that happens now. Who picks sees all that has become possible; who replays knows that
/// nothing else does.
void VirtualClocks::settle() {
  do {
    changed_ = false;
    for (int communicator = 0; communicator < static_cast<int>(groups_.size()); ++communicator)
      end_collective(communicator);
    for (Stream& stream : streams_) go_on(stream);
    if (changed_) continue;
    for (int rank = 0; rank < static_cast<int>(devices_.size()); ++rank) pick(rank);
    if (changed_) continue;
    for (Stream& stream : streams_) replay(stream);
  } while (changed_);
}

void VirtualClocks::go_on(Stream& stream) {
  if (stream.computing) {
    if (stream.end > now_) return;
    stream.computing = devices_[stream.unrolled.rank].busy = false;
    changed_ = true;
    if (!std::exchange(stream.replaying, false)) step(stream);
  }
  while (!stream.done() && passes(stream)) step(stream);
}

void VirtualClocks::step(Stream& stream) {
  ++stream.at;
  stream.since = now_;
  changed_ = true;
}

/// Does what the instruction says, if it can be done now.
bool VirtualClocks::passes(Stream& stream) {
  switch (stream.instruction().code) {
    case Opcode::Compute:
      return compute(stream);
    case Opcode::Send:
      return send(stream);
    case Opcode::Receive:
      return receive(stream);
    case Opcode::Record:
      return record(stream);
    case Opcode::Wait:
      return wait(stream);
    case Opcode::Allocate:
    case Opcode::Free:
      return change_memory(stream);
  }
  return false;
}

/// A device of one stream begins; others pick when everything else has been looked at.
bool VirtualClocks::compute(Stream& stream) {
  if (stream.computing || devices_[stream.unrolled.rank].several) return false;
  announce(stream);
  begin(stream, stream.instruction().index);
  return false;
}

void VirtualClocks::begin(Stream& stream, int op) {
  const int rank = stream.unrolled.rank, micro_batch = stream.instruction().micro_batch;
  Device& device = devices_[rank];
  CHECK(!device.busy, "one op at a time");
  stream.end = now_ + in_ticks(program_.ops[op].duration);
  stream.computing = device.busy = changed_ = true;
  expect(stream.end);
  if (sink_.span) {
    // Idle time of the device: while the message was on its way, or a
    // collective.
    Ticks exposed = stream.collectives;
    if (stream.message_sent) {
      exposed += std::max<Ticks>(
          0, std::min(now_, stream.message_arrival) - std::max(device.free, *stream.message_sent));
    }
    exposed = std::min(exposed, now_ - device.free);
    sink_.span(
        {in_seconds(now_), in_seconds(stream.end), in_seconds(exposed), rank, op, micro_batch});
  }
  stream.message_sent.reset();
  stream.collectives = 0;
  device.free = stream.end;
  makespan_ = std::max(makespan_, stream.end);
}

/// A free device of several streams begins the first of its ops that could begin now.
void VirtualClocks::pick(int rank) {
  Device& device = devices_[rank];
  if (!device.several || device.busy) return;
  Stream* const first = first_of(rank);
  if (first == nullptr) return;
  ++device.turn;
  for (; first->instruction().code != Opcode::Compute; ++first->at) {
    take_or_free(*first);
  }
  begin(*first, first->instruction().index);
}

VirtualClocks::Stream* VirtualClocks::first_of(int index) {
  const Rank& rank = program_.ranks[index];
  Stream* first = nullptr;
  for (int number = 0; number < rank.streams; ++number) {
    Stream& stream = streams_[rank.first_stream + number];
    if (stream.computing || !leads_to_op(stream.unrolled.code, stream.at)) continue;
    if (!rank.order.empty()) {
      if (rank.order[devices_[index].turn] == number) return &stream;
    } else if (first == nullptr || priority_of(program_, stream.unrolled, stream.at) <
                                       priority_of(program_, first->unrolled, first->at)) {
      first = &stream;
    }
  }
  return first;
}

/// Who waits for a message that is not there, and not for the first one, learns from an old input.
void VirtualClocks::replay(Stream& stream) {
  if (stream.done() || stream.computing) return;
  const Instruction& instruction = stream.instruction();
  if (instruction.code != Opcode::Receive) return;
  const Queue& queue = queues_[instruction.index];
  const int op = program_.channels[instruction.index].replay;
  if (op < 0 || queue.taken == 0 || has_arrived(queue)) return;
  CHECK(program_.ops[op].duration > Seconds(0), "turns that take time");
  stream.replaying = true;
  begin(stream, op);
}

/// Changes memory; where a device picks, an op allocates when it begins.
bool VirtualClocks::change_memory(const Stream& stream) {
  const Instruction& instruction = stream.instruction();
  const bool takes = instruction.code == Opcode::Allocate;
  const int rank = stream.unrolled.rank;
  if (takes && devices_[rank].several && leads_to_op(stream.unrolled.code, stream.at)) return false;
  take_or_free(stream);
  return true;
}

void VirtualClocks::take_or_free(const Stream& stream) {
  const Instruction& instruction = stream.instruction();
  const Buffer& buffer = program_.buffers[instruction.index];
  if (buffer.message >= 0) return read_half(buffer.message, instruction.micro_batch, now_);
  const double sign = instruction.code == Opcode::Allocate ? 1 : -1;
  change_memory(now_, stream.unrolled.rank, buffer.memory_class, sign * buffer.bytes.value());
}

/// Bytes that a transfer and a head read are given back when the later of them has.
void VirtualClocks::read_half(int index, int micro_batch, Ticks time) {
  std::map<int, Ticks>& half_read = queues_[index].half_read;
  const auto other = half_read.find(micro_batch);
  if (other == half_read.end()) {
    half_read[micro_batch] = time;
    return;
  }
  const Channel& channel = program_.channels[index];
  change_memory(std::max(time, other->second), channel.from_rank, MemoryClass::Boundary,
                -held_by_sender(channel).value());
  half_read.erase(other);
}

void VirtualClocks::change_memory(Ticks time, int rank, MemoryClass memory_class, double bytes) {
  if (sink_.memory) sink_.memory({in_seconds(time), bytes, rank, memory_class});
}

RunSummary run_virtual(const Program& program, const TraceSink& sink) {
  CHECK(!shares_links(program), "logical clocks know no contention");
  const Variation& variation = program.variation;
  if (variation.of_compute() || variation.of_transfers()) {
    throw Error("the virtual executor knows no \"variation\"; expected a scenario without it");
  }
  if (!program.interference.empty()) {
    throw Error(
        "the virtual executor knows no kernels that communication slows down; expected a device "
        "without \"collective_sms\" and \"message_sms\", a framework without \"collective_sms\", "
        "and no \"memory_contention\"");
  }
  return VirtualClocks(program, sink).run();
}

bool VirtualClocks::record(Stream& stream) {
  const auto [code, index, micro_batch] = stream.instruction();
  const Event& event = program_.events[index];
  if (event.in_turn) {
    if (!groups_[program_.collectives[event.collective].communicator].joined.empty()) return false;
    stream.collectives += now_ - stream.since;
  }
  if (event.message >= 0) {
    Generation& generation = events_[index][micro_batch / event.micro_batches];
    const Ticks sent = stream.message_sent.value();
    const bool with_others = generation.records > 0 && generation.recorded == now_;
    generation.sent = with_others ? std::min(generation.sent, sent) : sent;
    generation.recorded = now_;
  }
  note_record(index, micro_batch);
  return true;
}

bool VirtualClocks::wait(Stream& stream) {
  const auto [code, index, micro_batch] = stream.instruction();
  if (micro_batch < 0) return true;
  const Event& event = program_.events[index];
  const Generation& generation = events_[index][micro_batch / event.micro_batches];
  if (!generation.complete) return false;
  if (event.collective >= 0) {
    const Ticks began = std::max(generation.joined, stream.since);
    stream.collectives += std::max<Ticks>(0, generation.time - began);
  } else if (event.message >= 0 && generation.time > stream.since) {
    stream.message_arrival = generation.time;
    stream.message_sent = generation.sent;
  }
  return true;
}

void VirtualClocks::note_record(int index, int micro_batch) {
  const Event& event = program_.events[index];
  Generation& generation = events_[index][micro_batch / event.micro_batches];
  changed_ = true;
  if (++generation.records < event.recorders) return;
  generation.joined = now_;
  if (event.collective < 0) return complete(index, micro_batch);
  const int communicator = program_.collectives[event.collective].communicator;
  groups_[communicator].joined.push_back({index, micro_batch, now_});
  if (groups_[communicator].joined.size() == 1) begin_collective(communicator);
}

void VirtualClocks::complete(int index, int micro_batch) {
  const Event& event = program_.events[index];
  Generation& generation = events_[index][micro_batch / event.micro_batches];
  generation.complete = true;
  generation.time = now_;
  if (event.next >= 0) note_record(event.next, micro_batch);
}

void VirtualClocks::begin_collective(int communicator) {
  Group& group = groups_[communicator];
  const int index = program_.events[group.joined.front().event].collective;
  const Collective& collective = program_.collectives[index];
  group.start = now_;
  group.end = now_ + in_ticks(collective.occupancy) + in_ticks(collective.latency);
  expect(group.end);
}

/// If the one under way is done.
void VirtualClocks::end_collective(int communicator) {
  Group& group = groups_[communicator];
  if (group.joined.empty() || group.end > now_) return;
  const Joined done = group.joined.front();
  const Event& event = program_.events[done.event];
  group.joined.pop_front();
  changed_ = true;
  makespan_ = std::max(makespan_, now_);
  if (sink_.collective) {
    sink_.collective({in_seconds(done.time), in_seconds(group.start), in_seconds(now_),
                      event.collective, done.micro_batch});
  }
  if (event.gives_back >= 0) {
    const Buffer& buffer = program_.buffers[event.gives_back];
    for (const int rank : program_.communicators[communicator].ranks) {
      change_memory(now_, rank, buffer.memory_class, -buffer.bytes.value());
    }
  }
  // The next of the communicator begins before what this one makes possible, its answer included.
  if (!group.joined.empty()) begin_collective(communicator);
  complete(done.event, done.micro_batch);
}

}  // namespace interlock
