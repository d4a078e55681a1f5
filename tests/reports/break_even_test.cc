// Break-even K: how many times as many steps a strategy may need as pipelines that fit.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "reports/charts/measures.h"

namespace interlock::break_even_test {
namespace {

TEST_CASE("a break-even K is over the best pipeline that fits, with the rest of the sweep equal") {
  // Steps of 8 and 5 s of pipelines, 2 s of one with stale weights and 4 s of pairs; at the slower
  // link 10, 20, 1 and 2 s. Pairs may need 5 / 4 and 10 / 2 times the steps.
  const double steps[] = {8, 5, 2, 4, 10, 20, 1, 2};
  const char* names[] = {"1F1B", "ZB-V", "PipeDream", "pairwise"};
  std::vector<ReadResult> results;
  for (int i = 0; i < 8; ++i) {
    ReadResult& result = results.emplace_back();
    result.file = "r.json";
    result.strategy = i % 4 == 3 ? "pairwise" : "global";
    result.swept = {{"cluster.link.bandwidth", i < 4 ? "2 Gb/s" : "1 Gb/s", std::nullopt},
                    {"training", names[i % 4], std::nullopt}};
    result.values["step_time_s"] = steps[i];
    result.values["samples_per_s"] = 64 / steps[i];
    result.values["most_staleness"] = i % 4 == 2 ? 3 : 0;
  }
  results[4].strategy += ", activations in fp8";  // is end to end all the same
  const std::vector<Measured> found = measured("break_even", results);
  const double expected[] = {5.0 / 8, 1, 5.0 / 2, 5.0 / 4, 1, 10.0 / 20, 10, 5};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(*found[0].values[i] == doctest::Approx(expected[i]));
  }
  for (const auto& [large, best] : {std::pair(1, 8.0), std::pair(0, 5.0)}) {  // at last both
    results[large].fits = false;
    CHECK(*measured("break_even", results)[0].values[3] == doctest::Approx(best / 4));
  }
  for (ReadResult& result : results) result.strategy = "pairwise";
  CHECK(shown(measured("break_even", results)[0], 3) == "–");
}

}  // namespace
}  // namespace interlock::break_even_test
