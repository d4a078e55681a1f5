// Packed samples: step times against sums over documents and against a list of events.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "scenarios/plan/lower_plan.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::packed_steps_test {
namespace {

constexpr double kRate = 1e12;  // flops a second; nothing else takes time
constexpr int kWidth = 64, kTokens = 1024, kLayers = 2, kMicroBatches = 4, kSteps = 3;

/// Two blocks of width 64 over 1024 tokens, four micro-batches, on devices that only compute.
const std::string kSmall = R"({
  "model": {"kind": "transformer", "layers": 2, "hidden_size": 64, "attention_heads": 4,
            "vocab_size": 128, "sequence_length": 1024},
  "cluster": {"kind": "uniform", "devices": 1, "link": {"bandwidth": "1000000 TB/s"},
              "device": {"memory": "80 GB", "memory_bandwidth": "1000000 TB/s",
                         "peak": {"bf16": "1 TFLOP/s"}, "efficiency": "peak"}},
  "training": {"strategy": "global", "global_batch_size": 4, "micro_batches": 4, "steps": 3,
               "optimizer": "sgd"}
})";
const std::string kMixed = R"(variation={"documents": {"lengths": [128, 256, 512]}, "seeds": 3})";

Question question(const Overrides& overrides) {
  std::vector<Question> all = load_questions(document(kSmall, overrides));
  REQUIRE(all.size() == 1);
  return all.front();
}

ScenarioResult run(const Overrides& overrides) { return run_scenario(question(overrides), false); }

/// Pairs that a fused causal kernel computes: b (b + 1) / 2 blocks of 128 x 128.
double pairs(double tokens) { return 128 * 128 * (tokens / 128) * (tokens / 128 + 1) / 2; }

/// Pairs of the documents of a micro-batch of one sample, less those of one that is whole.
double saved(const Question& asked, std::uint64_t seed, const PackedBatch& batch) {
  double all = -pairs(kTokens);
  for (const Document& one : draws_of(asked, asked.training().graph).of(seed, batch)) {
    all += one.count * pairs(one.tokens);
  }
  return all;
}

/// Returns the mean over seeds and measured steps of what `time` says of a step.
template <class Time>
double mean_over_steps(int fill, const Time& time) {
  double sum = 0;
  for (int seed = 1; seed <= 3; ++seed) {
    for (int step = fill; step < fill + kSteps; ++step) sum += time(seed, step);
  }
  return sum / (3 * kSteps);
}

TEST_CASE("a step takes what the documents of its micro-batches take") {
  // 4 x width flops a pair and layer forward, 10 x width backward.
  const ScenarioResult whole = run({}), packed = run({kMixed});
  REQUIRE(packed.varied);
  const Question asked = question({kMixed});
  const double expected = mean_over_steps(packed.measurement.metrics.fill_steps, [&](int s, int n) {
    double step = step_of(whole);
    for (int m = 0; m < kMicroBatches; ++m) {
      step += 14.0 * kWidth * kLayers * saved(asked, s, {0, n * kMicroBatches + m}) / kRate;
    }
    return step;
  });
  MESSAGE("whole " << step_of(whole) << " s, packed " << expected << " s; got " << step_of(packed));
  CHECK(expected < step_of(whole));
  CHECK(step_of(packed) == doctest::Approx(expected).epsilon(1e-9));
  CHECK(packed.varied->step_time.p5 < packed.varied->step_time.p95);
  CHECK(packed.measurement.metrics.devices[0].peak_memory ==
        whole.measurement.metrics.devices[0].peak_memory);
}

TEST_CASE("replicas read documents of their own, and wait for the slowest") {
  const Overrides two = {R"(parallel={"data": 2})", "cluster.devices=2",
                         "training.global_batch_size=8"};
  Overrides mixed = two;
  mixed.push_back(kMixed);
  const ScenarioResult whole = run(two), packed = run(mixed);
  const Question asked = question(mixed);
  const double expected = mean_over_steps(packed.measurement.metrics.fill_steps, [&](int s, int n) {
    double slowest = -1e300;
    for (int group = 0; group < 2; ++group) {
      double sum = 0;
      for (int m = 0; m < kMicroBatches; ++m) {
        sum += saved(asked, s, {group, n * kMicroBatches + m});
      }
      slowest = std::max(slowest, sum);
    }
    return step_of(whole) + 14.0 * kWidth * kLayers * slowest / kRate;
  });
  CHECK(packed.measurement.metrics.devices.size() == 2);
  CHECK(step_of(packed) == doctest::Approx(expected).epsilon(1e-6));  // gradients at 1e18 B/s
}

/// Times of forward and backward of both stages for each micro-batch, in seconds.
struct StageTimes {
  std::array<std::vector<double>, 2> forward, backward;
  std::array<double, 2> update = {};
};

/// Runs 1F1B of two stages event by event. Returns when each step ends.
std::vector<double> one_f_one_b(const StageTimes& t, int steps) {
  std::array<double, 2> free = {};
  std::vector<double> ends;
  const int m = kMicroBatches;
  for (int step = 0; step < steps; ++step) {
    std::vector<double> up(m), down(m);
    const auto ahead = [&](int b) {
      up[b] = free[0] += t.forward[0][step * m + b];
      free[1] = std::max(free[1], up[b]) + t.forward[1][step * m + b];
      down[b] = free[1] += t.backward[1][step * m + b];
    };
    // Stage 0 runs F0 F1 B0 F2 B1 F3 B2 B3, stage 1 a forward and its backward in turn.
    ahead(0);
    for (int b = 1; b < m; ++b) {
      ahead(b);
      free[0] = std::max(free[0], down[b - 1]) + t.backward[0][step * m + b - 1];
    }
    free[0] = std::max(free[0], down[m - 1]) + t.backward[0][step * m + m - 1];
    for (int stage = 0; stage < 2; ++stage) free[stage] += t.update[stage];
    ends.push_back(std::max(free[0], free[1]));
  }
  return ends;
}

