// Roles of stages: which losses train what, and which gradients cross boundaries.
// SPDX-License-Identifier: Apache-2.0
//
// K stages, N-wise; the papers count stages from 1, roles from 0.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/schedules/strategy.h"
#include "tests/sim/strategies/role_text.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::roles_test {
namespace {

struct RoleCase {
  Strategy strategy;
  int stages = 1;
  bool list = false;
};

std::string text(const RoleCase& c) {
  return name_of(c.strategy) + ", " + std::to_string(c.stages) + " stages, gradient " +
         std::to_string(static_cast<int>(c.strategy.gradient)) +
         (c.strategy.all_heads ? ", all heads" : "") + (c.list ? ", list" : "") +
         (c.strategy.recompute_shared_forward ? ", recomputed" : "");
}

/// Every kind of strategy with up to nine stages.
void for_cases(const std::function<void(const RoleCase&, const std::vector<StageRole>&)>& visit) {
  const auto both_forms = [&](const Strategy& strategy, int stages) {
    for (const bool list : {false, true}) {
      const RoleCase c{strategy, stages, list};
      INFO(text(c));
      visit(c, make_roles(strategy, stages, list));
    }
  };
  for (int stages = 1; stages <= 9; ++stages) {
    for (const auto kind : {StrategyKind::Global, StrategyKind::Local, StrategyKind::Greedy}) {
      both_forms({.kind = kind}, stages);
    }
    for (int chunks = 1; chunks <= stages; ++chunks) {
      if (stages % chunks == 0)
        both_forms({.kind = StrategyKind::Chunked, .chunks = chunks}, stages);
    }
    for (const auto gradient : {GradientMode::Furthest, GradientMode::Sum, GradientMode::Mean}) {
      for (const bool flag : {false, true}) {
        both_forms({.kind = StrategyKind::Overlapping,
                    .gradient = gradient,
                    .recompute_shared_forward = flag},
                   stages);
        for (int n = 1; n <= 9; ++n) {
          Strategy strategy = n_wise(n, flag);
          strategy.gradient = gradient;
          for (strategy.module_stages = 1; strategy.module_stages <= 3; ++strategy.module_stages) {
            if (stages % strategy.module_stages == 0) both_forms(strategy, stages);
          }
        }
      }
    }
  }
}

const Traversal* find(const StageRole& role, int loss) {
  for (const Traversal& traversal : role.traversals) {
    if (traversal.loss == loss) return &traversal;
  }
  return nullptr;
}

int gradients_down(const StageRole& role) {
  return static_cast<int>(std::count_if(role.traversals.begin(), role.traversals.end(),
                                        [](const Traversal& t) { return t.to_previous; }));
}

TEST_CASE("the last traversal of a stage, and no other, makes weight gradients") {
  for_cases([](const RoleCase&, const std::vector<StageRole>& roles) {
    for (const StageRole& role : roles) {
      REQUIRE_FALSE(role.traversals.empty());
      for (const Traversal& t : role.traversals) {
        CHECK(t.weights == (&t == &role.traversals.back()));
      }
    }
  });
}

TEST_CASE("traversals come nearest loss first, and no loss lies below its stage") {
  for_cases([](const RoleCase&, const std::vector<StageRole>& roles) {
    for (std::size_t stage = 0; stage < roles.size(); ++stage) {
      int before = static_cast<int>(stage) - 1;
      for (const Traversal& t : roles[stage].traversals) {
        CHECK(t.loss > before);
        before = t.loss;
      }
      CHECK(before < static_cast<int>(roles.size()));
    }
  });
}

TEST_CASE("a stage sends a gradient down if and only if the stage below pushes that loss") {
  for_cases([](const RoleCase&, const std::vector<StageRole>& roles) {
    CHECK(gradients_down(roles.front()) == 0);
    for (int stage = 1; stage < static_cast<int>(roles.size()); ++stage) {
      for (const Traversal& t : roles[stage].traversals) {
        const auto& added = roles[stage - 1].only_added;
        const bool adds = std::find(added.begin(), added.end(), t.loss) != added.end();
        CHECK(t.to_previous == (adds || find(roles[stage - 1], t.loss) != nullptr));
      }
      for (const Traversal& t : roles[stage - 1].traversals) {
        if (t.loss >= stage) CHECK(find(roles[stage], t.loss) != nullptr);
      }
    }
  });
}

TEST_CASE("a stage pushes its own loss only if it owns that loss's head, the last stage always") {
  for_cases([](const RoleCase&, const std::vector<StageRole>& roles) {
    const int last = static_cast<int>(roles.size()) - 1;
    CHECK_FALSE(roles[last].head);
    CHECK(find(roles[last], last) != nullptr);
    for (int stage = 0; stage < last; ++stage) {
      if (find(roles[stage], stage) != nullptr) CHECK(roles[stage].head);
    }
  });
}

TEST_CASE("the weights of stage i are trained by loss min(i + N - 1, K), by i or by K") {
  for_cases([](const RoleCase& c, const std::vector<StageRole>& roles) {
    for (int stage = 0; stage < c.stages; ++stage) {
      const int loss = roles[stage].traversals.back().loss;
      switch (c.strategy.kind) {
        case StrategyKind::Global:
          CHECK(loss == c.stages - 1);
          break;
        case StrategyKind::Local:
        case StrategyKind::Greedy:
          CHECK(loss == stage);
          break;
        case StrategyKind::Interlocking: {
          const int length = c.strategy.module_stages, module = stage / length;
          CHECK(loss == std::min(length * (module + c.strategy.n_wise) - 1, c.stages - 1));
          break;
        }
        default:
          break;
      }
    }
  });
}

TEST_CASE("no head is owned for nothing, except where all heads are asked for") {
  for_cases([](const RoleCase& c, const std::vector<StageRole>& roles) {
    if (c.strategy.all_heads) return;
    for (int head = 0; head < c.stages - 1; ++head) {
      if (!roles[head].head) continue;
      bool trains = false;
      for (int stage = 0; stage <= head; ++stage) {
        const int furthest = roles[stage].traversals.back().loss;
        const int nearest = furthest - roles[stage].summed_gradients * c.strategy.module_stages;
        trains = trains || (nearest <= head && head <= furthest);
      }
      CHECK(trains);
    }
  });
}

TEST_CASE("N-wise with the minimum owns K - N heads and pushes (K - N)(N - 1) gradients more") {
  for (int stages = 1; stages <= 9; ++stages) {
    for (int n = 1; n <= 9; ++n) {
      int heads = 0, more = 0;
      for (const StageRole& role : make_roles(n_wise(n), stages, false)) {
        heads += role.head ? 1 : 0;
        more += static_cast<int>(role.traversals.size()) - 1;
      }
      INFO(n << "-wise, " << stages << " stages");
      CHECK(heads == std::max(0, stages - n));
      CHECK(more == std::max(0, stages - n) * (n - 1));
    }
  }
}

TEST_CASE(
    "with all heads stage i pushes k_i = min(N, K - i + 1), as in the authors' N-wise class") {
  for (int stages = 1; stages <= 9; ++stages) {
    for (int n = 1; n <= 9; ++n) {
      const auto roles = make_roles(n_wise(n, true), stages, true);
      for (int i = 1; i <= stages; ++i) {
        INFO(n << "-wise, stage " << i << " of " << stages);
        const int k = std::min(n, stages - i + 1);
        CHECK(static_cast<int>(roles[i - 1].traversals.size()) == k);
        CHECK(roles[i - 1].head == (i < stages));
        if (i > 1) CHECK(gradients_down(roles[i - 1]) == std::min(n - 1, k));
      }
    }
  }
}

TEST_CASE("with all heads the eager form spares stage 1 its own gradient, as the pairwise class") {
  for (int stages = 2; stages <= 9; ++stages) {
    for (int n = 2; n <= 9; ++n) {
      auto eager = make_roles(n_wise(n, true), stages, false);
      auto list = make_roles(n_wise(n, true), stages, true);
      INFO(n << "-wise, " << stages << " stages");
      CHECK(eager[0].head);
      CHECK(find(eager[0], 0) == nullptr);
      list[0].traversals.erase(list[0].traversals.begin());
      CHECK(text(eager) == text(list));
    }
    int more = 0;
    for (const StageRole& role : make_roles(n_wise(2, true), stages, false)) {
      more += static_cast<int>(role.traversals.size()) - 1;
    }
    CHECK(more == stages - 2);
  }
}

TEST_CASE("the ends of the family are the strategies that they are said to be") {
  for (int stages = 1; stages <= 9; ++stages) {
    const auto roles = [&](const Strategy& s) { return text(make_roles(s, stages, false)); };
    const std::string global = roles({.kind = StrategyKind::Global});
    const std::string local = roles(kLocal);
    CHECK(roles(n_wise(stages)) == global);
    CHECK(roles(n_wise(stages + 3)) == global);
    CHECK(roles(n_wise(1)) == local);
    CHECK(roles({.kind = StrategyKind::Greedy}) == local);
    CHECK(roles({.kind = StrategyKind::Chunked, .chunks = 1}) == global);
    CHECK(roles({.kind = StrategyKind::Chunked, .chunks = stages}) == local);
    CHECK(roles({.kind = StrategyKind::Overlapping}) == roles(n_wise(2)));
  }
}

TEST_CASE("adding gradients up takes one addition less than there are losses") {
  for (int stages = 1; stages <= 9; ++stages) {
    for (int n = 1; n <= 9; ++n) {
      Strategy strategy = n_wise(n);
      for (const auto gradient : {GradientMode::Sum, GradientMode::Mean}) {
        strategy.gradient = gradient;
        const auto roles = make_roles(strategy, stages, false);
        for (int i = 0; i < stages; ++i) {
          const int k = std::min(n, stages - i);
          CHECK(roles[i].summed_gradients == k - 1);
          // The first stage has no stage to push gradients to: it adds them and pushes the sum.
          const int pushed = i == 0 ? 1 : k;
          CHECK(static_cast<int>(roles[i].traversals.size()) == pushed);
          CHECK(static_cast<int>(roles[i].only_added.size()) == k - pushed);
        }
      }
    }
  }
}

TEST_CASE("roles of four stages, written out") {
  const auto roles = [](const Strategy& s, bool list = false) {
    return text(make_roles(s, 4, list));
  };
  CHECK(roles({}) == "(3w) (3w<) (3w<) (3w<)");
  CHECK(roles(kLocal) == "h(0w) h(1w) h(2w) (3w)");
  CHECK(roles({.kind = StrategyKind::Independent}) == roles(kLocal));
  CHECK(stage_before({.kind = StrategyKind::Independent}, 2) == -1);
  CHECK(stages_after({.kind = StrategyKind::Independent}, 1, 4).empty());
  CHECK(roles(n_wise(2)) == "(1w) h(1<2w) h(2<3w) (3w<)");
  CHECK(roles(n_wise(2, true)) == "h(1w) h(1<2w) h(2<3w) (3w<)");
  CHECK(roles(n_wise(2, true), true) == "h(01w) h(1<2w) h(2<3w) (3w<)");
  CHECK(roles(n_wise(3)) == "(2w) (2<3w) h(2<3w<) (3w<)");
  CHECK(roles(n_wise(3, true), true) == "h(012w) h(1<2<3w) h(2<3w<) (3w<)");
  CHECK(roles({.kind = StrategyKind::Chunked, .chunks = 2}) == "(1w) h(1w<) (3w) (3w<)");
  const Strategy blocks{.kind = StrategyKind::Overlapping, .recompute_shared_forward = true};
  CHECK(roles(blocks) == "hr(0w) hr(1w) hr(2w) r(3w)");
  const Strategy added{.kind = StrategyKind::Overlapping, .gradient = GradientMode::Sum};
  CHECK(roles(added) == "(1w) h+(1<2w) h+(2<3w) (3w<)");
}

TEST_CASE("blocks that both run what they share have one part more than stages") {
  for (int stages = 1; stages <= 9; ++stages) {
    CHECK(parts_of({.kind = StrategyKind::Overlapping}, stages) == stages);
    CHECK(parts_of({.kind = StrategyKind::Overlapping, .recompute_shared_forward = true}, stages) ==
          stages + 1);
    CHECK(parts_of(n_wise(2), stages) == stages);
  }
}

}  // namespace
}  // namespace interlock::roles_test
