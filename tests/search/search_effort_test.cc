// Searches whose effort is bounded: what they say of plans that they did not look at.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/search/space_cuts.h"
#include "scenarios/starter/starter.h"

namespace interlock::search_effort_test {
namespace {

/// Experts on groups of six in nodes of 8: estimates without contention are far too short.
JsonValue straddling(const std::vector<std::string>& overrides = {}) {
  JsonValue document = parse_json(R"({"model": {"base": "gpt2", "layers": 4, "experts": 6,
                         "experts_per_token": 2},
      "cluster": {"machine": "dgx-h100", "nodes": 3, "devices": 24},
      "training": {"strategy": "global", "global_batch_size": 48, "precision": "bf16",
                   "optimizer": "adam", "steps": 2},
      "search": {"tensor": [1], "pipeline": [1, 2, 3], "zero_stage": [1, 3],
                 "expert": [6],
                 "recompute": "none", "expert_overlap": ["none", "micro_batches"],
                 "schedule": ["1f1b", "gpipe"]}})",
                                  "straddling.json");
  apply_overrides(document, overrides);
  return document;
}

SearchResult searched(const JsonValue& document, double effort, bool only_best) {
  SearchRequest request = request_of(document);
  request.effort_beyond = effort;
  request.only_best = only_best;
  return search_plans(document, request, 2);
}

double step_of(const SearchResult& result) { return result.plans.front().estimate.step_time; }

TEST_CASE("a best plan that is proven is that of a search without bounds, whatever the effort") {
  int proven = 0, unsure = 0, front_alone = 0;
  const std::vector<std::string> slow = {"cluster.cards.per_node=1"};
  const std::vector<std::string> many = {R"(search.recompute=["none", "full"])"};
  for (const std::vector<std::string>& set : {slow, many}) {
    const double best = step_of(searched(straddling(set), kInfinity, true));
    for (const double effort : {1.0, 65536.0}) {
      CAPTURE(effort);
      const SearchResult found = searched(straddling(set), effort, false);
      const SearchCounts& counts = found.counts;
      CHECK(counts.left_better <= counts.left);
      REQUIRE(!found.plans.empty());
      if (unproven(counts) == 0) {
        ++proven;
        CHECK(step_of(found) == best);
        front_alone += counts.left > 0;  // of plans that are no better
      } else {
        ++unsure;
        CHECK(step_of(found) >= best);
      }
    }
  }
  CHECK(proven > 0);
  CHECK(front_alone > 0);
  CHECK(unsure > 0);
}

TEST_CASE("a search that finds nothing says whether it looked at all plans") {
  const SearchResult none = searched(straddling({"search.limits.time=1 us"}), 1, true);
  CHECK(none.plans.empty());
  CHECK(unproven(none.counts) == 0);  // as bounds say so
  // Power is known of plans that are simulated alone.
  const std::string cards = "cluster.cards.per_node=1";
  const double power = searched(straddling({cards}), kInfinity, true).plans.front().estimate.power;
  const JsonValue frugal =
      straddling({cards, "search.limits.power=" + std::to_string(0.9 * power) + " W"});
  CHECK(!searched(frugal, kInfinity, true).plans.empty());
  const SearchResult missed = searched(frugal, 1, true);
  CHECK(missed.plans.empty());
  CHECK(unproven(missed.counts) > 0);
}

TEST_CASE("init writes what it left out, and how many plans it did not look at") {
  Starter starter = begin_starter({.model = "gpt2", .machine = "dgx-h100", .devices = 8});
  starter.plans = 100;
  CHECK(starter_text(starter, "").find("cost too much") == std::string::npos);
  CHECK(starter_text(starter, "").find("Left out") == std::string::npos);
  starter.unproven = 30;
  starter.left_out = "ZeRO 2";
  const std::string text = starter_text(starter, "");
  CHECK(text.find("// 30 plans that may be faster cost too much to look at.\n") !=
        std::string::npos);
  CHECK(text.find("// Left out, as there were too many plans: ZeRO 2.\n") != std::string::npos);
}

TEST_CASE("a cut that removes nothing is not told") {
  struct Space {
    SpaceSize size;
    std::vector<int> told;  // cuts
  };
  const std::vector<int> powers = {1, 2, 4}, some = {1, 2, 3, 6, 128};
  for (const Space& space :
       {Space{{8, 24, {48}, true, true, some}, {0, 1, 2, 3, 4, 5}},
        Space{{8, 24, {64}, true, true, powers}, {1, 3, 4}},
        Space{{8, 24, {64, 96}, true, false, powers}, {0, 2, 3, 4}},
        Space{{8, 2, {96}, true, false, powers}, {0, 3, 4}},
        Space{{8, 24, {64}, false, false, {1}}, {3}}, Space{{1, 24, {64}, true, true, {1}}, {3}},
        Space{{1, 24, {1}, true, true, {1}}, {}}}) {
    SearchRequest request;
    std::vector<int> told;
    for (int cut = 0;; ++cut) {
      bool any = false;
      if (cut_space(cut, space.size, request, any).empty()) break;
      if (any) told.push_back(cut);
    }
    CHECK(told == space.told);
  }
  INFO("a tensor degree that divides one of several sizes stays");
  SearchRequest request;
  bool any = false;
  cut_space(0, {8, 24, {8, 100}, true, false, {1}}, request, any);
  CHECK(request.tensor == std::vector{1, 2, 4, 8});
}

}  // namespace
}  // namespace interlock::search_effort_test
