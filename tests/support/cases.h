// How many random cases a test draws: a few hundred at most, as many times more in a soak.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>

namespace interlock {

/// Returns INTERLOCK_CASES, by which tests multiply the number of their random cases; 1 if unset.
inline int times_as_many_cases() {
  const char* const text = std::getenv("INTERLOCK_CASES");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

/// Returns how many random cases to draw: `usual`, or INTERLOCK_CASES times as many.
inline int cases(int usual) { return usual * times_as_many_cases(); }

/// Says whether this is a soak, in which grids are visited whole.
inline bool is_soak() { return times_as_many_cases() > 1; }

}  // namespace interlock
