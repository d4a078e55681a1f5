// FairShare alone: shares by their definition, and ends by progressive filling, written apart.
// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing/fair_share.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "base/units.h"
#include "tests/sim/support/tree_network.h"
#include "tests/support/cases.h"
#include "tests/validate/support/progressive_filling.h"

namespace interlock::fair_share_test {
namespace {

using Ways = std::vector<std::vector<int>>;

TEST_CASE("two flows of which one crosses two links end as the example says") {
  FairShare flows({1, 2}, {{0}, {0, 1}});
  CHECK(flows.next_end(0) == kInfinity);
  flows.add(0, 1);
  flows.add(1, 3);
  CHECK(flows.next_end(0) == 2);
  CHECK(flows.rate(0) == 0.5);
  CHECK(flows.take_ended(2) == std::vector<int>{0});
  CHECK(flows.next_end(2) == 4);
  CHECK(flows.take_ended(4) == std::vector<int>{1});
  CHECK(flows.next_end(4) == kInfinity);
}

TEST_CASE("a flow that crosses a link twice takes it twice") {
  FairShare flows({6}, {{0, 0}, {0}});
  flows.add(0, 2);
  flows.add(1, 8);
  CHECK(flows.next_end(0) == 1);  // 2 a second each: 2 x 2 + 2 = 6
  CHECK(flows.take_ended(1) == std::vector<int>{0});
  CHECK(flows.next_end(1) == 2);
}

/// Flows of a drawn network, and when each begins; some have a link of their own, a cap.
struct DrawnFlows {
  std::vector<double> bandwidths;
  std::vector<FluidFlow> flows;
  Ways ways() const {
    Ways ways;
    for (const FluidFlow& flow : flows) ways.push_back(flow.links);
    return ways;
  }
};

DrawnFlows draw(std::uint64_t seed) {
  Random random(191, seed);
  const TreeNetwork tree = random_tree(random);
  DrawnFlows drawn{tree.bandwidths, {}};
  const int count = random.integer(1, seed % 10 == 0 ? 100 : 15);
  const bool whole = random.integer(0, 1) == 0;  // numbers, so that flows begin and end together
  const bool capped = random.integer(0, 2) == 0;
  while (static_cast<int>(drawn.flows.size()) < count) {
    const int from = random.integer(0, tree.leaves - 1), to = random.integer(0, tree.leaves - 1);
    if (from == to) continue;
    const double start = whole ? random.integer(0, 10) : 10 * random.uniform();
    const double size = whole ? random.integer(1, 12) : 0.1 + 12 * random.uniform();
    drawn.flows.push_back({1e-3 * start, 1e6 * size, tree.route(from, to)});
    std::vector<int>& links = drawn.flows.back().links;
    if (random.integer(0, 7) == 0) links.push_back(links.front());  // for an equal flow
    if (!capped || random.integer(0, 1) == 0) continue;
    links.push_back(static_cast<int>(drawn.bandwidths.size()));
    drawn.bandwidths.push_back(1e8 * random.integer(1, 20));
  }
  return drawn;
}

/// Says where shares are not those of max-min fairness: where a link carries more than it can, or a
/// flow crosses no full link on which none is faster. (Bertsekas and Gallager, Data Networks,
/// section 6.5.2, recalled: that is necessary and enough.)
std::string unfairness(const FairShare& shares, const DrawnFlows& drawn, const std::set<int>& all) {
  std::vector<double> used(drawn.bandwidths.size(), 0), fastest(used.size(), 0);
  for (const int flow : all) {
    for (const int link : drawn.flows[flow].links) {
      used[link] += shares.rate(flow);
      fastest[link] = std::max(fastest[link], shares.rate(flow));
    }
  }
  for (std::size_t l = 0; l < used.size(); ++l) {
    if (used[l] > drawn.bandwidths[l] * (1 + 1e-9))
      return "link " + std::to_string(l) + " is overfull";
  }
  for (const int flow : all) {
    const auto& way = drawn.flows[flow].links;
    const bool held_back = std::any_of(way.begin(), way.end(), [&](int link) {
      return used[link] >= drawn.bandwidths[link] * (1 - 1e-9) &&
             shares.rate(flow) >= fastest[link] * (1 - 1e-9);
    });
    if (!held_back) return "flow " + std::to_string(flow) + " could be faster";
  }
  return "";
}

TEST_CASE("shares are max-min fair, and flows end when progressive filling says") {
  std::size_t most = 0, together = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(150)); ++seed) {
    DrawnFlows drawn = draw(seed);
    INFO("seed " << seed);
    FairShare shares(drawn.bandwidths, drawn.ways());
    std::vector<int> waiting(drawn.flows.size());
    std::iota(waiting.begin(), waiting.end(), 0);
    const auto start_of = [&](int flow) { return drawn.flows[flow].start; };
    std::sort(waiting.begin(), waiting.end(),
              [&](int a, int b) { return start_of(a) > start_of(b); });
    std::vector<double> ends(drawn.flows.size(), 0);
    std::set<int> under_way;
    double now = 0;
    while (!waiting.empty() || !under_way.empty()) {
      const double end = shares.next_end(now);
      CHECK(unfairness(shares, drawn, under_way) == "");
      now = waiting.empty() ? end : std::min(end, start_of(waiting.back()));
      const std::vector<int> ended = shares.take_ended(now);
      REQUIRE(!(now == end && ended.empty()));
      together += ended.size() > 1 ? 1 : 0;
      for (const int flow : ended) {
        ends[flow] = now;
        under_way.erase(flow);
      }
      for (; !waiting.empty() && start_of(waiting.back()) <= now; waiting.pop_back()) {
        shares.add(waiting.back(), drawn.flows[waiting.back()].bytes);
        under_way.insert(waiting.back());
      }
      most = std::max(most, under_way.size());
    }
    fill_progressively(drawn.flows, drawn.bandwidths);
    for (std::size_t f = 0; f < ends.size(); ++f) {
      CHECK(ends[f] == doctest::Approx(drawn.flows[f].end).epsilon(1e-9));
    }
  }
  MESSAGE("up to " << most << " flows at once; " << together << " times several ended together");
  CHECK(static_cast<int>(most) > met_by_cases(50));
  CHECK(static_cast<int>(together) > met_by_cases(20));
}

}  // namespace
}  // namespace interlock::fair_share_test
