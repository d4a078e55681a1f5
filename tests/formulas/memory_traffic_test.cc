// How much a stage holds and how much a link carries, for every strategy.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/validate/support/trial.h"

namespace interlock::memory_traffic_test {
namespace {

constexpr double kStash = 1 << 20, kTensor = 4096;

Metrics run(int stages, int micro_batches, const std::string& strategy,
            const std::string& schedule) {
  Trial trial;
  const StageTimes times{Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(0.5e-3)};
  trial.stages.assign(stages, {.times = times, .output = Bytes(kTensor), .stash = Bytes(kStash)});
  trial.strategy = strategy;
  trial.schedule = schedule;
  trial.micro_batches = micro_batches;
  trial.latency = Seconds(1e-4);
  return simulate(trial).metrics;
}

/// Micro-batches whose activations `stage` (from 1) holds at its peak.
double stash_of(const Metrics& metrics, int stage) {
  return metrics.devices[stage - 1].peak_stash.value() / kStash;
}

/// Tensors per step from stage to stage (from 1); 0 if the link was never used.
double tensors(const Metrics& metrics, int from, int to) {
  const std::string name = std::to_string(from - 1) + "->" + std::to_string(to - 1);
  for (const LinkMetrics& link : metrics.links) {
    if (link.name == name) return link.bytes.value() / kTensor;
  }
  return 0;
}

TEST_CASE("GPipe holds M micro-batches on every stage") {
  for (int stages : {1, 2, 4}) {
    for (int m : {1, 3, 8}) {
      const Metrics metrics = run(stages, m, "\"global\"", "\"gpipe\"");
      for (int i = 1; i <= stages; ++i) CHECK(stash_of(metrics, i) == gpipe_stash(m));
    }
  }
}

TEST_CASE("1F1B holds min(K - i + 1, M) micro-batches on stage i") {
  for (int stages : {1, 2, 4, 7}) {
    for (int m : {1, 3, 8}) {
      const Metrics metrics = run(stages, m, "\"global\"", "\"1f1b\"");
      for (int i = 1; i <= stages; ++i) {
        CAPTURE(stages);
        CAPTURE(m);
        CAPTURE(i);
        CHECK(stash_of(metrics, i) == one_f_one_b_stash(stages, m, i));
      }
    }
  }
}

TEST_CASE("naive, local and interlocking stages hold one micro-batch whatever K, N and M") {
  for (int stages : {2, 5}) {
    for (int m : {1, 4}) {
      std::vector<Metrics> all = {run(stages, m, "\"global\"", "\"naive\""),
                                  run(stages, m, "\"global\"", "\"naive-split\""),
                                  run(stages, m, "\"local\"", "\"eager\"")};
      for (int n = 2; n <= stages; ++n) {
        all.push_back(run(stages, m, n_wise(n), "\"eager\""));
        all.push_back(run(stages, m, n_wise(n, true), "\"list\""));
      }
      for (const Metrics& metrics : all) {
        for (int i = 1; i <= stages; ++i) CHECK(stash_of(metrics, i) == kOneAtATimeStash);
      }
    }
  }
}

TEST_CASE("w batches in flight hold up to w micro-batches") {
  for (int w : {2, 3}) {
    const Metrics metrics =
        run(4, 1, "\"local\"", "{\"kind\": \"eager\", \"in_flight\": " + std::to_string(w) + "}");
    for (int i = 1; i <= 4; ++i) CHECK(stash_of(metrics, i) <= w);
    CHECK(stash_of(metrics, 1) == w);
  }
}

TEST_CASE("global training sends each tensor up and its gradient down, M times") {
  for (const char* schedule : {"\"naive\"", "\"naive-split\"", "\"gpipe\"", "\"1f1b\""}) {
    for (int m : {1, 5}) {
      const Metrics metrics = run(4, m, "\"global\"", schedule);
      for (int i = 1; i < 4; ++i) {
        CAPTURE(schedule);
        CHECK(tensors(metrics, i, i + 1) == m);
        CHECK(tensors(metrics, i + 1, i) == m);
      }
    }
  }
}

TEST_CASE("local training sends no gradients, pairs as many as global training") {
  for (int i = 1; i < 5; ++i) {
    CHECK(tensors(run(5, 3, "\"local\"", "\"eager\""), i, i + 1) == 3);
    CHECK(tensors(run(5, 3, "\"local\"", "\"eager\""), i + 1, i) == 0);
    CHECK(tensors(run(5, 3, "\"pairwise\"", "\"eager\""), i + 1, i) == 3);
  }
}

TEST_CASE(
    "N-wise training sends min(N - 1, k_i) gradients with all heads, fewer with the minimum") {
  const int stages = 6;
  for (int n = 2; n <= stages; ++n) {
    const Metrics minimal = run(stages, 1, n_wise(n), "\"eager\"");
    const Metrics all = run(stages, 1, n_wise(n, true), "\"eager\"");
    const Metrics list = run(stages, 1, n_wise(n, true), "\"list\"");
    for (int i = 2; i <= stages; ++i) {
      CAPTURE(n);
      CAPTURE(i);
      CHECK(tensors(minimal, i, i - 1) == gradient_tensors(stages, n, i));
      CHECK(tensors(all, i, i - 1) == shipped_gradient_tensors(stages, n, i));
      CHECK(tensors(list, i, i - 1) == shipped_gradient_tensors(stages, n, i));
      CHECK(tensors(minimal, i - 1, i) == 1);
    }
  }
}

TEST_CASE("a link's utilisation is its bytes over what it could carry in a step") {
  const Metrics metrics = run(3, 2, "\"pairwise\"", "\"eager\"");
  for (const LinkMetrics& link : metrics.links) {
    CHECK(close(link.utilisation, link.bytes.value() / (1e9 * metrics.step_time.value())));
  }
}

}  // namespace
}  // namespace interlock::memory_traffic_test
