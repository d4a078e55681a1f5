// The search for balanced token slices: one shortest path for each bound on the longest slice.
// SPDX-License-Identifier: Apache-2.0
//
// With all slices held to some t_max, the least sum of times is a shortest path over the ends of
// slices: S(i) = min over k of S(i - k) + t(k, i - k), t(k, i - k) <= t_max. Only times of slices
// can be the longest, so these are tried, in ascending order; a bound that costs more by itself
// than the best slicing so far ends the search.
#include "sim/plan/token_slices.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace interlock {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Seconds of every slice there could be, by its end and its length.
struct Prices {
  explicit Prices(const SliceInputs& inputs) : of_end(inputs.units + 1) {
    for (int end = 1; end <= inputs.units; ++end) {
      for (int length = 1; length <= end; ++length) {
        of_end[end].push_back(inputs.time(length, end - length).value());
      }
    }
  }
  double at(int end, int length) const { return of_end[end][length - 1]; }

  std::vector<std::vector<double>> of_end;
};

std::vector<double> ascending(const Prices& prices) {
  std::vector<double> times;
  for (const std::vector<double>& row : prices.of_end) {
    times.insert(times.end(), row.begin(), row.end());
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

struct Path {
  std::vector<int> lengths;
  double sum = kNever;  // no slicing at all
};

Path shortest_path(const Prices& prices, double most) {
  const int units = static_cast<int>(prices.of_end.size()) - 1;
  std::vector<double> sums(units + 1, kNever);
  std::vector<int> last(units + 1, 0);
  sums[0] = 0;
  for (int end = 1; end <= units; ++end) {
    for (int length = 1; length <= end; ++length) {
      const double time = prices.at(end, length);
      if (time > most || sums[end - length] + time >= sums[end]) continue;
      sums[end] = sums[end - length] + time;
      last[end] = length;
    }
  }
  Path path{.sum = sums[units]};
  if (path.sum == kNever) return path;
  for (int end = units; end > 0; end -= last[end]) path.lengths.push_back(last[end]);
  std::reverse(path.lengths.begin(), path.lengths.end());
  return path;
}

}  // namespace

Slicing balanced_slices(const SliceInputs& inputs) {
  CHECK(inputs.units >= 1 && inputs.stages >= 1 && inputs.sequences >= 1, "something to cut");
  const Prices prices(inputs);
  Slicing best{.span = Seconds(kNever)};
  for (const double most : ascending(prices)) {
    const double waits = (inputs.stages - 1) * most;
    if (waits >= best.span.value()) break;
    Path path = shortest_path(prices, most);
    if (inputs.sequences * path.sum + waits >= best.span.value()) continue;
    best = {std::move(path.lengths), Seconds(inputs.sequences * path.sum + waits)};
  }
  return best;
}

std::vector<int> equal_slices(int units, int slices) {
  CHECK(1 <= slices && slices <= units, "a unit for each slice");
  std::vector<int> lengths(slices, units / slices);
  for (int i = 0; i < units % slices; ++i) ++lengths[i];
  return lengths;
}

Seconds span_of(const SliceInputs& inputs, const std::vector<int>& lengths) {
  Seconds sum, longest;
  int context = 0;
  for (const int length : lengths) {
    const Seconds time = inputs.time(length, context);
    sum += time;
    longest = std::max(longest, time);
    context += length;
  }
  return sum * inputs.sequences + longest * (inputs.stages - 1);
}

}  // namespace interlock
