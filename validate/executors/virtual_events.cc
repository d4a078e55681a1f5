// Logical clocks: events, and the collectives that complete some of them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "validate/executors/virtual_clocks.h"

namespace interlock {

bool VirtualClocks::record(Stream& stream) {
  const auto [code, index, micro_batch] = stream.instruction();
  const Event& event = program_.events[index];
  if (event.in_turn) {
    if (!groups_[program_.collectives[event.collective].lane].joined.empty()) return false;
    stream.collectives += now_ - stream.since;
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
  const int lane = program_.collectives[event.collective].lane;
  groups_[lane].joined.push_back({index, micro_batch, now_});
  if (groups_[lane].joined.size() == 1) begin_collective(lane);
}

void VirtualClocks::complete(int index, int micro_batch) {
  const Event& event = program_.events[index];
  Generation& generation = events_[index][micro_batch / event.micro_batches];
  generation.complete = true;
  generation.time = now_;
  if (event.next >= 0) note_record(event.next, micro_batch);
}

void VirtualClocks::begin_collective(int lane) {
  Group& group = groups_[lane];
  const int index = program_.events[group.joined.front().event].collective;
  const Collective& collective = program_.collectives[index];
  group.start = now_;
  group.end = now_ + in_ticks(collective.occupancy) + in_ticks(collective.latency);
  expect(group.end);
}

/// If the one under way is done.
void VirtualClocks::end_collective(int lane) {
  Group& group = groups_[lane];
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
    for (const int rank : program_.lanes[lane].ranks) {
      change_memory(now_, rank, buffer.memory_class, -buffer.bytes.value());
    }
  }
  // The next of the lane begins before what this one makes possible, its answer included.
  if (!group.joined.empty()) begin_collective(lane);
  complete(done.event, done.micro_batch);
}

}  // namespace interlock