TEST_CASE("a pipeline of unequal micro-batches takes what a list of its events says") {
  const Overrides two = {R"(parallel={"pipeline": 2})", "cluster.devices=2", "partition=[2, 2]",
                         "training.schedule=1f1b"};
  Overrides mixed = two;
  mixed.push_back(R"(variation={"documents": {"lengths": [128, 1024]}, "seeds": 1})");
  const ScenarioResult packed = run(mixed);
  const Question asked = question(mixed);
  const Program whole = lower_plan(make_plan(question(two)), 1);
  const int fill = packed.measurement.metrics.fill_steps, steps = fill + kSteps;
  StageTimes times;
  for (int number = 0; number < steps * kMicroBatches; ++number) {
    const double less = kWidth * saved(asked, 1, {0, number}) / kRate;  // a block in each stage
    std::array<bool, 2> seen = {};
    for (const OpInfo& op : whole.ops) {
      const auto stage = static_cast<std::size_t>(op.stage);
      if (op.kind == OpKind::F) {
        times.forward[stage].push_back(op.duration.value() + 4 * less);
      } else if (op.kind == OpKind::B && !seen[stage]) {
        times.backward[stage].push_back(op.duration.value() + 10 * less);
        seen[stage] = true;
      } else if (op.kind == OpKind::U) {
        times.update[stage] = op.duration.value();
      }
    }
  }
  const std::vector<double> ends = one_f_one_b(times, steps);
  const double begin = fill > 0 ? ends[static_cast<std::size_t>(fill) - 1] : 0;
  const double expected = (ends.back() - begin) / kSteps;
  MESSAGE("by events " << expected << " s a step; got " << step_of(packed));
  CHECK(step_of(packed) == doctest::Approx(expected).epsilon(1e-6));
}

TEST_CASE("equal documents do not vary, and take what chunks take") {
  const ScenarioResult packed = run({R"(variation={"documents": {"lengths": [256]}, "seeds": 2})"});
  const ScenarioResult chunks = run({"model.attention_chunk=256"});
  CHECK(step_of(packed) == doctest::Approx(step_of(chunks)).epsilon(1e-9));
  CHECK(packed.varied->step_time.p5 == packed.varied->step_time.p95);
}

TEST_CASE("documents fill each sample, and are as long on average as they should be") {
  const DocumentDraws draws({.mean = 300, .spread = 1.5}, 1'000'000, 2);
  const Documents first = draws.of(1, {0, 0});
  double tokens = 0, count = 0;
  for (const Document& one : first) {
    tokens += one.count * one.tokens;
    count += one.count;
  }
  CHECK(tokens == doctest::Approx(1e6));                       // of one of its two samples
  CHECK(tokens / count == doctest::Approx(300).epsilon(0.1));  // 6667 documents: 2.6 % of noise
  CHECK(draws.of(1, {0, 0}) == first);
  CHECK(draws.of(1, {0, 1}) != first);
  CHECK(draws.of(1, {1, 0}) != first);
  CHECK(draws.of(2, {0, 0}) != first);
  // 1000 = 600 + 400: the second document is cut.
  CHECK(DocumentDraws({.known = {600}}, 1000, 3).of(1, {0, 0}) == Documents{{400, 1}, {600, 1}});
}

TEST_CASE("what samples have on average takes no more draws for short documents") {
  // A billion documents in a thousand samples: one sample says it.
  CHECK(DocumentDraws({.known = {1}}, 1'000'000, 1).mean(1) == Documents{{1, 1e6}});
}

TEST_CASE("more documents than a run can draw are refused") {
  CHECK_THROWS_WITH_AS(
      run({R"(variation={"documents": {"lengths": [1]}, "seeds": 10000})"}),
      "test.json: test: /variation/documents: 123 M documents of all seeds; expected 100 M or "
      "fewer, by fewer seeds or steps",
      Error);
}

TEST_CASE("lengths may stand in a file, and its mistakes have a line") {
  const std::string path = std::filesystem::temp_directory_path() / "interlock packed lengths.txt";
  const auto write = [&](const char* text) { std::ofstream(path) << text; };
  const std::string from_file = R"(variation={"documents": {"lengths": ")" + path + R"("}})";
  write("128\n256\n\n512\r\n");
  CHECK(question({from_file}).variation->documents->known == std::vector<double>{128, 256, 512});
  write("128\n12x\n");
  CHECK(mistakes_of(document(kSmall, {from_file})) ==
        "set: /variation/documents/lengths: " + path +
            ":2: expected a whole number of tokens from 1, got \"12x\"");
  std::filesystem::remove(path);
}

TEST_CASE("documents are refused where they mean nothing") {
  const auto told = [](const Overrides& overrides) {
    return mistakes_of(document(kSmall, overrides));
  };
  CHECK(told({"variation={\"documents\": {}}"}) ==
        "set: /variation/documents: expected how long documents are: \"lengths\", a list or a "
        "file, or the \"mean\" of a log-normal distribution");
  CHECK(
      told({"model.attention=materialised", kMixed}) ==
      "set: /variation/documents: no kernel of the model takes less for short documents; expected "
      "a model of text with \"attention\": \"fused\" and no \"selection\"");
  CHECK(told({R"(variation={"documents": {"lengths": [64], "spread": 2}})"}) ==
        "set: /variation/documents/spread: lengths are given; expected it with \"mean\"");
}

}  // namespace
}  // namespace interlock::packed_steps_test
