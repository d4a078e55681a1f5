// Calibrations of GPUs whose truth is known: do they price what the shipped scenarios run?
// SPDX-License-Identifier: Apache-2.0
//
// Two synthetic GPUs, whole and divided: one whose products follow a smooth formula, and one that
// runs them as tiles in waves over its multiprocessors, by code that shares nothing with ours.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/draws.h"
#include "scenarios/load/question.h"
#include "validate/calibration/calibration.h"
#include "validate/training/execution.h"
#include "validate/training/scenario_probes.h"

namespace interlock::synthetic_gpu_test {

namespace {

constexpr int kWhole = 132;        // multiprocessors
constexpr double kRate = 800e12;   // flops a second of all of them in bf16
constexpr double kNarrowing = 16;  // fp32 is so much slower
constexpr double kBytes = 3e12;    // a second
constexpr double kLaunch = 2e-6, kNoise = 0.01;

using Truth = double (*)(const Work& work, double rate, int sms);

/// Seconds of the arithmetic: flops over a rate that short sums do not reach.
double smooth_arithmetic(const Work& work, double rate, int) {
  const ProductShape& s = work.shape;
  const double filling = s.k > 0 ? 1 + 96 / s.k + 40 / s.m + 40 / s.n : 1;
  return work.flops.value() * filling / rate;
}

/// Returns the seconds of the arithmetic in tiles: each multiprocessor works on one tile at a time,
/// a tile over the edge costs a whole one, a sum has a start and an end and may be cut into parts,
/// and the library takes the best of all.
double tiled_arithmetic(const Work& work, double rate, int sms) {
  const ProductShape& s = work.shape;
  if (s.k <= 0) return work.flops.value() / rate;
  struct Tile {
    double rows, columns, share;
  };
  constexpr std::array kTiles = {Tile{256, 128, 1.0}, Tile{128, 256, 1.0}, Tile{128, 128, 0.93},
                                 Tile{128, 64, 0.78}, Tile{64, 128, 0.78}, Tile{64, 64, 0.6}};
  double best = 1e300;
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(s.m / tile.rows) * std::ceil(s.n / tile.columns) * s.batch;
    for (int parts = 1; parts <= 8 && (parts == 1 || s.k / parts >= 256); parts *= 2) {
      const double steps = s.k / parts + 80 + (parts > 1 ? 48 : 0);  // and adding the parts up
      const double each = 2 * tile.rows * tile.columns * steps / (tile.share * rate / sms);
      best = std::min(best, std::ceil(tiles * parts / sms) * each);
    }
  }
  // A kernel of two products has the sizes of the one that its forward begins with.
  return best * std::max(1.0, std::round(work.flops.value() / (2 * s.m * s.n * s.k * s.batch)));
}

/// Returns seconds: the longer of arithmetic and bytes with a soft corner, behind the launches.
double true_time(const Work& work, Precision precision, Truth arithmetic, int sms) {
  const double share = static_cast<double>(sms) / kWhole;
  const double rate = kRate * share / (precision == Precision::Fp32 ? kNarrowing : 1);
  const double a = arithmetic(work, rate, sms), b = work.bytes.value() / (kBytes * share);
  return work.launches * kLaunch + std::cbrt(a * a * a + b * b * b);
}

Bench synthetic_bench(Truth arithmetic, int sms) {
  const double share = static_cast<double>(sms) / kWhole;
  Bench bench = {.facts = {.kind = "test", .name = "synthetic", .memory = Bytes(80e9 * share)},
                 .precisions = {Precision::Fp32, Precision::Bf16},
                 .longest_side = 16384,
                 .multiprocessors = sms,
                 .most_bytes = Bytes(4e8)};
  bench.most_flops[static_cast<std::size_t>(Precision::Fp32)] = Flops(1.5e11 * share);
  bench.most_flops[static_cast<std::size_t>(Precision::Bf16)] = Flops(2e12 * share);
  auto asked = std::make_shared<std::uint64_t>(0);
  bench.time = [=](const Probe& probe, int count, Beside) {
    Random random(++*asked, 5);
    Readings readings;
    for (int i = 0; i < count; ++i) {
      readings.busy.push_back(true_time(probe.work, probe.precision, arithmetic, sms) *
                              std::exp(kNoise * draw_normal(random)));
    }
    readings.wall = readings.busy;
    return readings;
  };
  bench.launch = [](int count) {
    const std::vector<double> times(static_cast<std::size_t>(count), kLaunch);
    return Readings{times, times, ""};
  };
  return bench;
}

struct Case {
  const char* scenario;
  int sms;
};
constexpr std::array kCases = {Case{"gpu-large-blocks", 132}, Case{"gpu-2-partitions", 64},
                               Case{"gpu-4-partitions", 32}, Case{"gpu-8-partitions", 16}};

/// Returns the kernels of all points of a shipped scenario.
ScenarioProbes probes_of(const Case& one, std::vector<Question>& scenarios) {
  scenarios = load_questions(read_scenario_document(
      std::string(SCENARIOS_FOLDER "/validation/") + one.scenario + ".json", {}));
  ScenarioProbes all;
  for (const Question& scenario : scenarios) {
    append_probes(all, scenario_probes(scenario.training().graph, network_of(scenario),
                                       scenario.training().precision));
  }
  return all;
}

/// Returns the largest error of a product of `probes`; counts those that the table has.
double worst_error(const CalibratedModel& model, const ScenarioProbes& probes, Truth arithmetic,
                   const Case& one, int& in_table) {
  double worst = 0;
  for (const Probe& probe : probes.probes) {
    if (probe.work.shape.k <= 0) continue;
    const auto priced = calibrated_time(model, probe.work, probe.precision);
    REQUIRE(priced.has_value());
    const double truth = true_time(probe.work, probe.precision, arithmetic, one.sms);
    const double error = priced->whole().value() / truth - 1;
    const ProductShape& s = probe.work.shape;
    CAPTURE(one.scenario);
    INFO(s.m << " x " << s.n << " x " << s.k << ", " << s.batch << ": " << 100 * error << " %");
    worst = std::max(worst, std::abs(error));
    if (priced->priced_by == PricedBy::Table) ++in_table;
    CHECK(std::abs(error) < (priced->priced_by == PricedBy::Table ? 0.03 : 0.1));
  }
  return worst;
}

}  // namespace

