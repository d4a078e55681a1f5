// Probes of the calibration as steps of training: which kernels, on how many bytes. No GPU needed.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/bench/probe_plan.h"

#include <doctest/doctest.h>

#include <numeric>

#include "validate/calibration/probe_grid.h"

using namespace interlock;
using namespace interlock::cuda;

namespace {

std::int64_t block(const ProbePlan& plan, Place place) {
  return plan.bytes[static_cast<std::size_t>(place)];
}

std::int64_t sum_of(const ProbePlan& plan) {
  std::int64_t sum = std::accumulate(plan.bytes.begin(), plan.bytes.end(), std::int64_t{0});
  for (const auto* list : {&plan.weights, &plan.gradients}) {
    sum = std::accumulate(list->begin(), list->end(), sum);
  }
  return sum;
}

std::vector<Probe> grid_of(Precision precision) {
  return probe_grid({.linears = 12,
                     .attentions = 12,
                     .convolutions = 6,
                     .sizes = 3,
                     .most_flops = Flops(1e9),
                     .most_bytes = Bytes(1e6)},
                    precision);
}

Probe probe_of(ProbeKind kind, OpRole role, std::int64_t rows, std::int64_t width) {
  Probe probe = {.kind = kind, .precision = Precision::Bf16, .rows = rows, .width = width};
  probe.work.role = role;
  return probe;
}

}  // namespace

TEST_CASE("a linear layer's three probes are the steps that training takes, on its tensors") {
  // x (96, 40), W (40, 24), b (24), y (96, 24), in bf16: 2 bytes each.
  const std::int64_t x = 7680, w = 1920, y = 4608, b = 48;
  const std::vector<Probe> probes = linear_probes(96, 40, 24, Precision::Bf16);
  REQUIRE(probes.size() == 3);
  const ProbePlan forward = plan_probe(probes[0]);
  CHECK(forward.step.kind == StepKind::Forward);
  CHECK(forward.step.layer->bias);
  CHECK(sum_of(forward) == x + w + b + y);
  const ProbePlan back = plan_probe(probes[1]);
  CHECK(back.step.kind == StepKind::BackwardInput);
  CHECK(block(back, Place::OutputGradient) == y);
  CHECK(block(back, Place::InputGradient) == x);
  CHECK(sum_of(back) == x + w + b + y);
  const ProbePlan weights = plan_probe(probes[2]);
  CHECK(weights.step.kind == StepKind::BackwardWeight);
  CHECK(block(weights, Place::Input) == x);
  CHECK(block(weights, Place::OutputGradient) == y);
  CHECK(weights.gradients == std::vector<std::int64_t>{w, b});
  for (const ProbePlan& plan : {forward, back, weights}) {
    CHECK(plan.call == ProbePlan::Call::Step);
    CHECK(plan.layers->front().inputs == 40);
    CHECK(plan.layers->front().outputs == 24);
    CHECK(plan.step.x.rows == 96);
  }
}

TEST_CASE("probes of a scenario have its heads, its words, and a bias only where it has one") {
  Probe scores = {.kind = ProbeKind::Scores, .precision = Precision::Bf16, .heads = 32};
  scores.work.shape = {64, 64, 16, 96};
  scores.work.role = OpRole::Forward;
  const ProbePlan attention = plan_probe(scores);
  CHECK(attention.layers->front().heads == 32);
  CHECK(attention.samples == 3);
  Probe bare = linear_probes(96, 40, 24, Precision::Bf16)[2];
  bare.bias = false;
  CHECK(plan_probe(bare).gradients.size() == 1);
  Probe words = probe_of(ProbeKind::Embedding, OpRole::Forward, 64, 128);
  words.words = 300;
  CHECK(plan_probe(words).layers->front().inputs == 300);
}

TEST_CASE("what moves bytes works on the tensors of its kind and no others") {
  struct Row {
    ProbeKind kind;
    OpRole role;
    std::int64_t bytes;  // of all operands
  };
  // 64 rows of 256 numbers of 2 bytes: n bytes each.
  const std::int64_t n = 32'768, row = 512;
  const std::vector<Row> rows = {
      {ProbeKind::Stream, OpRole::Forward, 2 * n},
      {ProbeKind::Relu, OpRole::Forward, n},            // in place
      {ProbeKind::Relu, OpRole::InputGradient, 2 * n},  // in the gradient's place
      {ProbeKind::Gelu, OpRole::Forward, 2 * n},
      {ProbeKind::Gelu, OpRole::InputGradient, 3 * n},
      {ProbeKind::Residual, OpRole::Forward, 2 * n},
      {ProbeKind::Softmax, OpRole::Forward, n},
      {ProbeKind::Softmax, OpRole::InputGradient, 2 * n},
      {ProbeKind::LayerNorm, OpRole::Forward, 2 * n + 2 * row},
      {ProbeKind::LayerNorm, OpRole::InputGradient, 3 * n + 2 * row},
      {ProbeKind::LayerNorm, OpRole::WeightGradient, 2 * n + 4 * row},
      {ProbeKind::Embedding, OpRole::Forward, n + 4096 * row},
      {ProbeKind::Embedding, OpRole::WeightGradient, n + 8192 * row},
      {ProbeKind::CrossEntropy, OpRole::Forward, n},
      {ProbeKind::CrossEntropy, OpRole::InputGradient, 2 * n},
      {ProbeKind::Momentum, OpRole::Other, 2 * n},
      {ProbeKind::Adam, OpRole::Other, 2 * n}};
  for (const Row& expected : rows) {
    const ProbePlan plan = plan_probe(probe_of(expected.kind, expected.role, 64, 256));
    CAPTURE(static_cast<int>(expected.kind));
    CAPTURE(static_cast<int>(expected.role));
    CHECK(sum_of(plan) == expected.bytes);
    const bool labelled =
        expected.kind == ProbeKind::Embedding || expected.kind == ProbeKind::CrossEntropy;
    CHECK(plan.tokens == (labelled ? 64 : 0));
  }
  INFO("in bf16 Adam has fp32 masters and two fp32 moments beside weights and gradients");
  CHECK(operand_bytes(plan_probe(probe_of(ProbeKind::Adam, OpRole::Other, 64, 256))) == 8 * n);
  CHECK(operand_bytes(plan_probe(probe_of(ProbeKind::Momentum, OpRole::Other, 64, 256))) == 6 * n);
}

