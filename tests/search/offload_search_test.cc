// Offload is found by a search where it makes a step shorter, as if it had been asked for.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/offload_search.h"

#include <doctest/doctest.h>

#include "scenarios/contract/set_key.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock::offload_search_test {
namespace {

/// Eight layers of Llama 3 70B on four H100.
const std::string kSpace = R"({
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 8192, "attention_heads": 64,
            "kv_heads": 8, "ffn_hidden_size": 28672, "gated_mlp": true, "vocab_size": 8192,
            "sequence_length": 8192},
  "cluster": {"machine": "dgx-h100", "devices": 4},
  "training": {"strategy": "global", "global_batch_size": 32, "optimizer": "adam",
               "precision": "bf16", "steps": 2},
  "search": {"tensor": [1, 4], "pipeline": [1, 2], "context": [1], "micro_batch_size": [1, 2],
             "zero_stage": [1, 3]}
})";

SearchResult searched(const std::vector<std::string>& overrides, bool only_best = true) {
  JsonValue document = parse_json(kSpace, "space.json");
  apply_overrides(document, overrides);
  SearchRequest request = request_of(document);
  request.only_best = only_best;
  return search_plans(document, request, 2);
}

double step_of(const SearchResult& result) { return result.plans.front().estimate.step_time; }

bool offloads(const FoundPlan& plan) {
  return !plan.layout.options.empty() && plan.layout.options.back().path == kOffload;
}

/// Returns the override that asks for none and for all usual ways to offload.
std::string all_ways() {
  std::string list = "search.offload=[{}";
  for (const JsonValue& one : usual_offloads()) {
    list += R"(, {"activations": )" + std::to_string(one.find("activations")->number) +
            R"(, "optimizer": )" + std::to_string(one.find("optimizer")->number) + "}";
  }
  return list + "]";
}

TEST_CASE("a search finds the plan with offload that a search of all ways to offload finds") {
  int paid = 0;
  for (const char* limit : {"30 GB", "40 GB", "50 GB", "1 TB"}) {
    CAPTURE(limit);
    const std::string memory = "search.limits.memory=" + std::string(limit);
    const SearchResult usual = searched({memory}), all = searched({memory, all_ways()});
    const SearchResult without = searched({memory, "search.offload={}"});
    REQUIRE(!usual.plans.empty());
    const double worth = 1 + usual.request.worth;
    if (offloads(usual.plans.front())) {
      ++paid;
      CHECK(step_of(usual) == step_of(all));
      if (!without.plans.empty()) CHECK(step_of(usual) * worth < step_of(without));
    } else {
      CHECK(step_of(usual) == step_of(without));
      CHECK(step_of(usual) <= step_of(all) * worth);
    }
    CHECK(unproven(usual.counts) == 0);
    CHECK(usual.counts.plans <= all.counts.plans);
  }
  CHECK(paid > 0);
  CHECK(paid < 4);
}

TEST_CASE("the best plan with offload comes before the plans without, and those stay") {
  const SearchResult usual = searched({"search.limits.memory=40 GB"}, false);
  const SearchResult without = searched({"search.limits.memory=40 GB", "search.offload={}"}, false);
  REQUIRE(offloads(usual.plans.front()));
  REQUIRE(usual.plans.size() == without.plans.size() + 1);
  for (std::size_t i = 0; i < without.plans.size(); ++i) {
    CHECK(usual.plans[i + 1].estimate.values == without.plans[i].estimate.values);
  }
}

}  // namespace
}  // namespace interlock::offload_search_test
