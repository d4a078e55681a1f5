// Links that can never hold anything back: rates and meetings without them, by brute force.
// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing/binding_links.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/random.h"

namespace interlock::binding_links_test {
namespace {

using Ways = std::vector<std::vector<int>>;

Program program_of(const Ways& ways, const std::vector<double>& bandwidths) {
  Program program;
  for (const auto& way : ways) program.wires.push_back({.links = way, .shared = true});
  for (const double bandwidth : bandwidths) {
    program.links.push_back({"link", BytesPerSecond(bandwidth)});
  }
  return program;
}

/// Max-min fair rates by progressive filling: all rates grow alike, and those stop whose link is
/// full. `wires` are the ones that send.
std::vector<double> filled(const Ways& ways, std::vector<double> left,
                           const std::vector<int>& wires) {
  std::vector<double> rates(ways.size(), 0);
  std::vector<int> growing = wires;
  while (!growing.empty()) {
    std::vector<int> crossing(left.size(), 0);
    for (const int wire : growing) {
      for (const int link : ways[wire]) ++crossing[link];
    }
    double step = 1e300;
    for (std::size_t l = 0; l < left.size(); ++l) {
      if (crossing[l] > 0) step = std::min(step, left[l] / crossing[l]);
    }
    for (const int wire : growing) rates[wire] += step;
    for (std::size_t l = 0; l < left.size(); ++l) left[l] -= step * crossing[l];
    const auto held = [&](int wire) {
      return std::any_of(ways[wire].begin(), ways[wire].end(),
                         [&](int link) { return left[link] < 1e-9; });
    };
    growing.erase(std::remove_if(growing.begin(), growing.end(), held), growing.end());
  }
  return rates;
}

bool meet(const std::vector<int>& way, const std::vector<int>& other) {
  return std::any_of(way.begin(), way.end(), [&](int link) {
    return std::find(other.begin(), other.end(), link) != other.end();
  });
}

TEST_CASE("ports behind one card are left out, unless they are narrower") {
  // Wires 0 and 1 leave by ports 0 and 1 and the card 2, wire 2 by port 3 and a card of its own, 4.
  const Ways ways = {{0, 2}, {1, 2}, {3, 4}};
  CHECK(binding_links(program_of(ways, {9, 9, 4, 9, 4})) == Ways{{2}, {2}, {4}});
  CHECK(binding_links(program_of(ways, {9, 3, 4, 9, 4})) == Ways{{2}, {1, 2}, {4}});
  // As fast, and crossed by the same: one of the two is enough.
  CHECK(binding_links(program_of(ways, {9, 9, 4, 4, 4})) == Ways{{2}, {2}, {3}});
}

TEST_CASE("a port that also leads elsewhere is kept") {
  const Ways ways = {{0, 2}, {1, 2}, {0, 3}};  // port 0: to the card 2 and to the port 3
  CHECK(binding_links(program_of(ways, {9, 9, 4, 9})) == Ways{{0, 2}, {2}, {0}});
}

TEST_CASE("wires that share nothing have no binding links") {
  Program program = program_of({{0, 1}, {1, 2}}, {1, 1, 1});
  for (Wire& wire : program.wires) wire.shared = false;
  CHECK(binding_links(program) == Ways{{}, {}});
}

TEST_CASE("rates are max-min fair over all links, whichever wires send") {
  int left_out = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(57, seed);
    std::vector<double> bandwidths(random.integer(2, 7));
    for (double& bandwidth : bandwidths) bandwidth = random.integer(1, 6);
    Ways ways(random.integer(2, 8));
    std::vector<int> sending;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      for (std::size_t l = 0; l < bandwidths.size(); ++l) {
        for (int times = random.integer(0, 9); times < 4; times += 3) {  // once, at times twice
          ways[w].push_back(static_cast<int>(l));
        }
      }
      if (ways[w].empty()) ways[w].push_back(0);
      if (random.uniform() < 0.7) sending.push_back(static_cast<int>(w));
    }
    const Ways binding = binding_links(program_of(ways, bandwidths));
    const auto all = filled(ways, bandwidths, sending);
    const auto fewer = filled(binding, bandwidths, sending);
    std::string derivation =
        "seed " + std::to_string(seed) + "; rates over all links, over binding:";
    for (const int wire : sending) {
      derivation += " " + std::to_string(all[wire]) + " = " + std::to_string(fewer[wire]);
    }
    INFO(derivation);
    for (std::size_t w = 0; w < ways.size(); ++w) {
      left_out += static_cast<int>(ways[w].size() - binding[w].size());
      CHECK(fewer[w] == doctest::Approx(all[w]).epsilon(1e-9));
      for (std::size_t v = 0; v < ways.size(); ++v) {
        CHECK(meet(ways[w], ways[v]) == meet(binding[w], binding[v]));
      }
    }
  }
  CHECK(left_out > 1000);
}

}  // namespace
}  // namespace interlock::binding_links_test
