// Sweeps beyond a plain product: zips, ranges, what is excluded, samples.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "scenarios/sweep/sweep_plan.h"
#include "tests/scenarios/documents.h"

namespace interlock::sweep_grammar_test {
namespace {

SweepPlan plan_of(const std::string& sweep) {
  Diagnostics diagnostics;
  SweepPlan plan(document(kFourModules, {"sweep=" + sweep}), kMostInTurn, diagnostics);
  CHECK(diagnostics.messages().empty());
  return plan;
}

/// Returns the settings of each scenario, "a b" for values a and b.
std::vector<std::string> settings_of(const SweepPlan& plan) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    std::string text;
    for (const SweepSetting& setting : plan.settings(i)) {
      text += (text.empty() ? "" : " ") + value_words(setting.value);
    }
    all.push_back(text);
  }
  return all;
}

using Texts = std::vector<std::string>;

TEST_CASE("a grid is a product as plain paths are, and goes with them") {
  CHECK(settings_of(plan_of(R"({"simulate.seed": [1, 2], "grid": {"training.steps": [3, 4]}})")) ==
        Texts{"1 3", "1 4", "2 3", "2 4"});
}

TEST_CASE("lists of a zip go along together, several zips do not") {
  CHECK(settings_of(plan_of(R"({"zip": {"training.steps": [1, 2], "simulate.seed": [7, 8]}})")) ==
        Texts{"1 7", "2 8"});
  CHECK(settings_of(plan_of(R"({"zip": [{"training.steps": [1, 2], "simulate.seed": [7, 8]},
                                        {"parallel.pipeline": [2, 4]}]})")) ==
        Texts{"1 7 2", "1 7 4", "2 8 2", "2 8 4"});
  const auto scenarios =
      loaded_all({R"(sweep={"zip": {"training.steps": [1, 2], "parallel.pipeline": [2, 4]}})"});
  REQUIRE(scenarios.size() == 2);
  CHECK(scenarios[1].name == "test | steps=2 | pipeline=4");
  CHECK(scenarios[1].layout.ranks() == 4);
  CHECK(scenarios[1].swept.size() == 2);
}

TEST_CASE("a range has both its ends, by steps or by factors, of numbers or quantities") {
  CHECK(settings_of(plan_of(R"({"training.steps": {"from": 1, "to": 7, "step": 3}})")) ==
        Texts{"1", "4", "7"});
  CHECK(settings_of(plan_of(R"({"training.steps": {"from": 2, "to": 4}})")) ==
        Texts{"2", "3", "4"});
  CHECK(settings_of(plan_of(R"({"training.steps": {"from": 1, "to": 20, "times": 2}})")) ==
        Texts{"1", "2", "4", "8", "16"});
  // Ten steps of a tenth: the last is 1, though 0.1 is no binary fraction.
  CHECK(plan_of(R"({"parallel.gradient_density": {"from": 0.1, "to": 1, "step": 0.1}})").size() ==
        10);
  CHECK(settings_of(plan_of(
            R"({"cluster.link.bandwidth": {"from": "25 GB/s", "to": "100 GB/s", "times": 2}})")) ==
        Texts{"25 GB/s", "50 GB/s", "100 GB/s"});
}

TEST_CASE("a range may begin at a number too small for usual precision") {
  CHECK(settings_of(plan_of(
            R"({"cluster.link.latency": {"from": "1e-320 s", "to": "2 s", "step": "1 s"}})")) ==
        Texts{"9.999888672e-321 s", "1 s", "2 s"});
}

TEST_CASE("what is excluded is left out, the rest keeps its order") {
  CHECK(settings_of(plan_of(R"({"training.steps": [1, 2, 3], "parallel.pipeline": [2, 4],
        "exclude": [{"training.steps": [1, 2], "parallel.pipeline": 4}, {"training.steps": 3,
                     "parallel.pipeline": 2}]})")) == Texts{"1 2", "2 2", "3 4"});
}

TEST_CASE("a sample has as many as asked, none twice, in order, the same for a seed") {
  const std::string axes = R"("training.steps": {"from": 1, "to": 1000}, )";
  const auto drawn = [&](const std::string& sample) {
    return settings_of(plan_of("{" + axes + "\"sample\": " + sample + "}"));
  };
  const Texts once = drawn(R"({"count": 100, "seed": 5})");
  CHECK(once == drawn(R"({"count": 100, "seed": 5})"));
  CHECK(once != drawn(R"({"count": 100, "seed": 6})"));
  CHECK(std::set<std::string>(once.begin(), once.end()).size() == 100);
  int last = 0, sum = 0;
  for (const std::string& text : once) {
    const int number = std::stoi(text);
    CHECK(number > last);
    last = number;
    sum += number;
  }
  // The mean of 100 draws of 1..1000 is 500.5, give or take 1000 / sqrt(12 * 100) = 29.
  CHECK(std::abs(sum / 100.0 - 500.5) < 4 * 29);
  CHECK(drawn(R"({"count": 5000})").size() == 1000);
}

TEST_CASE("a point of a million is made at once") {
  const SweepPlan plan = plan_of(R"({"training.steps": {"from": 1, "to": 1000},
                                     "simulate.seed": {"from": 1, "to": 1000}})");
  CHECK(plan.size() == 1'000'000);
  Diagnostics diagnostics;
  const SweepPoint point = plan.point(123'456, diagnostics);
  CHECK(point.document.find("name")->text == "test | steps=124 | seed=457");
  CHECK(load_point(std::make_shared<const JsonValue>(point.document)).training().steps == 124);
}

TEST_CASE("mistakes of a sweep's grammar are told where they are") {
  const auto told = [](const std::string& sweep) { return mistakes({"sweep=" + sweep}); };
  CHECK(
      told(R"({"zip": {"training.steps": [1, 2], "simulate.seed": [1]}})") ==
      "set: /sweep/zip/simulate.seed: has 1 values beside 2 of \"training.steps\"; expected lists "
      "of one length in a \"zip\"");
  CHECK(told(R"({"training.steps": {"from": 3, "to": 1}})").find("never gets from") !=
        std::string::npos);
  CHECK(told(R"({"training.steps": {"from": 0, "to": 8, "times": 2}})").find("never gets from") !=
        std::string::npos);
  CHECK(told(R"({"training.steps": {"from": 1, "to": "8 s"}})").find("different units") !=
        std::string::npos);
  CHECK(told(R"({"training.steps": {"from": 1, "to": 8, "stp": 2}})").find("did you mean") !=
        std::string::npos);
  CHECK(
      told(R"({"training.steps": [1], "exclude": [{"training.stps": 1}]})") ==
      "set: /sweep/exclude/0/training.stps: the path \"training.stps\" is not swept; expected one "
      "of the sweep's");
  CHECK(told(R"({"training.steps": [1], "exclude": [{"training.steps": 1}]})") ==
        "set: /sweep: everything is excluded; expected a scenario");
  CHECK(told(R"({"training.steps": [1], "sample": {"seed": 1}})").find("count") !=
        std::string::npos);
  CHECK(told(R"({"zip": {}})").find("zips nothing") != std::string::npos);
}

}  // namespace
}  // namespace interlock::sweep_grammar_test
