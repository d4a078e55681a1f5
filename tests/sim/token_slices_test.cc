// The search for token slices against every slicing there is.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/token_slices.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/random.h"

namespace interlock {
namespace {

using Table = std::vector<std::vector<double>>;  // (length, context), both from 0

SliceInputs inputs_of(const Table& table, int stages, int sequences) {
  return {.units = static_cast<int>(table.size()) - 1,
          .stages = stages,
          .sequences = sequences,
          .time = [&table](int length, int context) { return Seconds(table[length][context]); }};
}

/// Times of every slice of `units`: any at all, or ones that grow with length and context.
Table random_table(Random& random, int units, bool growing) {
  Table table(units + 1, std::vector<double>(units + 1));
  const double floor = random.uniform(), slope = random.uniform(), context = random.uniform() / 4;
  for (int length = 1; length <= units; ++length) {
    for (int before = 0; before + length <= units; ++before) {
      const double time = std::max(floor, slope * length + context * length * before);
      table[length][before] = growing ? time : random.uniform();
    }
  }
  return table;
}

/// The least M sum + (K - 1) max over all 2^(units - 1) ways to cut: bit i cuts after unit i.
double least_span(const Table& table, int stages, int sequences) {
  const int units = static_cast<int>(table.size()) - 1;
  double least = std::numeric_limits<double>::infinity();
  for (int cuts = 0; cuts < 1 << (units - 1); ++cuts) {
    double sum = 0, longest = 0;
    int begin = 0;
    for (int end = 1; end <= units; ++end) {
      if (end < units && !(cuts >> (end - 1) & 1)) continue;
      sum += table[end - begin][begin];
      longest = std::max(longest, table[end - begin][begin]);
      begin = end;
    }
    least = std::min(least, sequences * sum + (stages - 1) * longest);
  }
  return least;
}

TEST_CASE("balanced slices are as fast as the best of every way to cut") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(71, seed);
    const int units = random.integer(1, 10), stages = random.integer(1, 12);
    const int sequences = random.integer(1, 4);
    const Table table = random_table(random, units, seed % 2 == 0);
    const SliceInputs inputs = inputs_of(table, stages, sequences);
    const Slicing found = balanced_slices(inputs);
    const double least = least_span(table, stages, sequences);
    INFO("seed " << seed << ": " << units << " units, K " << stages << ", M " << sequences
                 << ": best of " << (1 << (units - 1)) << " slicings " << least << " s, found "
                 << found.span.value() << " s");
    CHECK(found.span.value() == doctest::Approx(least).epsilon(1e-12));
    CHECK(span_of(inputs, found.lengths).value() == doctest::Approx(least).epsilon(1e-12));
    CHECK(std::accumulate(found.lengths.begin(), found.lengths.end(), 0) == units);
  }
}

/// A layer of width h: launches, then linear work and attention of l tokens that see c + l / 2.
SliceTime layer_time(double floor, double width) {
  return [=](int length, int context) {
    return Seconds(floor + length * (1 + (context + length / 2.0) / (6 * width)));
  };
}

TEST_CASE("slices become shorter along a sequence, because attention has more to read") {
  for (const int stages : {2, 8, 40}) {
    for (const double floor : {2.0, 8.0, 16.0}) {
      const std::vector<int> lengths =
          balanced_slices({.units = 96, .stages = stages, .time = layer_time(floor, 16)}).lengths;
      std::string text;
      for (const int length : lengths) text += " " + std::to_string(length);
      INFO("K " << stages << ", floor " << floor << ":" << text);
      CHECK(lengths.size() > 1);
      CHECK(lengths.front() > lengths.back());
      for (std::size_t i = 1; i < lengths.size(); ++i) CHECK(lengths[i] <= lengths[i - 1]);
    }
  }
}

TEST_CASE("slices that need no context are equal, as many as their fixed cost allows") {
  // n equal slices of L units that take a + l: M (n a + L) + (K - 1)(a + L / n), least for
  // n = sqrt((K - 1) L / (M a)): 8 for K = 13, L = 48, M a = 9.
  const SliceTime time = [](int length, int) { return Seconds(9.0 + length); };
  const Slicing found = balanced_slices({.units = 48, .stages = 13, .time = time});
  CHECK(found.lengths == std::vector<int>(8, 6));
  CHECK(found.span == Seconds(8 * 9 + 48 + 12 * (9 + 6)));
}

TEST_CASE("more sequences in a step leave less to gain from slicing") {
  std::size_t before = 1000;
  for (const int sequences : {1, 2, 4, 16, 256}) {
    const std::size_t slices =
        balanced_slices(
            {.units = 64, .stages = 16, .sequences = sequences, .time = layer_time(4, 64)})
            .lengths.size();
    INFO(sequences << " sequences: " << slices << " slices");
    CHECK(slices <= before);
    before = slices;
  }
  CHECK(before == 1);
}

TEST_CASE("equal slices differ by a unit at most") {
  CHECK(equal_slices(8, 4) == std::vector<int>{2, 2, 2, 2});
  CHECK(equal_slices(10, 4) == std::vector<int>{3, 3, 2, 2});
  CHECK(equal_slices(3, 1) == std::vector<int>{3});
}

}  // namespace
}  // namespace interlock
