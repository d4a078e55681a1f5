// Pareto fronts: which of many choices no other one beats in both of two things.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace interlock {

/// Returns the indices of the choices than which no other has less of `less` and at least as much
/// of `more`, or as little and more; of equal ones the first. Ascending in both. REQUIRES: as many
/// numbers in one as in the other.
inline std::vector<std::size_t> pareto_front(const std::vector<double>& less,
                                             const std::vector<double>& more) {
  std::vector<std::size_t> order(less.size()), front;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(less[a], -more[a]) < std::pair(less[b], -more[b]);
  });
  for (const std::size_t i : order) {
    if (front.empty() || more[i] > more[front.back()]) front.push_back(i);
  }
  return front;
}

}  // namespace interlock
