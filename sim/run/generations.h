// Generations: what an event was recorded for, micro-batch by micro-batch, the last ones of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iterator>
#include <map>

namespace interlock {

/// Generation `number` of an event, of which `kept` and one more are remembered. A new one takes
/// the place of the one farthest from it: slices of a sequence go down as they come back, so that
/// the least number may be the newest.
template <class Generation>
Generation& generation_of(std::map<int, Generation>& generations, int number, std::size_t kept) {
  const bool full = generations.size() > kept && !generations.contains(number);
  if (full) {
    const auto last = std::prev(generations.end());
    const bool first_is_farther = number - generations.begin()->first > last->first - number;
    generations.erase(first_is_farther ? generations.begin() : last);
  }
  return generations[number];
}

}  // namespace interlock
