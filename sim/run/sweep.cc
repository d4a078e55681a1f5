// The sweep: streams, turns and events.
// SPDX-License-Identifier: Apache-2.0
#include "sim/run/sweep.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/run/deadlock.h"

namespace interlock {

Sweep::Sweep(const Program& program, const TraceSink& sink)
    : program_(program),
      sink_(sink),
      ranks_(program.ranks.size()),
      channels_(program.channels.size()),
      wires_(program.wires.size()),
      events_(program.events.size()),
      event_waiters_(program.events.size()) {
  for (const Stream& stream : program.streams) cursors_.emplace_back(program, stream);
  streams_.resize(program.streams.size());
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    for (int lane = 0; lane < rank.streams; ++lane) {
      streams_[rank.first_stream + lane].rank = static_cast<int>(r);
      streams_[rank.first_stream + lane].lane = lane;
    }
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    channels_[c].room = std::max(0, program.channels[c].depth);
  }
}

RunSummary Sweep::run() {
  for (int s = static_cast<int>(streams_.size()) - 1; s >= 0; --s) ready_.push_back(s);
  while (!ready_.empty()) {
    const int stream = ready_.back();
    ready_.pop_back();
    advance(stream);
  }
  require_done(program_, cursors_);
  return {"native", count_tasks(program_), Seconds(makespan_)};
}

void Sweep::advance(int stream) {
  StreamState& state = streams_[stream];
  Cursor& cursor = cursors_[stream];
  while (!cursor.done() && execute(stream, state, cursor)) cursor.next();
}

/// Runs one instruction; false if the stream was set aside and must run it again later.
bool Sweep::execute(int stream, StreamState& state, Cursor& cursor) {
  const Instruction& instruction = cursor.instruction();
  switch (instruction.code) {
    case Opcode::Compute:
      return compute(stream, state, cursor);
    case Opcode::Send:
      return send(stream, state, cursor);
    case Opcode::Receive:
      return receive(stream, state, cursor);
    case Opcode::Record:
      record(state, cursor);
      return true;
    case Opcode::Wait:
      return wait(stream, state, cursor);
    case Opcode::Allocate:
      if (program_.ranks[state.rank].streams > 1) {
        if (!takes_turn(stream, state)) return false;
        state.time = std::max(state.time, ranks_[state.rank].free);
      }
      [[fallthrough]];
    case Opcode::Free:
      if (sink_.memory) {
        const Buffer& buffer = program_.buffers[instruction.index];
        const double sign = instruction.code == Opcode::Allocate ? 1 : -1;
        change_memory(state.time, state.rank, buffer.memory_class, sign * buffer.bytes.value());
      }
      return true;
  }
  return true;
}

/// Whether the next Compute of the rank belongs to this stream.
bool Sweep::takes_turn(int stream, StreamState& state) {
  const auto& order = program_.ranks[state.rank].order;
  RankState& rank = ranks_[state.rank];
  if (order.empty()) return true;
  CHECK(rank.turn < order.size(), "a frozen order that is too short");
  if (order[rank.turn] == state.lane) return true;
  set_aside(rank.waiting, stream);
  return false;
}

bool Sweep::compute(int stream, StreamState& state, const Cursor& cursor) {
  RankState& rank = ranks_[state.rank];
  if (!takes_turn(stream, state)) return false;
  const double start = std::max(state.time, rank.free);
  const OpInfo& op = program_.ops[cursor.instruction().index];
  const double end = start + op.duration.value();
  if (sink_.span) {
    const double waited_from = std::max(rank.free, state.message_sent);
    const double exposed = std::max(0.0, std::min(start, state.message_arrival) - waited_from);
    sink_.span({Seconds(start), Seconds(end), Seconds(exposed), state.rank,
                cursor.instruction().index, cursor.micro_batch()});
  }
  state.message_arrival = kNever;
  state.time = rank.free = end;
  makespan_ = std::max(makespan_, end);
  ++rank.turn;
  if (!rank.waiting.empty()) wake_all(rank.waiting);
  return true;
}

void Sweep::record(const StreamState& state, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  Generation& generation =
      events_[index][cursor.micro_batch() / program_.events[index].micro_batches];
  ++generation.records;
  generation.time = std::max(generation.time, state.time);
  if (generation.records == program_.events[index].recorders) wake_all(event_waiters_[index]);
}

bool Sweep::wait(int stream, StreamState& state, const Cursor& cursor) {
  const int index = cursor.instruction().index;
  const Event& event = program_.events[index];
  const Generation& generation = events_[index][cursor.micro_batch() / event.micro_batches];
  if (generation.records < event.recorders) {
    set_aside(event_waiters_[index], stream);
    return false;
  }
  state.time = std::max(state.time, generation.time);
  return true;
}

void Sweep::change_memory(double at, int rank, MemoryClass memory_class, double bytes) {
  sink_.memory({Seconds(at), bytes, rank, memory_class});
}

void Sweep::wake(int& stream) {
  if (stream >= 0) ready_.push_back(std::exchange(stream, -1));
}

void Sweep::wake_all(std::vector<int>& streams) {
  ready_.insert(ready_.end(), streams.begin(), streams.end());
  streams.clear();
}

void Sweep::set_aside(std::vector<int>& waiting, int stream) { waiting.push_back(stream); }

RunSummary run_sweep(const Program& program, const TraceSink& sink) {
  CHECK(!chooses_order(program), "the sweep needs a fixed order");
  CHECK(!shares_links(program), "the sweep knows no contention");
  return Sweep(program, sink).run();
}

}  // namespace interlock
