// The search for token slices against every slicing there is.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/token_slices.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "base/random.h"

namespace interlock::token_slices_test {
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

/// The sum and the longest slice of all 2^(units - 1) ways to cut a sequence: bit i cuts after
/// unit i.
using Ways = std::vector<std::pair<double, double>>;

Ways ways_to_cut(const Table& table) {
  const int units = static_cast<int>(table.size()) - 1;
  Ways ways;
  for (int cuts = 0; cuts < 1 << (units - 1); ++cuts) {
    double sum = 0, longest = 0;
    int begin = 0;
    for (int end = 1; end <= units; ++end) {
      if (end < units && !(cuts >> (end - 1) & 1)) continue;
      sum += table[end - begin][begin];
      longest = std::max(longest, table[end - begin][begin]);
      begin = end;
    }
    ways.push_back({sum, longest});
  }
  return ways;
}

/// The least M sum + (K - 1) max over all ways to cut.
double least_span(const Table& table, int stages, int sequences) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [sum, longest] : ways_to_cut(table)) {
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

/// The least sum + (K - 1) max over all multisets of parts, each cut in any way whatever.
struct EveryDivision {
  const std::vector<Ways>& ways;  // (samples - 1)
  double waits;                   // K - 1
  double least = std::numeric_limits<double>::infinity();
  int count = 0;

  void go(int samples, std::size_t largest, double sum, double longest) {
    if (samples == 0) {
      ++count;
      least = std::min(least, sum + waits * longest);
      return;
    }
    for (std::size_t size = std::min<std::size_t>(samples, largest); size >= 1; --size) {
      for (const auto& [more, most] : ways[size - 1]) {
        go(samples - static_cast<int>(size), size, sum + more, std::max(longest, most));
      }
    }
  }
};

/// A table for parts of each size up to `samples`.
std::vector<Table> random_tables(Random& random, int units, int samples, bool growing) {
  std::vector<Table> tables;
  const Table one = random_table(random, units, true);
  for (int size = 1; size <= samples; ++size) {
    tables.push_back(growing ? one : random_table(random, units, false));
    if (!growing) continue;
    for (auto& row : tables.back()) {
      for (double& time : row) time *= 0.4 + 0.6 * size;  // larger parts are more efficient
    }
  }
  return tables;
}

TEST_CASE("a divided batch is as fast as the best of every division, each part cut in every way") {
  int mixed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(78, seed);
    const int units = random.integer(1, 3), stages = random.integer(1, 8);
    const int samples = random.integer(1, 5);
    const std::vector<Table> tables = random_tables(random, units, samples, seed % 2 == 0);
    StepInputs inputs{.units = units, .stages = stages, .samples = samples};
    std::vector<Ways> ways;
    for (int size = 1; size <= samples; ++size) {
      const Table& table = tables[size - 1];
      inputs.sizes.push_back({size, inputs_of(table, stages, 1).time});
      ways.push_back(ways_to_cut(table));
    }
    EveryDivision every{.ways = ways, .waits = stages - 1.0};
    every.go(samples, samples, 0, 0);
    const Division found = balanced_batches(inputs);
    INFO("seed " << seed << ": " << units << " units, K " << stages << ", B " << samples << ": of "
                 << every.count << " " << every.least << " s, found " << found.span.value());
    CHECK(found.span.value() == doctest::Approx(every.least).epsilon(1e-12));
    double sum = 0, longest = 0;
    int divided = 0;
    for (const SlicedBatch& part : found.batches) {
      divided += part.samples;
      int begin = 0;
      for (const int length : part.lengths) {
        const double time = tables[part.samples - 1][length][begin];
        sum += time;
        longest = std::max(longest, time);
        begin += length;
      }
      CHECK(begin == units);
      CHECK(part.samples <= found.batches.front().samples);
    }
    CHECK(divided == samples);
    CHECK(sum + (stages - 1) * longest == doctest::Approx(every.least).epsilon(1e-12));
    if (found.batches.back().samples < found.batches.front().samples) ++mixed;
  }
  CHECK(mixed >= 20);  // that the search is not only tried on steps of one size
}

TEST_CASE("of one size only, a divided batch is that many sequences of balanced slices") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(79, seed);
    const int units = random.integer(1, 8), stages = random.integer(1, 12);
    const int parts = random.integer(1, 5);
    const Table table = random_table(random, units, true);
    const Slicing one = balanced_slices(inputs_of(table, stages, parts));
    const Division all = balanced_batches({.units = units,
                                           .stages = stages,
                                           .samples = 3 * parts,
                                           .sizes = {{3, inputs_of(table, stages, 1).time}}});
    INFO("seed " << seed);
    CHECK(all.span.value() == doctest::Approx(one.span.value()).epsilon(1e-12));
    CHECK(static_cast<int>(all.batches.size()) == parts);
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

TEST_CASE("slices of equal time end where n-ths of the whole work end, and none is longer") {
  // A slice of l behind c takes a l + b l (c + l / 2): the first x units take a x + b x^2 / 2,
  // whose inverse tells the ends. Whole units move an end by one at most.
  const double a = 3e-3, b = 5e-6;
  const SliceTime time = [=](int length, int context) {
    return Seconds(a * length + b * length * (context + length / 2.0));
  };
  for (const int units : {128, 1000, 1024}) {
    for (const int slices : {1, 2, 3, 8, 50}) {
      const std::vector<int> lengths = equal_time_slices(units, slices, time);
      REQUIRE(lengths.size() == static_cast<std::size_t>(slices));
      const double share = time(units, 0).value() / slices;
      int end = 0;
      for (int i = 1; i <= slices; ++i) {
        const int length = lengths[i - 1];
        // The work of a last unit is what rounding can add.
        CHECK(time(length, end).value() <= share + a + b * units);
        end += length;
        const double work = share * i;
        const double exact = (std::sqrt(a * a + 2 * b * work) - a) / b;
        CHECK(std::abs(end - exact) <= slices + 1);
      }
      CHECK(end == units);
    }
  }
}

TEST_CASE("the longest slice of equal time is the shortest that any slicing has") {
  const SliceTime time = [](int length, int context) {
    return Seconds(std::max(2.0, length * (1 + context / 4.0)));
  };
  for (const auto& [units, slices] : {std::pair(9, 3), {10, 4}, {12, 2}, {7, 7}}) {
    double least = kInfinity;  // of all slicings, tried one by one
    const std::function<void(int, int, double)> cut = [&, units = units](int begin, int left,
                                                                         double longest) {
      if (left == 0 && begin == units) least = std::min(least, longest);
      for (int length = 1; left > 0 && begin + length <= units; ++length) {
        cut(begin + length, left - 1, std::max(longest, time(length, begin).value()));
      }
    };
    cut(0, slices, 0);
    double longest = 0;
    int begin = 0;
    for (const int length : equal_time_slices(units, slices, time)) {
      longest = std::max(longest, time(length, begin).value());
      begin += length;
    }
    CHECK(longest == least);
  }
}

TEST_CASE("equal slices differ by a unit at most") {
  CHECK(equal_slices(8, 4) == std::vector<int>{2, 2, 2, 2});
  CHECK(equal_slices(10, 4) == std::vector<int>{3, 3, 2, 2});
  CHECK(equal_slices(3, 1) == std::vector<int>{3});
}

}  // namespace
}  // namespace interlock::token_slices_test
