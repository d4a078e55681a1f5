// Halo exchange beside sets of indices: what the taps of a window touch, and who has it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/random.h"
#include "tests/hardware/movement.h"

namespace interlock::halo_test {
namespace {

using Point = std::vector<std::int64_t>;

struct Case {
  Point shape;
  std::vector<int> cuts;
  std::vector<Window> windows;
};

/// Elements of an evenly cut length that part `index` has, as a set: dealt out, then lined up.
std::set<std::int64_t> dealt(std::int64_t length, int parts, int index) {
  std::set<std::int64_t> mine;
  std::int64_t at = 0;
  for (int part = 0; part < parts; ++part) {
    for (std::int64_t i = part; i < length; i += parts, ++at) {
      if (part == index) mine.insert(at);
    }
  }
  return mine;
}

/// From the first to the last tap of this part's outputs, where that is no padding.
std::set<std::int64_t> touched(std::int64_t length, int parts, int index, const Window& window) {
  std::int64_t outputs = 0;
  const auto last_tap = [&](std::int64_t output) {
    return output * window.stride - window.padding +
           std::int64_t{window.dilation} * (window.kernel - 1);
  };
  while (last_tap(outputs) < length + window.padding) ++outputs;
  std::set<std::int64_t> taps;  // padding too
  for (const std::int64_t output : dealt(outputs, parts, index)) {
    for (int tap = 0; tap < window.kernel; ++tap) {
      taps.insert(output * window.stride - window.padding + std::int64_t{tap} * window.dilation);
    }
  }
  std::set<std::int64_t> found;
  if (taps.empty()) return found;
  for (std::int64_t at = *taps.begin(); at <= *taps.rbegin(); ++at) {
    if (at >= 0 && at < length) found.insert(at);
  }
  return found;
}

using Volumes = std::map<std::pair<int, int>, double>;

struct Ranks {
  std::vector<std::vector<int>> place;                         // by rank
  std::vector<std::vector<std::set<std::int64_t>>> own, need;  // by rank, by axis
  std::vector<std::set<Point>> held;                           // by rank
};

bool inside(const Point& point, const std::vector<std::set<std::int64_t>>& box) {
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    if (!box[axis].contains(point[axis])) return false;
  }
  return true;
}

void for_each_point(const Point& shape, auto visit) {
  Point point(shape.size(), 0);
  while (true) {
    visit(point);
    std::size_t axis = shape.size();
    while (axis > 0 && ++point[axis - 1] == shape[axis - 1]) point[--axis] = 0;
    if (axis == 0) return;
  }
}

Ranks deal_out(const Case& c) {
  Ranks ranks;
  const Point cuts(c.cuts.begin(), c.cuts.end());
  for_each_point(cuts, [&](const Point& at) {
    const std::vector<int> place(at.begin(), at.end());
    ranks.place.push_back(place);
    auto& own = ranks.own.emplace_back();
    auto& need = ranks.need.emplace_back();
    for (std::size_t axis = 0; axis < place.size(); ++axis) {
      own.push_back(dealt(c.shape[axis], c.cuts[axis], place[axis]));
      need.push_back(touched(c.shape[axis], c.cuts[axis], place[axis], c.windows[axis]));
    }
    auto& held = ranks.held.emplace_back();
    for_each_point(c.shape, [&](const Point& point) {
      if (inside(point, own)) held.insert(point);
    });
  });
  return ranks;
}

/// One dimension: ranks that differ in it alone give each other what lacks along it, and keep then
/// what they need along it. Returns the elements sent.
Volumes exchange(Ranks& ranks, std::size_t axis) {
  Volumes sent;
  const auto before = ranks.held;
  for (std::size_t to = 0; to < before.size(); ++to) {
    for (std::size_t from = 0; from < before.size(); ++from) {
      std::vector<int> moved = ranks.place[from];
      moved[axis] = ranks.place[to][axis];
      if (from == to || moved != ranks.place[to]) continue;
      for (const Point& point : before[from]) {
        if (!ranks.need[to][axis].contains(point[axis])) continue;
        CHECK(ranks.held[to].insert(point).second);
        sent[{static_cast<int>(from), static_cast<int>(to)}] += 1;
      }
    }
    std::erase_if(ranks.held[to],
                  [&](const Point& point) { return !ranks.need[to][axis].contains(point[axis]); });
  }
  return sent;
}

void check_case(const Case& c) {
  Ranks ranks = deal_out(c);
  CartesianPartition partition{c.cuts, {}};
  for (std::size_t i = 0; i < ranks.place.size(); ++i) {
    partition.ranks.push_back(static_cast<int>(i));
  }
  const Movement movement = halo_exchange({c.shape, Bytes(2)}, partition, c.windows);
  REQUIRE_EQ(movement.steps.size(), c.shape.size());
  for (std::size_t axis = 0; axis < c.shape.size(); ++axis) {
    CAPTURE(axis);
    Volumes expected = exchange(ranks, axis);
    CHECK_EQ(movement.steps[axis].size(), expected.size());
    for (const Flow& flow : movement.steps[axis]) {
      CAPTURE(flow.from);
      CAPTURE(flow.to);
      CHECK_EQ(flow.bytes.value(), 2 * expected[{flow.from, flow.to}]);
    }
  }
  for (std::size_t rank = 0; rank < ranks.held.size(); ++rank) {
    std::size_t box = 1;
    for (const auto& need : ranks.need[rank]) box *= need.size();
    CHECK_EQ(ranks.held[rank].size(), box);  // corners too
  }
}

}  // namespace

