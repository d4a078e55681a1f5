// Greedy, chunked and overlapping local training against their cost table, with free links.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/formulas/local_methods.h"
#include "tests/validate/support/trial.h"

namespace interlock::laskin_test {
namespace {

constexpr double kTensor = 1000;
const Seconds kForward(1e-3), kHead(0.75e-3);

struct Simulated {
  double work, sequential_time, tensors_sent;
};

Simulated run(int layers, const std::string& strategy, const std::string& schedule,
              int overlap = 0) {
  Trial trial;
  // B = 2f; free links of boundless bandwidth, so that tensors count without taking time.
  trial.stages.assign(layers,
                      {.times = {kForward, kForward, kForward, kHead}, .output = Bytes(kTensor)});
  trial.bandwidth = BytesPerSecond(1e15);
  trial.strategy = strategy;
  trial.schedule = schedule;
  trial.overlap = overlap;
  const Metrics metrics = simulate(trial).metrics;
  Simulated simulated{0, metrics.step_time.value(), 0};
  for (const DeviceMetrics& device : metrics.devices) {
    simulated.work += device.busy * metrics.step_time.value();
  }
  for (const LinkMetrics& link : metrics.links) {
    simulated.tensors_sent += link.bytes.value() / kTensor;
  }
  return simulated;
}

/// Equal but for the picoseconds that tensors take on the free links.
void check_row(const Simulated& simulated, const LocalCost& cost) {
  INFO("sequential time: table " << cost.sequential_time.value() << " s, simulated "
                                 << simulated.sequential_time << " s");
  INFO("work: table " << cost.work.value() << " s, simulated " << simulated.work << " s");
  CHECK(simulated.sequential_time == doctest::Approx(cost.sequential_time.value()).epsilon(1e-7));
  CHECK(simulated.work == doctest::Approx(cost.work.value()).epsilon(1e-7));
  CHECK(simulated.tensors_sent == doctest::Approx(cost.tensors_sent));
}

TEST_CASE("backpropagation on a worker a layer costs 3Lf in work and in time") {
  for (int layers : {1, 4, 12}) {
    check_row(run(layers, "\"global\"", "\"naive\""),
              local_cost(LocalMethod::Backprop, layers, 1, kForward, kHead));
  }
}

TEST_CASE("greedy training costs 3Lf + (L - 1)h in work and 3f + h in time") {
  for (int layers : {2, 4, 12}) {
    check_row(run(layers, "\"greedy\"", "\"eager\""),
              local_cost(LocalMethod::Greedy, layers, 1, kForward, kHead));
  }
}

TEST_CASE("J chunks cost 3Lf + (J - 1)h in work and 3(L/J)f + h in time") {
  for (int chunks : {2, 3, 6}) {
    const std::string strategy =
        "{\"kind\": \"chunked\", \"chunks\": " + std::to_string(chunks) + "}";
    // A chunk of several workers is backpropagation inside: its backward is fused as there.
    const Simulated simulated = run(12, strategy, "{\"kind\": \"eager\", \"backward\": \"fused\"}");
    LocalCost cost = local_cost(LocalMethod::Chunked, 12, chunks, kForward, kHead);
    // The table keeps a chunk on one worker; a worker a layer also sends inside, both ways.
    cost.tensors_sent += 2 * (12 - chunks);
    check_row(simulated, cost);
  }
}

TEST_CASE("overlapping blocks that recompute the shared layer cost 6f + h in time") {
  for (int layers : {3, 5, 9}) {
    check_row(
        run(layers, "{\"kind\": \"overlapping\", \"forward\": \"recomputed\"}", "\"eager\"", 1),
        local_cost(LocalMethod::OverlappingRecomputed, layers, 1, kForward, kHead));
  }
}

TEST_CASE("overlapping blocks trained by their upper loss are pairs") {
  for (int layers : {3, 6}) {
    const Simulated shared = run(layers, "\"overlapping\"", "\"eager\"");
    const Simulated pairs = run(layers, "\"pairwise\"", "\"eager\"");
    CHECK(shared.sequential_time == pairs.sequential_time);
    CHECK(shared.work == pairs.work);
  }
}

}  // namespace
}  // namespace interlock::laskin_test
