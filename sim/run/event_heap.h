// EventHeap: what is to happen, the earliest first.
// SPDX-License-Identifier: Apache-2.0
//
// Four children a node: shallower than a binary heap, and the children share a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace interlock {

struct TimedEvent {
  double time;
  std::int32_t id;           // a stream, or -1 - wire
  std::uint32_t generation;  // of a wire's timer
};

class EventHeap {
 public:
  bool empty() const { return events_.empty(); }
  const TimedEvent& top() const { return events_.front(); }

  void push(const TimedEvent& event) {
    std::size_t at = events_.size();
    events_.push_back(event);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (events_[parent].time <= event.time) break;
      events_[at] = events_[parent];
      at = parent;
    }
    events_[at] = event;
  }

  void pop() {
    const TimedEvent last = events_.back();
    events_.pop_back();
    const std::size_t size = events_.size();
    if (size == 0) return;
    std::size_t at = 0;
    while (true) {
      const std::size_t first = 4 * at + 1;
      if (first >= size) break;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (events_[child].time < events_[least].time) least = child;
      }
      if (events_[least].time >= last.time) break;
      events_[at] = events_[least];
      at = least;
    }
    events_[at] = last;
  }

 private:
  std::vector<TimedEvent> events_;
};

}  // namespace interlock
