// Generations: what an event was recorded for, micro-batch by micro-batch, the last ones of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace interlock {

/// Generations by number, in order of it. What is asked for lies mostly at the end.
template <class Generation>
class Generations {
 public:
  /// Generation `number`, a new one if there is none. It stays where it is until the next call.
  Generation& operator[](int number) {
    auto at = place_of(number);
    if (at == entries_.end() || at->number != number) at = entries_.insert(at, {number, {}});
    return at->generation;
  }

  /// The same; `kept` and one more are remembered. A new one takes the place of the one farthest
  /// from it: slices of a sequence go down as they come back, so that the least number may be the
  /// newest.
  Generation& among(int number, std::size_t kept) {
    const auto at = place_of(number);
    if (at != entries_.end() && at->number == number) return at->generation;
    if (size() > kept) forget_farthest(number);
    return (*this)[number];
  }

  /// How many are remembered.
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

  void forget_farthest(int number) {
    if (number - first()->number <= entries_.back().number - number) return entries_.pop_back();
    ++forgotten_;
    if (2 * forgotten_ < entries_.size()) return;
    entries_.erase(entries_.begin(), first());
    forgotten_ = 0;
  }

  std::vector<Entry> entries_;
  std::size_t forgotten_ = 0;  // of them, the first ones
};

}  // namespace interlock
