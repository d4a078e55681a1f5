// Results of the library against each other, and mistakes by their parts.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <interlock/interlock.h>

#include <algorithm>
#include <map>
#include <set>

namespace interlock::results_of_library_test {
namespace {

// Two equal stages of 3 ms in all, 4 micro-batches under 1F1B, free links: a step of (4 + 1) * 3.
const char* const kTwoStages = R"({
  "name": "two stages",
  "model": {"kind": "profile", "modules": [{"repeat": 2, "forward": "1 ms",
    "backward_input": "1 ms", "backward_weight": "1 ms", "stash": "10 MB", "output": "1 B"}]},
  "cluster": {"kind": "uniform", "devices": 2, "memory": "1 GB",
              "link": {"bandwidth": "1 PB/s"}},
  "training": {"strategy": "global", "micro_batches": 4, "steps": 1, "schedule": "1f1b"}})";

TEST_CASE("numbers, devices and timeline of two stages are those of a sketch on paper") {
  const Result step = simulate(kTwoStages);
  CHECK(step.name() == "two stages");
  CHECK(step.step_time_s() == doctest::Approx(0.015).epsilon(1e-9));
  CHECK(step.busy() == doctest::Approx(0.8).epsilon(1e-9));
  CHECK(step.bubble_fraction() == doctest::Approx(0.2).epsilon(1e-9));
  CHECK(step.fits_in_memory());
  CHECK_FALSE(step.tokens_per_s().has_value());
  const std::vector<Device> devices = step.devices();
  REQUIRE(devices.size() == 2);
  CHECK(devices[1].stages == std::vector<int>{1});
  // The first rank keeps two micro-batches at once, the second one.
  CHECK(devices[0].peak_stash_bytes == doctest::Approx(20e6));
  CHECK(devices[1].peak_stash_bytes == doctest::Approx(10e6));

  std::map<int, double> busy_s;
  std::map<int, double> last_end_s;
  std::multiset<std::string> ops;
  for (const Span& span : step.timeline()) {
    CHECK(span.start_s >= last_end_s[span.rank]);
    CHECK(span.stage == span.rank);
    last_end_s[span.rank] = span.end_s;
    busy_s[span.rank] += span.end_s - span.start_s;
    ops.insert(std::string(1, span.op) + std::to_string(span.micro_batch));
  }
  for (const Device& device : devices) {
    CHECK(busy_s[device.rank] == doctest::Approx(device.busy * step.step_time_s()).epsilon(1e-9));
  }
  for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
    CHECK(ops.count("F" + std::to_string(micro_batch)) == 2);
    CHECK(ops.count("B" + std::to_string(micro_batch)) == 2);
  }
}

TEST_CASE("memory over time peaks where the device says, and ends as it began") {
  const Result step = simulate(kTwoStages);
  for (const Device& device : step.devices()) {
    std::vector<MemoryPoint> own;
    for (const MemoryPoint& point : step.memory()) {
      if (point.rank == device.rank) own.push_back(point);
    }
    REQUIRE(own.size() > 2);
    const auto peak = std::max_element(
        own.begin(), own.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    CHECK(peak->bytes == doctest::Approx(device.peak_memory_bytes));
    CHECK(peak->time_s == doctest::Approx(device.peak_time_s));
    CHECK(own.back().bytes == doctest::Approx(0).scale(1e7));
    CHECK(std::is_sorted(own.begin(), own.end(),
                         [](const auto& a, const auto& b) { return a.time_s < b.time_s; }));
  }
}

TEST_CASE("memory over time has what a framework's allocator and libraries keep") {
  std::string scenario = kTwoStages;
  const std::string training = R"("training": {)";
  scenario.insert(scenario.find(training) + training.size(),
                  R"("framework": {"reserve": 0.25, "library_memory": "100 MB"}, )");
  const Result step = simulate(scenario);
  for (const Device& device : step.devices()) {
    double peak = 0, last = 0;
    for (const MemoryPoint& point : step.memory()) {
      if (point.rank != device.rank) continue;
      peak = std::max(peak, point.bytes);
      last = point.bytes;
    }
    CHECK(peak == doctest::Approx(device.peak_memory_bytes));
    CHECK(last == doctest::Approx(1.25 * 100e6));
  }
}

TEST_CASE("every metric is told by its key, and named in the JSON with its unit") {
  const Result step = simulate(kTwoStages);
  std::set<std::string> keys;
  for (const Metric& metric : metrics()) {
    INFO(metric.key);
    CHECK(keys.insert(metric.key).second);
    CHECK_NOTHROW(step.metric(metric.key));
    const bool seconds = metric.key.size() > 2 && metric.key.substr(metric.key.size() - 2) == "_s";
    if (seconds && metric.key.find("per") == std::string::npos) CHECK(metric.unit == "s");
  }
  for (const char* key : {"step_time_s", "mfu", "cost", "energy_j", "range_low_s"}) {
    CHECK(keys.count(key) == 1);
  }
  CHECK_THROWS_WITH_AS(step.metric("step_time"), doctest::Contains("no metric \"step_time\""),
                       Error);
  CHECK(step.json().find("\"format\": \"interlock-result/1\"") != std::string::npos);
}

TEST_CASE("pictures and pages need the timeline") {
  const Result step = simulate(kTwoStages);
  CHECK(step.svg().substr(0, 4) == "<svg");
  CHECK(report_html({step, step}).find("</html>") != std::string::npos);
  CHECK(step.table().find("Step time") != std::string::npos);
  Options options;
  options.timeline = false;
  const Result bare = simulate(kTwoStages, options);
  CHECK_THROWS_WITH_AS(bare.svg(), doctest::Contains("no timeline was kept"), Error);
  CHECK_THROWS_AS(bare.timeline(), Error);
  CHECK_THROWS_AS(bare.memory(), Error);
  CHECK_THROWS_AS(report_html({bare}), Error);
  CHECK_THROWS_AS(report_html({}), Error);
  CHECK(bare.step_time_s() == step.step_time_s());
}

TEST_CASE("mistakes come one by one, each with its place, its sentence and what to write instead") {
  Options options;
  options.file = "own.json";
  options.set = {"parallel.pipelin=2"};
  try {
    check(
        "{\n\"model\": \"gpt2-xl\",\n\"cluster\": \"dgx-a100-80g\",\n"
        "\"training\": {\"strategy\": \"global\", \"global_batch_size\": 8, \"schedule\": "
        "\"1f1bb\"}}",
        options);
    FAIL("a schedule that there is not");
  } catch (const Error& error) {
    REQUIRE(error.diagnostics().size() == 2);
    const auto at = [&](const std::string& path) {
      return *std::find_if(error.diagnostics().begin(), error.diagnostics().end(),
                           [&](const Diagnostic& one) { return one.path == path; });
    };
    const Diagnostic schedule = at("/training/schedule");
    CHECK(schedule.file == "own.json");
    CHECK(schedule.line == 4);
    CHECK(schedule.message == "unknown schedule \"1f1bb\"");
    CHECK(schedule.hint.find("\"1f1b\"") != std::string::npos);
    const Diagnostic key = at("/parallel/pipelin");
    CHECK(key.line == 0);
    CHECK(key.hint == "did you mean \"pipeline\"?");
  }
  CHECK_THROWS_WITH_AS(check("{"), doctest::Contains("scenario:1: "), Error);
}

}  // namespace
}  // namespace interlock::results_of_library_test
