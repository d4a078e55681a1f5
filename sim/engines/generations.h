// Generations: what an event was recorded for, micro-batch by micro-batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
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
  /// call. REQUIRES: it is not the least int.
  Generation& operator[](int number) {
    if (slots_.empty()) [[unlikely]]
      grow();
    std::size_t at = place_of(number);
    if (slots_[at].number != number) {
      if (count_ + 2 > slots_.size()) [[unlikely]] {
        grow();
        at = place_of(number);
      }
      slots_[at] = {{}, number};
      ++count_;
    }
    return slots_[at].generation;
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
  std::size_t size() const { return count_; }
  bool contains(int number) const {
    return !slots_.empty() && slots_[place_of(number)].number == number;
  }

 private:
  static constexpr int kNone = std::numeric_limits<int>::min();
  /// Lies in 32 bytes, if a generation ends in an int: many events are asked for in turn.
  struct Slot {
    [[no_unique_address]] Generation generation;
    int number = kNone;
  };

  std::size_t home_of(int number) const {
    return static_cast<std::size_t>(number) & (slots_.size() - 1);
  }
  std::size_t after(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  /// Returns the slot of `number`, or the free one where it is to be. REQUIRES: a slot is free.
  std::size_t place_of(int number) const {
    std::size_t at = home_of(number);
    while (slots_[at].number != number && slots_[at].number != kNone) at = after(at);
    return at;
  }

  /// Frees the slot of `number`, and moves those back that stand behind it for lack of their own.
  void forget(int number) {
    std::size_t free = place_of(number);
    for (std::size_t at = after(free); slots_[at].number != kNone; at = after(at)) {
      const std::size_t mask = slots_.size() - 1, home = home_of(slots_[at].number);
      if (((at - home) & mask) < ((at - free) & mask)) continue;
      slots_[free] = slots_[at];
      free = at;
    }
    slots_[free].number = kNone;
    --count_;
  }

  void grow() {
    constexpr std::size_t kFirst = 4;
    std::vector<Slot> before(slots_.empty() ? kFirst : 2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.number != kNone) slots_[place_of(slot.number)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, by number: the next free one if one is taken
  Fifo<int> finished_;       // numbers, in the order in which they finished
  std::uint32_t count_ = 0;
};

}  // namespace interlock
