// EventHeap: what is to happen, the earliest first.
// SPDX-License-Identifier: Apache-2.0
//
// Four children a node: shallower than a binary heap, and the children share a cache line. A node
// past the end is never earlier, so that the least child is found without a branch.
//
// Example: events at 5, 3, 8 and 1 s are pushed: the block holds 1, 5, 8, 3. After pop() it holds
// 3, 5, 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace interlock {

struct TimedEvent {
  double time;
  std::int32_t id;           // a stream, or -1 - wire
  std::uint32_t generation;  // of a wire's timer
};

class EventHeap {
 public:
  bool empty() const { return size_ == 0; }
  const TimedEvent& top() const { return events_.front(); }

  void push(const TimedEvent& event) {
    if (size_ + kChildren > events_.size()) events_.resize(2 * size_ + 2 * kChildren, kNothing);
    rise(size_++, event);
  }

  void pop() {
    const TimedEvent last = events_[--size_];
    events_[size_] = kNothing;
    if (size_ == 0) return;
    // The hole sinks to the bottom, where `last` most often belongs.
    std::size_t hole = 0;
    for (std::size_t first = 1; first < size_; first = kChildren * hole + 1) {
      const std::size_t a = first + (events_[first + 1].time < events_[first].time);
      const std::size_t b = first + 2 + (events_[first + 3].time < events_[first + 2].time);
      const std::size_t least = events_[b].time < events_[a].time ? b : a;
      events_[hole] = events_[least];
      hole = least;
    }
    rise(hole, last);
  }

 private:
  static constexpr std::size_t kChildren = 4;
  static constexpr TimedEvent kNothing{kInfinity, 0, 0};

  void rise(std::size_t at, const TimedEvent& event) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / kChildren;
      if (events_[parent].time <= event.time) break;
      events_[at] = events_[parent];
      at = parent;
    }
    events_[at] = event;
  }

  std::vector<TimedEvent> events_;  // the heap, then nothings
  std::size_t size_ = 0;
};

}  // namespace interlock
