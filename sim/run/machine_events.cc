// The machine: events, and the collectives that complete some of them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/run/machine.h"

namespace interlock {

bool Machine::record(int stream, StreamState& state) {
  const Cursor& cursor = state.cursor;
  const int index = cursor.instruction().index;
  const Event& event = program_.events[index];
  if (event.in_turn) {
    LaneState& lane = lanes_[program_.collectives[event.collective].lane];
    if (!lane.joined.empty()) {
      if (!std::exchange(state.waited, true)) state.waits_since = now_;
      state.announced = false;
      lane.waiting.push_back(stream);
      return false;
    }
    if (std::exchange(state.waited, false)) state.collectives += now_ - state.waits_since;
  }
  note_record(index, cursor.micro_batch());
  return true;
}

void Machine::note_record(int index, int micro_batch) {
  const Event& event = program_.events[index];
  Generation& generation = events_[index][micro_batch / event.micro_batches];
  if (++generation.records < event.recorders) return;
  CHECK(generation.records == event.recorders, "a member records a generation once");
  generation.joined = now_;
  if (event.collective < 0) return complete(index, micro_batch);
  const int lane = program_.collectives[event.collective].lane;
  lanes_[lane].joined.push({index, micro_batch, now_});
  if (lanes_[lane].joined.size() == 1) start_collective(lane);
}

bool Machine::wait(int stream, StreamState& state) {
  const Cursor& cursor = state.cursor;
  if (cursor.micro_batch() < 0) return true;
  const int index = cursor.instruction().index;
  const Event& event = program_.events[index];
  const Generation& generation = events_[index][cursor.micro_batch() / event.micro_batches];
  if (!generation.complete) {
    if (!std::exchange(state.waited, true)) state.waits_since = now_;
    event_waiters_[index].push_back(stream);
  } else if (std::exchange(state.waited, false) && event.collective >= 0) {
    const double began = std::max(generation.joined, state.waits_since);
    state.collectives += std::max(0.0, generation.time - began);
  }
  return generation.complete;
}

/// Completes the generation of `micro_batch`.
void Machine::complete(int index, int micro_batch) {
  const Event& event = program_.events[index];
  const int number = micro_batch / event.micro_batches;
  Generation& generation = events_[index][number];
  generation.complete = true;
  generation.time = now_;
  events_[index].finish(number, generations_kept(event));
  runnable_.insert(runnable_.end(), event_waiters_[index].begin(), event_waiters_[index].end());
  event_waiters_[index].clear();
}

/// The front of the lane: its end is known, or its flows share links with others.
void Machine::start_collective(int index) {
  LaneState& lane = lanes_[index];
  const Event& event = program_.events[lane.joined.front().event];
  const Collective& collective = program_.collectives[event.collective];
  lane.started = now_;
  if (rates_) change_loads(collective, true);
  lane.factor = times_.of_collective(lane.joined.front().event, lane.joined.front().micro_batch);
  if (!collective.shared) {
    const double end = now_ + scaled(in_ticks(program_, collective.occupancy), lane.factor) +
                       scaled(in_ticks(program_, collective.latency), lane.factor);
    heap_.push({end, static_cast<std::int32_t>(streams_.size()) + index, 0});
    return;
  }
  lane.flows_left = static_cast<int>(collective.flows.size());
  for (const Collective::Flow& flow : collective.flows) {
    wires_[flow.wire].carrying = true;
    start_flow(flow, lane.factor);
  }
}

/// A flow of the collective under way has ended.
void Machine::end_flow(int index) {
  LaneState& lane = lanes_[index];
  if (--lane.flows_left > 0) return;
  const Event& event = program_.events[lane.joined.front().event];
  const Seconds latency = program_.collectives[event.collective].latency;
  const double end = now_ + scaled(in_ticks(program_, latency), lane.factor);
  heap_.push({end, static_cast<std::int32_t>(streams_.size()) + index, 0});
}

void Machine::end_collective(int index) {
  LaneState& lane = lanes_[index];
  const Joined done = lane.joined.front();
  const Event& event = program_.events[done.event];
  lane.joined.pop();
  if (rates_) change_loads(program_.collectives[event.collective], false);
  makespan_ = std::max(makespan_, now_);
  if (sink_.collective) {
    sink_.collective({in_seconds(program_, done.time), in_seconds(program_, lane.started),
                      in_seconds(program_, now_), event.collective, done.micro_batch});
  }
  if (event.gives_back >= 0) {
    const Buffer& buffer = program_.buffers[event.gives_back];
    for (const int rank : program_.lanes[index].ranks) {
      change_memory(now_, rank, buffer.memory_class, -buffer.bytes.value());
    }
  }
  complete(done.event, done.micro_batch);
  if (event.next >= 0) note_record(event.next, done.micro_batch);
  if (!lane.joined.empty()) return start_collective(index);
  runnable_.insert(runnable_.end(), lane.waiting.begin(), lane.waiting.end());
  lane.waiting.clear();
}

}  // namespace interlock
