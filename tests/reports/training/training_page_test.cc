// Pages of training: the losses of every run, and nothing of their names as markup.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/training_page.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/words/scale.h"

namespace interlock::training_page_test {
namespace {

using Json = nlohmann::json;

/// The words beside the pointer in panel `panel`.
std::vector<std::string> tips_of(const std::string& page, int panel) {
  std::size_t begin = page.find("class=\"panels\"");
  for (int i = 0; i <= panel; ++i) begin = page.find("<svg", begin + 1);
  const std::size_t end = page.find("</svg>", begin);
  std::vector<std::string> tips;
  for (std::size_t at = page.find("<title>", begin); at < end; at = page.find("<title>", at + 1)) {
    tips.push_back(page.substr(at + 7, page.find("</title>", at) - at - 7));
  }
  return tips;
}

/// `steps` of 2 ms each, the loss of step s being 1 / (s + 1).
TrainingCurve run_of(int steps, const std::string& name) {
  TrainingCurve run{.name = name, .wanted_steps = steps};
  run.simulated_step = Seconds(1e-3);
  run.measured_step = Seconds(2e-3);
  for (int s = 0; s < steps; ++s) {
    run.losses.push_back(1.0 / (s + 1));
    run.ends.emplace_back(2e-3 * (s + 1));
  }
  return run;
}

TEST_CASE("a short run's losses are in the page one by one, at the middle of their steps") {
  const std::string page = training_html({run_of(4, "a")});
  CHECK(tips_of(page, 0) == std::vector<std::string>{"a: steps 0.5, loss (nats) 1",
                                                     "a: steps 1.5, loss (nats) 0.5",
                                                     "a: steps 2.5, loss (nats) 0.3333",
                                                     "a: steps 3.5, loss (nats) 0.25"});
  CHECK(tips_of(page, 1)[1] == "a: measured time (s) 0.003, loss (nats) 0.5");
  CHECK(tips_of(page, 2)[3] == "a: simulated time (s) 0.0035, loss (nats) 0.25");
}

TEST_CASE("a long run is means over stretches, and the page says over how many steps") {
  const std::string page = training_html({run_of(2000, "a"), run_of(10, "b")});
  const std::vector<std::string> tips = tips_of(page, 0);
  REQUIRE(tips.size() == 110);
  double mean = 0;
  for (int s = 20; s < 40; ++s) mean += 1.0 / (s + 1) / 20;
  CHECK(tips[1].find("a: steps 30, ") == 0);
  CHECK(std::stod(tips[1].substr(tips[1].rfind(' '))) == doctest::Approx(mean).epsilon(1e-3));
  CHECK(page.find("a mean over up to 20 steps") != std::string::npos);
  CHECK(page.find("was stopped") == std::string::npos);
}

TEST_CASE("a loss that is no number is a gap, and a run without a clock has no measured time") {
  TrainingCurve run = run_of(3, "a");
  run.losses[1] = std::nan("");
  run.ends.clear();
  run.wanted_steps = 9;
  const std::string page = training_html({run});
  CHECK(tips_of(page, 0).size() == 2);
  CHECK(tips_of(page, 1).empty());
  CHECK(page.find("was stopped") != std::string::npos);
  CHECK(page.find("no number") != std::string::npos);
}

TEST_CASE("the first and the last loss are means over as many steps, of which none is in both") {
  // Losses 1 / (s + 1): of 2, 5 and 100 steps the first are means of 1, 2 and 20.
  const auto mean = [](int begin, int end) {
    double sum = 0;
    for (int s = begin; s < end; ++s) sum += 1.0 / (s + 1) / (end - begin);
    return fixed(sum, 3);
  };
  for (const auto& [all, few] : {std::pair(2, 1), {5, 2}, {39, 19}, {40, 20}, {100, 20}}) {
    const int steps = all;
    const auto row = training_grid({run_of(steps, "a")}).rows.at(0);
    INFO(steps, " steps");
    CHECK(row[2].text == mean(0, few));
    CHECK(row[3].text == mean(steps - few, steps));
    const std::string told = few == 1 ? "of the first and of the last step."
                                      : "means of the first " + std::to_string(few);
    CHECK(training_note({run_of(steps, "a")}).find(told) != std::string::npos);
  }
  CHECK(training_grid({run_of(1, "a")}).rows.at(0)[3].text == "–");
  CHECK(training_note({run_of(4, "a"), run_of(100, "b")}).find("first 2 to 20 and") !=
        std::string::npos);
}

TEST_CASE("how old weights were is said of runs whose weights were") {
  TrainingCurve fresh = run_of(3, "a"), stale = run_of(3, "b");
  fresh.staleness = {{0, 3}};
  stale.staleness = {{0, 1}, {2, 5}};
  const std::string table = training_table({fresh, stale}, {});
  CHECK(table.find("Staleness of b (updates between a forward and its own update: micro-batches): "
                   "0: 1, 2: 5.") != std::string::npos);
  CHECK(table.find("Staleness of a") == std::string::npos);
  CHECK(Json::parse(training_json({stale}))["staleness"] == Json({{"0", 1}, {"2", 5}}));
}

TEST_CASE("names of runs cannot break out of the page, which asks no server for anything") {
  const std::string evil = "</script><script>alert(1)</script><!--\"'&<img onerror=x>\xff";
  const std::string page = training_html({run_of(3, evil), run_of(3, "b")});
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<!--") == std::string::npos);
  CHECK(page.find("default-src 'none'") != std::string::npos);
  for (const char* reach : {"http:", "https:", "src=", "href=", "url(", "fetch("}) {
    CAPTURE(reach);
    CHECK(page.find(reach) == std::string::npos);
  }
  CHECK(training_html({}).find("Training") != std::string::npos);  // stopped before anything
}

}  // namespace
}  // namespace interlock::training_page_test
