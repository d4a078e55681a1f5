// Ranges: that they hold the truth as often as they say, and say what they rest on.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <random>

#include "hardware/devices/borrowed_efficiency.h"
#include "scenarios/ranges/published_errors.h"
#include "scenarios/simulate/calibrated_range.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::ranges_test {
namespace {

// A device whose kernels take as long as a roofline says, times exp(a normal of deviation 0.2).
constexpr double kSpread = 0.2;
constexpr double kLaunch = 2e-6, kRate = 1e12, kStream = 1e9;

double roofline_s(const Work& work) {
  return work.launches * kLaunch +
         std::max(work.flops.value() / kRate, work.bytes.value() / kStream);
}

/// Returns `samples` products and elementwise kernels, as measured on such a device.
std::string calibration(std::mt19937& random, int samples) {
  std::normal_distribution<double> normal(0, kSpread);
  std::uniform_int_distribution<int> size(16, 512);
  std::string rows;
  for (int i = 0; i < 2 * samples; ++i) {
    const double m = size(random), n = size(random), k = size(random);
    const bool product = i < samples;
    const double flops = product ? 2 * m * n * k : 0;
    const double bytes = product ? 4 * (m * k + k * n + m * n) : 8 * m * n;
    const double time =
        roofline_s({.flops = Flops(flops), .bytes = Bytes(bytes)}) * std::exp(normal(random));
    rows += (i == 0 ? "" : ",") + std::string("{\"class\": \"") + (product ? "gemm" : "optimizer") +
            "\", \"role\": \"other\", \"precision\": \"fp32\"" +
            (product ? ", \"m\": " + std::to_string(m) + ", \"n\": " + std::to_string(n) +
                           ", \"k\": " + std::to_string(k)
                     : "") +
            ", \"flops\": " + std::to_string(flops) + ", \"bytes\": " + std::to_string(bytes) +
            ", \"seconds\": " + std::to_string(time * 1e6) + "e-6}";
  }
  const auto roof = [](const char* name, const char* rate) {
    return "{\"class\": \"" + std::string(name) + "\", \"precision\": \"fp32\", " + rate +
           ", \"launch_s\": 2e-6, \"sharpness\": 1000}";
  };
  std::string rooflines = roof("gemm", "\"flops_per_s\": 1e12");
  for (const char* name : {"elementwise", "loss", "optimizer", "embedding", "normalisation"}) {
    rooflines += ", " + roof(name, "\"bytes_per_s\": 1e18, \"share\": 1");
  }
  return R"({"name": "synthetic", "memory": "64 GB", "memory_bandwidth": "1 GB/s",
             "peak": {"fp32": "1 TFLOP/s"}, "calibration": {
               "format": "interlock-calibration/1", "date": "2026-01-01", "seed": 1,
               "stream": [{"bytes": 1, "seconds": 1e-9}, {"bytes": 1e9, "seconds": 1}],
               "rooflines": [)" +
         rooflines + "], \"kernels\": [], \"table\": [" + rows + "]}}";
}

/// One device, one micro-batch: a step is the sum of its kernels.
Question chain(const std::string& device, int seed) {
  const std::string text = R"({
    "model": {"kind": "mlp", "input_size": 300, "hidden_sizes": [200, 170, 90], "classes": 50},
    "cluster": {"kind": "uniform", "devices": 1, "link": {"bandwidth": "1 GB/s"},
                "device": )" +
                           device + R"(},
    "training": {"strategy": "global", "global_batch_size": 64, "precision": "fp32",
                 "optimizer": "sgd", "steps": 1},
    "simulate": {"engine": "native", "seed": )" +
                           std::to_string(seed) + "}}";
  return load_questions(document(text)).front();
}

/// `scenario` with a device on which every kernel takes a factor of its own, that no model knows.
Question with_true_times(Question scenario, std::mt19937& random) {
  std::normal_distribution<double> normal(0, kSpread);
  auto truth =
      std::make_shared<CalibratedModel>(*scenario.cluster.machines.front().device.calibrated);
  truth->table.clear();
  for (const Module& module : scenario.training().graph.modules) {
    for (const auto* works :
         {&module.forward, &module.backward_input, &module.backward_weight, &module.update}) {
      for (const Work& work : *works) {
        const Seconds time = Seconds(roofline_s(work) * std::exp(normal(random)));
        truth->table.push_back({scenario.training().precision, work, time, -1});
      }
    }
  }
  sort_table(*truth);
  scenario.cluster.machines.front().device.calibrated = truth;
  return scenario;
}

TEST_CASE("ranges of synthetic calibrations hold the truth as often as they say") {
  constexpr int kTrials = 300, kDraws = 60;
  std::mt19937 random(11);
  int within = 0;
  double width = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Question scenario = chain(calibration(random, 60), trial + 1);
    const Confidence found = calibrated_range(make_plan(scenario), kDraws);
    REQUIRE(found.range);
    const Seconds truth =
        run_scenario(with_true_times(scenario, random), false).measurement.metrics.step_time;
    within += found.range->low <= truth && truth <= found.range->high;
    width += found.range->high / found.range->low / kTrials;
  }
  const double deviation = std::sqrt(kTrials * 0.8 * 0.2);
  MESSAGE("80 % of 300 is 240, give or take 3.3 binomial deviations of " << deviation << "; found "
                                                                         << within);
  CHECK(std::abs(within - 0.8 * kTrials) < 3.3 * deviation);
  MESSAGE("the upper end over the lower one: " << width << " on average");
  CHECK(width > 1.05);
  CHECK(width < 1.5);
}

TEST_CASE("draws are the same for the same seed, and others for another") {
  std::mt19937 random(3);
  const std::string device = calibration(random, 40);
  const std::vector<Seconds> once = drawn_steps(make_plan(chain(device, 1)), 20);
  CHECK(once == drawn_steps(make_plan(chain(device, 1)), 20));
  CHECK(once != drawn_steps(make_plan(chain(device, 2)), 20));
  MESSAGE("the first draws of more are the draws of fewer");
  const std::vector<Seconds> more = drawn_steps(make_plan(chain(device, 1)), 30);
  CHECK(std::equal(once.begin(), once.end(), more.begin()));
}

TEST_CASE("a calibrated device says what lies beyond its measurements") {
  std::mt19937 random(5);
  Question scenario = chain(calibration(random, 40), 1);
  const auto limits = [&] {
    std::string all;
    for (const std::string& reason : calibration_limits(lay_out(scenario).draft))
      all += reason + "\n";
    return all;
  };
  MESSAGE("of elementwise kernels and losses no sample was taken; products are all within");
  CHECK(limits().find("gemm") == std::string::npos);
  CHECK(run_scenario(scenario, false).confidence.extrapolates ==
        calibration_limits(lay_out(scenario).draft));
  CHECK(!run_scenario(scenario, false).confidence.range);
  auto less =
      std::make_shared<CalibratedModel>(*scenario.cluster.machines.front().device.calibrated);
  std::erase_if(less->table, [](const MeasuredKernel& row) { return row.work.flops > Flops(2e6); });
  scenario.cluster.machines.front().device.calibrated = less;
  CHECK(limits().find("of sizes beyond the largest that was calibrated (gemm") !=
        std::string::npos);
  constexpr auto kPrecision = static_cast<std::size_t>(Precision::Fp32);
  less->rooflines[kPrecision][static_cast<std::size_t>(OpClass::Optimizer)].reset();
  CHECK(limits().find("of classes that were not calibrated (optimizer)") != std::string::npos);
}

PublishedErrors errors() {
  // Ratios 0.91, 0.92 ... 1.10, and one far away table.
  std::vector<double> twenty, hundred(100, 2.0);
  for (int i = 1; i <= 20; ++i) twenty.push_back(0.9 + 0.01 * i);
  return {{{"a: one", "A100", "megatron-lm", 64, {"global"}, {"1f1b"}, {"bf16"}, twenty},
           {"b: two", "A100", "nemo", 8, {"global"}, {"1f1b"}, {"bf16"}, hundred}}};
}

TEST_CASE("published errors give a range, and reasons why it may not hold") {
  const RunTraits like{"A100", "megatron-lm", "global", "1f1b", "bf16", 64};
  MESSAGE("a tenth of 20 ratios lie below or at 0.92, nine tenths at 1.08");
  const Confidence found = range_from(errors(), like, Seconds(10));
  REQUIRE(found.range);
  CHECK(found.range->low.value() == doctest::Approx(9.2));
  CHECK(found.range->high.value() == doctest::Approx(10.8));
  CHECK(found.range->level == 0.8);
  CHECK(found.range->basis == "published runs (A100, megatron-lm): 20 rows of 1 table");
  CHECK(found.extrapolates.empty());
  MESSAGE("ratios 1, 1.01, 0.99, 1.02, ... are 0, 1, 1, 2 % ... off; the tenth of 20 is 1.05");
  CHECK(found.range->typical == doctest::Approx(1 - 1 / 1.05));
  CHECK_FALSE(found.range->of_others);
  MESSAGE("of both tables alike: a tenth of all is a fifth of the first, 0.94; the rest is at 2");
  const Confidence other =
      range_from(errors(), {"A100", "", "local", "gpipe", "fp8", 65}, Seconds(10));
  CHECK(other.range->low.value() == doctest::Approx(9.4));
  CHECK(other.range->high.value() == doctest::Approx(20));
  CHECK(other.extrapolates ==
        std::vector<std::string>{
            std::string("too few measured runs on A100 under no framework (0): the range is ") +
                "that of all on A100",
            "no measured run trained by local losses", "no measured run had the schedule gpipe",
            "no measured run computed in fp8", "more devices (65) than any measured run (64)"});
  const Confidence unknown =
      range_from(errors(), {"H200", "nemo", "global", "1f1b", "bf16", 1}, Seconds(10));
  CHECK(unknown.range->basis == "published runs (all devices): 120 rows of 2 tables");
  CHECK(unknown.range->of_others);
  CHECK(unknown.extrapolates ==
        std::vector<std::string>{
            "too few measured runs on H200 (0): the range is that of all devices"});
  CHECK(!range_from({}, like, Seconds(1)).range);
}

TEST_CASE("the error between runs is the median over the pairs of a table") {
  PublishedErrors errors{
      .tables = {{.generation = "A100", .ratios = {}}, {.generation = "A100", .ratios = {1}}}};
  const std::vector<std::vector<double>> tables = {
      {1.3, 1, 1.05, 0.9, 1.31, 1, 1, 0.8}, {2, 2.5, 2.1}, {1, 1.01}};
  std::vector<std::pair<double, double>> pairs;  // error, weight
  for (const std::vector<double>& ratios : tables) {
    errors.tables.push_back({.generation = "A100", .ratios = ratios});
    const auto rows = static_cast<double>(ratios.size());
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double error = std::max(ratios[i] / ratios[j], ratios[j] / ratios[i]) - 1;
        pairs.emplace_back(error, 2 / (rows * (rows - 1) * 3));
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  double below = 0;
  const auto median = std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return (below += pair.second) >= 0.5 - 1e-9;
  });
  const RunTraits like{"A100", "megatron-lm", "global", "1f1b", "bf16", 64};
  CHECK(range_from(errors, like, Seconds(1)).range->between == doctest::Approx(median->first));
}

TEST_CASE("a widening is a power of what lies between the middle and the ends") {
  PublishedErrors wider = errors();
  wider.widening = 2;
  const auto range =
      range_from(wider, {"A100", "megatron-lm", "global", "1f1b", "bf16", 64}, Seconds(10)).range;
  MESSAGE("the middle of 20 ratios is 1: 0.92^2 and 1.08^2");
  CHECK(range->low.value() == doctest::Approx(10 * 0.92 * 0.92));
  CHECK(range->high.value() == doctest::Approx(10 * 1.08 * 1.08));
}

TEST_CASE("generations are the first part of a name with a digit") {
  CHECK(generation_of("A100-SXM4-80GB") == "A100");
  CHECK(generation_of("RTX-3090-24GB") == "RTX-3090");
  CHECK(generation_of("TPU-v3") == "TPU-v3");
  CHECK(generation_of("inline") == "inline");
}

TEST_CASE("what a profile measured has no range of published runs") {
  const ScenarioResult result = run_scenario(loaded(), false);
  CHECK(!result.confidence.range);
  CHECK(result.confidence.extrapolates.empty());
}

}  // namespace
}  // namespace interlock::ranges_test
