// Kineto files: what trace analysis makes of them is what the program measured.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/traces/trace_events.h"

namespace interlock::kineto_test {
namespace {

using Json = nlohmann::json;

/// Microseconds covered by intervals, which may overlap.
double covered(std::vector<std::pair<double, double>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  double sum = 0, end = 0;
  for (const auto& [from, to] : intervals) {
    sum += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return sum;
}

/// As Holistic Trace Analysis divides the time of a rank: kernels by name, time in which any
/// computes, in which others run alone, and in which nothing runs.
struct Breakdown {
  double compute = 0, other = 0, idle = 0, overlapped = 0;  // microseconds
};

Breakdown breakdown(const Json& file) {
  std::vector<std::pair<double, double>> compute, messages, all;
  for (const Json& event : file["traceEvents"]) {
    const std::string category = event.value("cat", "");
    if (category != "kernel" && category != "gpu_memcpy") continue;
    const std::pair<double, double> span = {event["ts"],
                                            event["ts"].get<double>() + event["dur"].get<double>()};
    all.push_back(span);
    const std::string name = event["name"];
    if (name.starts_with("nccl")) messages.push_back(span);
    if (!name.starts_with("nccl") && !name.starts_with("Memcpy")) compute.push_back(span);
  }
  double begin = all.front().first, end = 0;
  for (const auto& [from, to] : all) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
  std::vector<std::pair<double, double>> both = compute;
  both.insert(both.end(), messages.begin(), messages.end());
  Breakdown result{covered(compute), 0, end - begin - covered(all)};
  result.other = covered(all) - result.compute;
  result.overlapped = result.compute + covered(messages) - covered(both);
  return result;
}

std::string whole(const TextSource& text) {
  std::string all;
  text([&](std::string_view piece) { all += piece; });
  return all;
}

const char* const kOneStep = R"({
  "model": {"kind": "profile", "modules": [{"repeat": 4, "forward": "1 ms",
    "backward_input": "1 ms", "backward_weight": "1 ms", "output": "10 MB"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
    "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "global", "schedule": "gpipe", "micro_batches": 4, "steps": 1}})";

ScenarioResult one_step() {
  return run_scenario(load_questions(parse_json(kOneStep, "test.json")).at(0), true);
}

}  // namespace

TEST_CASE("the time of each rank divides as the metrics say") {
  // GPipe, F 1 ms, B 2 ms, M = 4: each device computes 12 ms. Messages of 10 MB take 0.1 ms.
  const ScenarioResult run = one_step();
  const Metrics& metrics = run.measurement.metrics;
  for (const DeviceMetrics& device : metrics.devices) {
    CAPTURE(device.rank);
    const Breakdown times = breakdown(Json::parse(whole(kineto_trace(run, device.rank))));
    CHECK(times.compute == doctest::Approx(12'000).epsilon(1e-9));
    CHECK(times.compute * 1e-6 ==
          doctest::Approx(device.busy * metrics.step_time.value()).epsilon(1e-9));
    CHECK(times.idle >= 0);
    // Messages run beside the compute of a device, but for the last forward and the last backward
    // of each pair; every device sends or receives some of each.
    CHECK(times.overlapped > 0);
    CHECK(times.other > 0);
  }
}

TEST_CASE("a file says which rank it is, and each kernel is launched once, in one step") {
  const ScenarioResult run = one_step();
  for (int rank = 0; rank < 4; ++rank) {
    const Json file = Json::parse(whole(kineto_trace(run, rank)));
    const Json expected = {{"backend", "nccl"}, {"rank", rank}, {"world_size", 4}};
    CHECK(file["distributedInfo"] == expected);
    std::map<int, int> kernels, launches;
    std::vector<std::pair<double, double>> steps;
    for (const Json& event : file["traceEvents"]) {
      const std::string category = event.value("cat", "");
      if (category == "user_annotation") {
        CHECK(event["name"] == "ProfilerStep#" + std::to_string(steps.size()));
        steps.emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
      }
      if (category == "kernel") {
        ++kernels[event["args"]["correlation"]];
        CHECK(event["args"]["stream"].get<int>() >= 0);
        CHECK(event["args"].contains("device"));
      }
      if (category != "cuda_runtime") continue;
      CHECK(event["args"]["cbid"].is_number());
      ++launches[event["args"]["correlation"]];
      const double at = event["ts"];
      const auto in_step = [at](const auto& step) { return step.first <= at && at < step.second; };
      CHECK(std::count_if(steps.begin(), steps.end(), in_step) == 1);
    }
    CHECK(steps.size() == 1);
    CHECK(kernels == launches);
    CHECK(kernels.size() > 8);
    for (const auto& [correlation, count] : kernels) CHECK(count == 1);
  }
}

}  // namespace interlock::kineto_test
