// Generations: what an event was recorded for, micro-batch by micro-batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engines/fifo.h"

namespace interlock {

/// Generations by number. A generation is remembered from when it is first asked for until `kept`
/// others have finished after it: however far one member of a group runs ahead of the others, what
/// it has recorded is not forgotten before the others have recorded it, too.
/// Example, with kept = 1: [7] and [8] are made, finish(7) and finish(8) forget 7; a third
/// generation that no one finishes stays.
template <class Generation>
class Generations {
 public:
  /// Returns generation `number`; makes it if there is none. It stays where it is until the next
  /// call.
  Generation& operator[](int number) {
    auto at = place_of(number);
    if (at == entries_.end() || at->number != number) at = entries_.insert(at, {number, {}});
    return at->generation;
  }

  /// Notes that all members have recorded generation `number`; forgets the one that finished `kept`
  /// generations before.
  void finish(int number, std::uint32_t kept) {
    finished_.push(number);
    if (finished_.size() <= kept) return;
    forget(finished_.front());
    finished_.pop();
  }

  /// Returns how many generations are remembered.
  std::size_t size() const { return entries_.size() - forgotten_; }
  bool contains(int number) {
    const auto at = place_of(number);
    return at != entries_.end() && at->number == number;
  }

 private:
  struct Entry {
    int number = 0;
    Generation generation;
  };

  auto first() { return entries_.begin() + static_cast<std::ptrdiff_t>(forgotten_); }

  typename std::vector<Entry>::iterator place_of(int number) {
    if (forgotten_ == entries_.size() || entries_.back().number < number) return entries_.end();
    return std::lower_bound(first(), entries_.end(), number,
                            [](const Entry& entry, int sought) { return entry.number < sought; });
  }

  void forget(int number) {
    const auto at = place_of(number);
    if (at != first()) {
      entries_.erase(at);
      return;
    }
    ++forgotten_;
    if (2 * forgotten_ < entries_.size()) return;
    entries_.erase(entries_.begin(), first());
    forgotten_ = 0;
  }

  std::vector<Entry> entries_;
  std::size_t forgotten_ = 0;  // of them, the first ones
  Fifo<int> finished_;         // numbers, in the order in which they finished
};

}  // namespace interlock
