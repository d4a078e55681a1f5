// The search for balanced token slices: shortest paths under falling bounds on the longest slice.
// SPDX-License-Identifier: Apache-2.0
//
// With all slices shorter than some bound, the least sum of times is a shortest path over the ends
// of slices: S(i) = min over k of S(i - k) + t(k, i - k). The path found also is the best for every
// lower bound down to its own longest slice, so that slice is the next bound to try. What this
// finds are all slicings that no other one betters in both the sum and the longest slice. For a
// step of several sizes, a knapsack chooses micro-batches that add up to the batch, for each
// longest slice.
#include "sim/plan/orders/token_slices.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

namespace {

/// Seconds of every slice there could be, by its end and its length.
struct Prices {
  Prices(int units, const SliceTime& time) : of_end(units + 1) {
    for (int end = 1; end <= units; ++end) {
      for (int length = 1; length <= end; ++length) {
        of_end[end].push_back(time(length, end - length).value());
      }
    }
  }
  double at(int end, int length) const { return of_end[end][length - 1]; }

  std::vector<std::vector<double>> of_end;
};

struct Path {
  std::vector<int> lengths;
  double sum = kInfinity;  // no slicing at all
  double longest = 0;
};

/// Returns the slicing of least sum among those whose slices all take less than `bound`.
Path shortest_path(const Prices& prices, double bound) {
  const int units = static_cast<int>(prices.of_end.size()) - 1;
  std::vector<double> sums(units + 1, kInfinity);
  std::vector<int> last(units + 1, 0);
  sums[0] = 0;
  for (int end = 1; end <= units; ++end) {
    for (int length = 1; length <= end; ++length) {
      const double time = prices.at(end, length);
      if (time >= bound || sums[end - length] + time >= sums[end]) continue;
      sums[end] = sums[end - length] + time;
      last[end] = length;
    }
  }
  Path path{.sum = sums[units]};
  if (path.sum == kInfinity) return path;
  for (int end = units; end > 0; end -= last[end]) {
    path.lengths.push_back(last[end]);
    path.longest = std::max(path.longest, prices.at(end, last[end]));
  }
  std::reverse(path.lengths.begin(), path.lengths.end());
  return path;
}

/// Returns every slicing that none betters in both sum and longest slice; shortest longest slice
/// first.
std::vector<Path> best_paths(const Prices& prices) {
  std::vector<Path> paths;
  for (double bound = kInfinity;;) {
    Path path = shortest_path(prices, bound);
    if (path.sum == kInfinity) break;
    bound = path.longest;
    paths.push_back(std::move(path));
  }
  std::reverse(paths.begin(), paths.end());
  return paths;
}

/// The sizes of micro-batches that add up to a batch.
struct Knapsack {
  double sum = kInfinity;
  std::vector<int> sizes;  // as indices
};

/// `sums`: what a micro-batch of each size takes.
Knapsack fill(const StepInputs& inputs, const std::vector<double>& sums) {
  std::vector<double> least(inputs.samples + 1, kInfinity);
  std::vector<int> last(inputs.samples + 1, -1);
  least[0] = 0;
  for (int samples = 1; samples <= inputs.samples; ++samples) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const int rest = samples - inputs.sizes[i].samples;
      if (rest < 0 || least[rest] + sums[i] >= least[samples]) continue;
      least[samples] = least[rest] + sums[i];
      last[samples] = static_cast<int>(i);
    }
  }
  Knapsack knapsack{.sum = least.back()};
  if (knapsack.sum == kInfinity) return knapsack;
  for (int left = inputs.samples; left > 0; left -= inputs.sizes[last[left]].samples) {
    knapsack.sizes.push_back(last[left]);
  }
  return knapsack;
}

/// Halvings of the time that the longest slice may take, from that of a whole sequence.
constexpr int kBisections = 24;

/// Returns the longest slice from `begin`, of `most` units at most, that takes no more than
/// `bound`; 0 if none does.
int longest_within(const SliceTime& time, int begin, int most, double bound) {
  int fits = 0;
  while (fits < most) {
    const int middle = (fits + most + 1) / 2;
    if (time(middle, begin).value() <= bound) {
      fits = middle;
    } else {
      most = middle - 1;
    }
  }
  return fits;
}

}  // namespace

Slicing balanced_slices(const SliceInputs& inputs) {
  CHECK(inputs.units >= 1 && inputs.stages >= 1 && inputs.sequences >= 1, "something to cut");
  Slicing best{.span = Seconds(kInfinity)};
  for (Path& path : best_paths(Prices(inputs.units, inputs.time))) {
    const Seconds span(inputs.sequences * path.sum + (inputs.stages - 1) * path.longest);
    if (span < best.span) best = {std::move(path.lengths), span};
  }
  return best;
}

Division balanced_batches(const StepInputs& inputs) {
  CHECK(inputs.units >= 1 && inputs.stages >= 1 && inputs.samples >= 1, "something to cut");
  std::vector<std::vector<Path>> paths;  // (sizes, ascending longest slice)
  std::vector<double> bounds;
  for (const BatchSize& size : inputs.sizes) {
    paths.push_back(best_paths(Prices(inputs.units, size.time)));
    for (const Path& path : paths.back()) bounds.push_back(path.longest);
  }
  std::sort(bounds.begin(), bounds.end());
  Division best{.span = Seconds(kInfinity)};
  std::vector<std::size_t> within(paths.size(), 0);  // paths of each size that keep the bound
  std::vector<double> sums(paths.size(), kInfinity);
  for (const double bound : bounds) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (; within[i] < paths[i].size() && paths[i][within[i]].longest <= bound; ++within[i]) {
        sums[i] = paths[i][within[i]].sum;
      }
    }
    const Knapsack found = fill(inputs, sums);
    const Seconds span(found.sum + (inputs.stages - 1) * bound);
    if (!(span < best.span)) continue;
    best = {.span = span};
    for (const int i : found.sizes) {
      best.batches.push_back({inputs.sizes[i].samples, paths[i][within[i] - 1].lengths});
    }
  }
  CHECK(!best.batches.empty(), "micro-batches that add up to the batch");
  std::stable_sort(
      best.batches.begin(), best.batches.end(),
      [](const SlicedBatch& a, const SlicedBatch& b) { return a.samples > b.samples; });
  return best;
}

std::vector<int> equal_slices(int units, int slices) {
  CHECK(1 <= slices && slices <= units, "a unit for each slice");
  std::vector<int> lengths(slices, units / slices);
  for (int i = 0; i < units % slices; ++i) ++lengths[i];
  return lengths;
}

std::vector<int> equal_time_slices(int units, int slices, const SliceTime& time) {
  CHECK(1 <= slices && slices <= units, "a unit for each slice");
  std::vector<int> best = equal_slices(units, slices);
  double low = 0, high = time(units, 0).value();
  for (int turn = 0; turn < kBisections; ++turn) {
    const double bound = (low + high) / 2;
    std::vector<int> lengths;
    int begin = 0;
    for (int after = slices - 1; after >= 0; --after) {  // slices that need a unit each
      lengths.push_back(longest_within(time, begin, units - begin - after, bound));
      begin += lengths.back();
      if (lengths.back() == 0) break;
    }
    const bool whole = begin == units && lengths.back() > 0;
    (whole ? high : low) = bound;
    if (whole) best = std::move(lengths);
  }
  return best;
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
