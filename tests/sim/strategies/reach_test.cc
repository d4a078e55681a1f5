// Losses that each reach a number of stages of their own, and modules of several stages.
// SPDX-License-Identifier: Apache-2.0
//
// K stages, N-wise; the papers count stages from 1, roles from 0.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "sim/plan/schedules/strategy.h"
#include "tests/sim/strategies/role_text.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::reach_test {
namespace {

Strategy with_reach(std::vector<int> n_of_losses) {
  Strategy strategy{.kind = StrategyKind::Interlocking};
  set_reach(strategy, std::move(n_of_losses));
  return strategy;
}

TEST_CASE("roles of four stages whose losses each have an N, written out") {
  const auto roles = [](const Strategy& s, bool list = false) {
    return text(make_roles(s, 4, list));
  };
  CHECK(roles(with_reach({1, 2, 1, 2})) == "(1w) h(1w<) (3w) (3w<)");
  CHECK(roles(with_reach({1, 1, 3, 1})) == "(2w) (2w<) h(2w<) (3w)");
  CHECK(roles(with_reach({1, 2, 3, 3})) == "(2w) (2<3w) h(2<3w<) (3w<)");
  CHECK(roles(with_reach({1, 1, 1, 3})) == "h(0w) (3w) (3w<) (3w<)");
  CHECK(roles(with_reach({1, 1, 2, 3})) == "h(0w) (3w) (3w<) (3w<)");
  CHECK(roles(with_reach({1, 1, 2, 4})) == roles(n_wise(4)));
  Strategy all = with_reach({1, 1, 2, 3});
  all.all_heads = true;
  CHECK(roles(all) == "h(0w) h(23w) h(2<3w<) (3w<)");
  CHECK(roles(all, true) == "h(0w) h(123w) h(2<3w<) (3w<)");
  Strategy sum = with_reach({1, 1, 3, 2});
  sum.gradient = GradientMode::Sum;
  // Stage 0 adds losses 0 and 2, stage 1 losses 1 and 2, stage 2 losses 2 and 3.
  CHECK(roles(sum) == "h+(2w) h+(2w<) h+(2<3w) (3w<)");
  sum = with_reach({1, 1, 2, 4});
  sum.gradient = GradientMode::Sum;
  // Loss 2 stops at stage 1, loss 3 goes on to stage 0.
  CHECK(roles(sum) == "h+(3w) h++(3w<) h+(2<3w<) (3w<)");
}

TEST_CASE("numbers of losses that say the same as one N are that N, and have its name") {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int n = 1; n <= stages; ++n) {
      CHECK(with_reach(std::vector<int>(stages, n)) == n_wise(n));
      std::vector<int> fewer;
      for (int loss = 0; loss < stages; ++loss) fewer.push_back(std::min(n, loss + 1));
      CHECK(with_reach(fewer) == n_wise(n));
    }
  }
  CHECK(name_of(with_reach({2, 2, 2})) == "pairwise");
  CHECK(name_of(with_reach({1, 1, 2, 9})) == "1-1-2-4-wise");
}

/// Calls `visit` with every list of 1 to i + 1 for loss i.
void for_reaches(int stages, const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> n(stages, 1);
  for (int i = 0; i < stages;) {
    visit(n);
    for (i = 0; i < stages && n[i] == i + 1; ++i) n[i] = 1;
    if (i < stages) ++n[i];
  }
}

TEST_CASE(
    "a stage is trained by the losses that cross N - 1 boundaries to it, for every list of N") {
  for_reaches(6, [](const std::vector<int>& n) {
    for (const auto mode : {GradientMode::Furthest, GradientMode::Sum}) {
      Strategy strategy = with_reach(n);
      strategy.gradient = mode;
      const std::vector<StageRole> roles = make_roles(strategy, 6, false);
      std::vector<std::vector<int>> trains(6);
      std::vector<int> lowest(6, 6);
      for (int stage = 5; stage >= 0; --stage) {
        for (int loss = stage; loss < 6; ++loss) {
          if (loss - stage <= n[loss] - 1) trains[stage].push_back(loss);
        }
        if (mode == GradientMode::Furthest) trains[stage] = {trains[stage].back()};
        for (const int loss : trains[stage]) lowest[loss] = stage;
      }
      INFO(name_of(strategy));
      for (int stage = 0; stage < 6; ++stage) {
        const StageRole& role = roles[stage];
        CHECK(role.head == (stage < 5 && lowest[stage] <= stage));
        CHECK(role.summed_gradients + 1 == static_cast<int>(trains[stage].size()));
        CHECK(role.traversals.back().loss == trains[stage].back());
        std::vector<int> come = role.only_added, expected;
        for (const Traversal& t : role.traversals) {
          come.push_back(t.loss);
          CHECK(t.to_previous == (lowest[t.loss] < stage));
        }
        for (int loss = stage; loss < 6; ++loss) {
          if (lowest[loss] <= stage) expected.push_back(loss);
        }
        std::sort(come.begin(), come.end());
        CHECK(come == expected);
      }
    }
  });
}

/// Returns `n`-wise training of modules of `length` stages.
Strategy modules(int n, int length, GradientMode gradient = GradientMode::Furthest) {
  Strategy strategy = n_wise(n);
  strategy.module_stages = length;
  strategy.gradient = gradient;
  return strategy;
}

TEST_CASE("roles of modules of two stages, written out") {
  const auto roles = [](const Strategy& s) { return text(make_roles(s, 6, false)); };
  CHECK(roles(modules(1, 2)) == "(1w) h(1w<) (3w) h(3w<) (5w) (5w<)");
  CHECK(roles(modules(2, 2)) == "(3w) (3w<) (3<5w) h(3<5w<) (5w<) (5w<)");
  CHECK(roles(modules(2, 2, GradientMode::Sum)) == "+(3w) h+(1<3w<) +(3<5w) h+(3<5w<) (5w<) (5w<)");
  CHECK(name_of(modules(2, 2)) == "pairwise of 2-stage modules");
  CHECK(name_of(modules(3, 1)) == "3-wise");
}

TEST_CASE("modules of several stages are losses at their ends alone, that reach whole modules") {
  for (int length = 1; length <= 4; ++length) {
    for (int count = 1; count <= 4; ++count) {
      const int stages = length * count;
      const auto roles = [&](const Strategy& s) { return text(make_roles(s, stages, false)); };
      for (int n = 1; n <= count + 1; ++n) {
        std::vector<int> reach(stages, 1);  // of a loss that trains nothing
        for (int end = length - 1; end < stages; end += length) reach[end] = n * length;
        CHECK(roles(modules(n, length)) == roles(with_reach(reach)));
      }
      const Strategy chunked = {.kind = StrategyKind::Chunked, .chunks = count};
      CHECK(roles(modules(1, length)) == roles(chunked));
      CHECK(roles(modules(count, length)) == roles({}));
    }
  }
}

}  // namespace
}  // namespace interlock::reach_test
