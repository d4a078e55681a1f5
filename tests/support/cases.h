// How many random cases a test draws: a few hundred at most, more in a soak, fewer if asked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace interlock {

/// Returns INTERLOCK_CASES, by which tests multiply the number of their random cases: "8" in a
/// soak, "0.2" where a case is slow, e.g. under sanitizers; 1 if it is unset or no number above 0.
inline double times_as_many_cases() {
  const char* const text = std::getenv("INTERLOCK_CASES");
  const double times = text == nullptr ? 1 : std::atof(text);
  return times > 0 && times < 1e6 ? times : 1;
}

/// Returns how many random cases to draw: `usual`, or INTERLOCK_CASES times as many, at least one.
inline int cases(int usual) {
  return std::max(1, static_cast<int>(std::lround(usual * times_as_many_cases())));
}

/// Returns how often at least something has to be met in `cases()`: `usual` times, in proportion if
/// INTERLOCK_CASES asks for fewer cases.
inline int met_by_cases(int usual) {
  return static_cast<int>(usual * std::min(1.0, times_as_many_cases()));
}

/// Says whether this is a soak, in which grids are visited whole.
inline bool is_soak() { return times_as_many_cases() > 1; }

}  // namespace interlock