TEST_CASE("a convolution keeps its images' shape, and an attention its multiplications") {
  int attentions = 0, convolutions = 0;
  for (const Probe& probe : grid_of(Precision::Fp32)) {
    const ProbePlan plan = plan_probe(probe);
    if (probe.kind == ProbeKind::Convolution) {
      const Layer& layer = plan.layers->front();
      CHECK(layer.kernel == 3);
      CHECK(std::int64_t{layer.rows} * layer.columns * plan.samples == probe.rows);
      CHECK(2.0 * 9 * static_cast<double>(probe.rows) * layer.inputs * layer.outputs ==
            probe.work.flops.value());
      ++convolutions;
    }
    if (probe.kind != ProbeKind::Scores && probe.kind != ProbeKind::Values) continue;
    const Layer& layer = plan.layers->front();
    CHECK(layer.heads <= 16);
    CHECK(double{1} * plan.samples * layer.heads == probe.work.shape.batch);
    // Every head of every sample: tokens x tokens x size multiply-adds, twice as many backwards.
    const double tokens = layer.positions, size = static_cast<double>(layer.outputs) / layer.heads;
    const double one = 2 * tokens * tokens * size * layer.heads * plan.samples;
    const bool forward = probe.work.role == OpRole::Forward;
    CHECK(probe.work.flops.value() == doctest::Approx(forward ? one : 2 * one).epsilon(1e-12));
    CHECK(plan.step.kind == (forward ? StepKind::Forward : StepKind::BackwardInput));
    CHECK(block(plan, Place::Stash) ==
          std::int64_t{4} * plan.samples * layer.heads * layer.positions * layer.positions);
    ++attentions;
  }
  CHECK(attentions > 40);
  CHECK(convolutions > 12);
}

TEST_CASE("operands of every probe lie apart, each at a multiple of 256 bytes") {
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    for (const Probe& probe : grid_of(precision)) {
      const ProbePlan plan = plan_probe(probe);
      const std::int64_t all = operand_bytes(plan);
      CHECK(all >= sum_of(plan));
      CHECK(all % 256 == 0);
      char base = 0;  // addresses only; nothing is read
      const ProbeOperands on = operands_at(plan, &base);
      std::int64_t end = 0;
      const auto follows = [&](const char* block, std::int64_t bytes) {
        if (bytes == 0) return;
        const std::int64_t at = block - &base;
        CHECK(at % 256 == 0);
        CHECK(at >= end);
        end = at + bytes;
      };
      for (std::size_t i = 0; i < on.places.size(); ++i) follows(on.places[i], plan.bytes[i]);
      for (std::size_t i = 0; i < on.weights.size(); ++i) follows(on.weights[i], plan.weights[i]);
      for (std::size_t i = 0; i < on.gradients.size(); ++i) {
        follows(on.gradients[i], plan.gradients[i]);
      }
      CHECK(end <= all);
    }
  }
}

TEST_CASE("sets leave the cache, short kernels are repeated, and a clock that moved is seen") {
  const std::int64_t cache = 50'000'000;
  CHECK(sets_of(4096, cache) == kMostRepeats);
  INFO("10 MB each: ten of them are twice the cache, and two more");
  CHECK(sets_of(10'000'000, cache) == 12);
  CHECK(sets_of(1'000'000'000, cache) == 2);
  CHECK(sets_of(4096, 0) == 1);  // warm: by the same operands again
  INFO("a reading of 200 us");
  CHECK(repeats_of(5e-6) == 40);
  CHECK(repeats_of(1e-7) == kMostRepeats);
  CHECK(repeats_of(3e-3) == 1);
  CHECK_FALSE(clock_moved(1980, 1950));
  CHECK(clock_moved(1980, 1900));
  CHECK(clock_moved(1500, 1980));
  INFO("without NVML the clock is unknown");
  CHECK_FALSE(clock_moved(0, 1980));
}
