// The machine: kernels that communication beside them slows down.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/run/machine.h"

namespace interlock {

/// Whether `event`, the end of an op of `rank` as it was known once, is still that.
bool Machine::ends_compute(const TimedEvent& event, int rank) {
  if (!rates_->is_current(rank, event.generation)) return false;
  ranks_[rank].free = now_;
  makespan_ = std::max(makespan_, now_);
  Span span = rates_->end(rank);
  span.end = in_seconds(program_, now_);
  if (sink_.span) sink_.span(span);
  return true;
}

void Machine::change_load(int rank, const KernelLoad& load, bool begins) {
  const auto end = rates_->change(rank, load, begins, now_);
  if (end) heap_.push({end->time, end->stream, end->generation});
}

/// A message of `channel` is on its way, or no longer.
void Machine::change_loads(int index, bool begins) {
  const Channel& channel = program_.channels[index];
  change_load(channel.from_rank, rates_->of_sender(index), begins);
  change_load(channel.to_rank, rates_->of_receiver(index), begins);
}

void Machine::change_loads(const Collective& collective, bool begins) {
  const KernelLoad& load = rates_->of_member(collective);
  for (const int rank : program_.lanes[collective.lane].ranks) change_load(rank, load, begins);
}

/// A message of a wire of its own, whose times are known beforehand.
void Machine::load_while_sent(int channel, double start, double end) {
  if (end == start) return;  // its end might come before its start, as both are the same instant
  const auto first = static_cast<std::int32_t>(streams_.size() + lanes_.size());
  if (start > now_) {
    heap_.push({start, first + 2 * channel, 0});
  } else {
    change_loads(channel, true);
  }
  heap_.push({end, first + 2 * channel + 1, 0});
}

}  // namespace interlock