TEST_CASE("measured for a scenario, its products are in the table, within 3 %") {
  for (const Truth arithmetic : {smooth_arithmetic, tiled_arithmetic}) {
    for (const Case& one : kCases) {
      std::vector<Question> scenarios;
      const ScenarioProbes wanted = probes_of(one, scenarios);
      const Calibration calibration =
          calibrate(synthetic_bench(arithmetic, one.sms), {.quick = true, .wanted = wanted.probes});
      int in_table = 0, products = 0;
      for (const Probe& probe : wanted.probes) products += probe.work.shape.k > 0 ? 1 : 0;
      worst_error(calibration.model, wanted, arithmetic, one, in_table);
      CHECK(products > 10);
      CHECK(in_table == products);
    }
  }
}

TEST_CASE("every kernel of a shipped scenario but look-ups of places has a probe of its own") {
  for (const Case& one : kCases) {
    std::vector<Question> scenarios;
    const ScenarioProbes wanted = probes_of(one, scenarios);
    INFO(one.scenario << ": " << wanted.probes.size() << " kernels");
    CHECK(wanted.probes.size() < 100);
    for (const Work& work : wanted.left_out) {
      INFO("left out: class " << static_cast<int>(work.op_class) << ", variant "
                              << static_cast<int>(work.variant) << ", role "
                              << static_cast<int>(work.role) << ", bytes " << work.bytes.value());
      CHECK(work.op_class == OpClass::Embedding);
    }
  }
}

}  // namespace interlock::synthetic_gpu_test