TEST_CASE("halos are uneven, may be zero, and negative where a rank has what it does not need") {
  struct Expected {
    std::int64_t length;
    int parts;
    Window window;
    std::vector<std::pair<std::int64_t, std::int64_t>> halos;
  };
  const std::vector<Expected> cases = {
      // Kernel 5, padded to keep the length: 2 on both sides but at the ends. Parts 4, 4, 3.
      {11, 3, {5, 1, 2, 1}, {{0, 2}, {2, 2}, {2, 0}}},
      // Without padding: outputs 0..6 in parts 3, 2, 2 read inputs 0..6, 3..8, 5..10.
      {11, 3, {5, 1, 0, 1}, {{0, 3}, {1, 1}, {3, 0}}},
      // Pooling by 2: outputs 0..4 in parts 2, 2, 1 read 0..3, 4..7, 8..9; none reads 10.
      {11, 3, {2, 2, 0, 1}, {{0, 0}, {0, 0}, {0, -1}}},
      // Pooling by 2: inputs start at 0, 4, 8, 11, 14, 17, outputs read from 0, 4, 8, 12, 16, 18.
      {20, 6, {2, 2, 0, 1}, {{0, 0}, {0, 0}, {0, 1}, {-1, 2}, {-2, 1}, {-1, 0}}},
  };
  for (const Expected& expected : cases) {
    for (int part = 0; part < expected.parts; ++part) {
      CAPTURE(expected.length);
      CAPTURE(part);
      const Halo halo = halo_of(expected.length, expected.parts, part, expected.window);
      CHECK_EQ(halo.left, expected.halos[static_cast<std::size_t>(part)].first);
      CHECK_EQ(halo.right, expected.halos[static_cast<std::size_t>(part)].second);
    }
  }
}

TEST_CASE("a 3 x 3 convolution on 2 x 2 ranks: width x cross-section, the corner in two hops") {
  // 8 x 8 in four 4 x 4 parts, halo 1. First rows of 4, then columns of 4 + 1.
  const Movement movement =
      halo_exchange({{8, 8}, Bytes(4)}, {{2, 2}, {0, 1, 2, 3}}, {{3, 1, 1, 1}, {3, 1, 1, 1}});
  REQUIRE_EQ(movement.steps.size(), 2);
  for (const Flow& flow : movement.steps[0]) CHECK_EQ(flow.bytes, Bytes(4 * 4));
  for (const Flow& flow : movement.steps[1]) CHECK_EQ(flow.bytes, Bytes(4 * 5));
  CHECK_EQ(volume(movement), Bytes(4 * 4 * 4 + 4 * 4 * 5));
  CHECK_EQ(volume(adjoint(movement)), volume(movement));
  CHECK_EQ(adjoint(movement).steps[0].size(), 4);
  CHECK_EQ(adjoint(movement).steps[0][0].bytes, Bytes(4 * 5));
}

TEST_CASE("halo exchange moves what index sets say, in one to three dimensions") {
  check_case({{11}, {3}, {{5, 1, 2, 1}}});
  check_case({{20}, {6}, {{2, 2, 0, 1}}});
  check_case({{9, 10}, {3, 2}, {{3, 1, 1, 1}, {2, 2, 0, 1}}});
  check_case({{6, 5, 4}, {2, 2, 2}, {{3, 1, 1, 1}, {3, 2, 0, 1}, {1, 1, 0, 1}}});
  MESSAGE("a kernel wider than a neighbour reaches beyond it");
  check_case({{7}, {5}, {{5, 1, 2, 1}}});
}

TEST_CASE("halo exchange moves what index sets say, in shapes that chance chooses") {
  Random random(11, 3);
  for (int round = 0; round < 60; ++round) {
    Case c;
    const int dimensions = random.integer(1, 2);
    for (int axis = 0; axis < dimensions; ++axis) {
      c.shape.push_back(random.integer(8, 16));
      c.cuts.push_back(random.integer(1, 4));
      Window window{random.integer(1, 4), random.integer(1, 3), 0, random.integer(1, 2)};
      window.padding = random.integer(0, window.dilation * (window.kernel - 1) / 2);
      c.windows.push_back(window);
    }
    CAPTURE(round);
    check_case(c);
  }
}

}  // namespace interlock::halo_test
