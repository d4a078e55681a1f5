// Searches that are stopped: before the first look, before the best plan is proven, and after.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <memory>
#include <optional>

#include "scenarios/load/loader.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock::stopped_search_test {
namespace {

JsonValue space() {
  return parse_json(R"({
  "name": "stopped",
  "model": {"kind": "transformer", "layers": 6, "hidden_size": 512, "attention_heads": 8,
            "ffn_hidden_size": 2048, "vocab_size": 8192, "sequence_length": 512},
  "cluster": {"machine": "dgx-a100-40g", "devices": 4, "price": "2 USD/h"},
  "training": {"strategy": "global", "global_batch_size": 16, "optimizer": "adam", "steps": 2},
  "search": {"tensor": [1, 2], "micro_batch_size": [1, 4], "recompute": ["none", "full"]}
})",
                    "space.json");
}

/// Returns what a search leaves that is stopped when it tells for the `most`-th time that something
/// is known or done; nothing if it leaves none.
std::optional<SearchResult> stopped_at(int most) {
  int told = 0;
  const auto stop = [&] {
    if (told++ == most) throw StopSearch{};
  };
  const JsonValue document = space();
  SearchRequest request = request_of(document);
  request.counted = [&](const SearchCounts&) { stop(); };
  try {
    return search_plans(document, request, 2, [&](std::size_t, std::size_t) { stop(); });
  } catch (const StopSearch&) {
    return std::nullopt;
  }
}

double time_of(const FoundPlan& plan) {
  return plan.estimate.values[static_cast<std::size_t>(Aim::Time)];
}

/// Returns the step time of the scenario of `plan`, simulated by itself.
double simulated_time(const FoundPlan& plan) {
  const auto document = std::make_shared<const JsonValue>(plan.document);
  return run_scenario(load_point(document), false).measurement.metrics.step_time.value();
}

/// Holds `part`, stopped before its best plan was proven, to `best`, that of the whole search.
void check_best_by_then(const SearchResult& part, const FoundPlan& best) {
  REQUIRE(!part.plans.empty());
  CHECK(part.stopped);
  double before = 0;
  for (const FoundPlan& plan : part.plans) {
    CHECK(plan.simulated == part.plans.front().simulated);
    CHECK(time_of(plan) >= before);
    before = time_of(plan);
    const double simulated = simulated_time(plan);
    // A look is as if no messages met, which takes no longer.
    if (plan.simulated) CHECK(plan.estimate.step_time == doctest::Approx(simulated).epsilon(1e-9));
    if (!plan.simulated) CHECK(plan.estimate.step_time <= simulated * (1 + 1e-9));
  }
  if (!part.plans.front().simulated) return;
  CHECK(unproven(part.counts) > 0);
  CHECK(time_of(part.plans.front()) >= time_of(best));
}

TEST_CASE("a search that is stopped keeps the best that it knows, and says what is proven") {
  const SearchResult whole = search_plans(space(), 2);
  CHECK(!whole.stopped);
  CHECK(whole.counts.waiting == 0);
  int empty = 0, estimated = 0, simulated = 0, proven = 0;
  for (int most = 0;; most += 1 + most / 16) {
    CAPTURE(most);
    const std::optional<SearchResult> part = stopped_at(most);
    if (!part) {
      ++empty;
      CHECK(estimated + simulated + proven == 0);
      continue;
    }
    if (!part->stopped) break;
    if (part->cut_off) {
      ++(part->plans.front().simulated ? simulated : estimated);
      check_best_by_then(*part, whole.plans.front());
      continue;
    }
    ++proven;
    REQUIRE(!part->plans.empty());
    CHECK(time_of(part->plans.front()) == time_of(whole.plans.front()));
  }
  CHECK(empty > 0);
  CHECK(estimated > 0);
  CHECK(proven > 0);
  MESSAGE(empty << " with nothing, " << estimated << " by looks, " << simulated
                << " by simulations, " << proven << " proven");
}

}  // namespace
}  // namespace interlock::stopped_search_test
