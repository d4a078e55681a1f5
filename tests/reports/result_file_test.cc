// Results read back: what figures use is what was written, and mistakes are named.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/result_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "reports/report.h"
#include "reports/result/all_metrics.h"

namespace interlock::result_file_test {
namespace {

const char* const kSweep = R"({
  "name": "four",
  "model": {"kind": "profile", "modules": [{"repeat": 4, "forward": "1 ms",
    "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.5 ms", "stash": "1 MiB"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
    "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": {"kind": "interlocking", "n_wise": 3}, "steps": 4},
  "sweep": {"training.strategy.n_wise": [1, 3]}})";

/// A file that goes away with the test.
struct Written {
  std::string path;
  explicit Written(const std::string& text)
      : path((std::filesystem::temp_directory_path() /
              ("result_file_test-" + std::to_string(::getpid()) + ".json"))
                 .string()) {
    write_file(path, text);
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  ~Written() { std::filesystem::remove(path); }
};

std::vector<ScenarioResult> runs(const JsonValue& document) {
  std::vector<ScenarioResult> results;
  for (const Question& scenario : load_questions(document)) {
    results.push_back(run_scenario(scenario, false));
  }
  return results;
}

std::vector<ScenarioResult> runs() { return runs(parse_json(kSweep, "four.json")); }

std::string fault_of(const std::string& text) {
  const Written file(text);
  try {
    read_result_files({read_json_file(file.path)});
  } catch (const Error& error) {
    const std::string words = error.what();
    return words.substr(words.find(".json:") + 6);
  }
  return "";
}

std::string result_text() { return result_json(runs().front()); }

}  // namespace

TEST_CASE("what is read is what was written, to the last bit") {
  const std::vector<ScenarioResult> written = runs();
  const Written file(result_json(written));
  const ResultFiles read = read_result_files({read_json_file(file.path)});
  REQUIRE(read.results.size() == 2);
  for (std::size_t r = 0; r < 2; ++r) {
    const Metrics& metrics = written[r].measurement.metrics;
    const ReadResult& result = read.results[r];
    CHECK(result.name == written[r].plan.question.name);
    int numbers = 0;
    for (const MetricRow& row : step_metrics()) {
      INFO(row.key);
      const bool number = row.kind != MetricKind::Truth && row.kind != MetricKind::Words;
      if (number) CHECK(result.value(row.key) == number_of(row, metrics));
      numbers += number && result.value(row.key) ? 1 : 0;
    }
    CHECK(numbers >= 20);
    CHECK(result.fits == metrics.fits_in_memory);
    REQUIRE(result.swept.size() == 1);
    CHECK(result.swept[0].path == "training.strategy.n_wise");
    CHECK(result.swept[0].number == (r == 0 ? 1 : 3));
    REQUIRE(result.simulated.size() == 4);
    for (std::size_t d = 0; d < 4; ++d) {
      CHECK(result.simulated[d].metrics.busy == metrics.devices[d].busy);
      CHECK(result.simulated[d].metrics.useful == metrics.devices[d].useful);
      CHECK(result.simulated[d].metrics.time == metrics.devices[d].time);
      REQUIRE(metrics.explanation);
      CHECK(result.simulated[d].bubbles == metrics.explanation->devices[d]);
      CHECK(result.simulated[d].metrics.peak_memory == metrics.devices[d].peak_memory);
    }
  }
}

TEST_CASE("what waits for nothing in outer steps is read back, too") {
  const auto written = runs(read_json_file(EXAMPLES_FOLDER "/outer-steps.json"));
  const Written file(result_json(written));
  CHECK(read_result_files({read_json_file(file.path)}).results.size() == written.size());
}

TEST_CASE("a result holds the scenario that it can be simulated from again") {
  const std::vector<ScenarioResult> written = runs();
  const Written file(result_json(written));
  const ResultFiles read = read_result_files({read_json_file(file.path)});
  for (std::size_t r = 0; r < 2; ++r) {
    REQUIRE(read.results[r].scenario);
    const std::vector<Question> again = load_questions(*read.results[r].scenario);
    REQUIRE(again.size() == 1);
    CHECK(again[0].name == written[r].plan.question.name);
    const Metrics metrics = run_scenario(again[0], false).measurement.metrics;
    CHECK(metrics.step_time == written[r].measurement.metrics.step_time);
  }
}

TEST_CASE("the time of 3-wise interlocking divides as its closed form says") {
  // Four equal stages, N = 3: the period is 3 f + a + 2 bi + B = 3 + 0.5 + 2 + 2 = 7.5 ms, set by
  // stage 1, which runs its own forward, head share and gradients of three losses.
  const ScenarioResult result = runs().at(1);
  const Metrics& metrics = result.measurement.metrics;
  CHECK(metrics.step_time.value() == doctest::Approx(7.5e-3).epsilon(1e-9));
  for (const DeviceMetrics& device : metrics.devices) {
    const auto share = [&](TimeUse use) { return device.time[static_cast<std::size_t>(use)]; };
    double sum = 0, busy = 0;
    for (int use = 0; use < kTimeUses; ++use) {
      sum += device.time[use];
      if (use < static_cast<int>(TimeUse::Exposed)) busy += device.time[use];
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-9));
    CHECK(busy == doctest::Approx(device.busy).epsilon(1e-9));
    const double useful = share(TimeUse::Forward) + share(TimeUse::BackwardInput) +
                          share(TimeUse::Backward) + share(TimeUse::BackwardWeight);
    CHECK(useful == doctest::Approx(device.useful).epsilon(1e-9));
    CHECK(share(TimeUse::Forward) == doctest::Approx(1 / 7.5).epsilon(1e-9));  // f = 1 ms of 7.5
  }
}

TEST_CASE("files that cannot be drawn are refused in one sentence") {
  CHECK(fault_of("") != "");
  CHECK(fault_of("[]") == "1: has no result; expected at least one");
  CHECK(fault_of(R"({"model": "resnet-50"})")
            .starts_with(R"(1: is no result: it has no "format"; expected "interlock-result/1")"));
  std::string newer = result_text();
  newer.replace(newer.find("interlock-result/1"), 18, "interlock-result/7");
  CHECK(fault_of(newer).starts_with("2: /format: another version than this program reads"));
  const std::string text = result_text();
  CHECK(fault_of(text.substr(0, text.size() / 2)) != "");
  nlohmann::json without = nlohmann::json::parse(text);
  without.erase("step_time_s");
  CHECK(fault_of(without.dump()).find("missing key \"step_time_s\"") != std::string::npos);
  without = nlohmann::json::parse(text);
  without["devices"] = nlohmann::json::array();
  CHECK(fault_of(without.dump()).find("has no device") != std::string::npos);
  without = nlohmann::json::parse(text);
  without["devices"][0]["busy"] = -1;
  CHECK(fault_of(without.dump()).find("/devices/0/busy") != std::string::npos);
  without = nlohmann::json::parse(text);
  without["devices"][0]["bubble_s"] = 3;
  CHECK(fault_of(without.dump()).find("/devices/0/bubble_s") != std::string::npos);
  without["devices"][0]["bubble_s"] = nlohmann::json::object();
  CHECK(fault_of(without.dump()).find("missing key \"fill\"") != std::string::npos);
}

}  // namespace interlock::result_file_test
