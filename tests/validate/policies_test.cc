// Policies of a schedule: the effect of each on the period, by closed forms.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/validate/support/trial.h"

namespace interlock::policies_test {
namespace {

constexpr StageTimes kTimes{Seconds(1.25e-3), Seconds(1.75e-3), Seconds(1.5e-3), Seconds(0.5e-3),
                            Seconds(0.125e-3)};

Trial make_trial(int stages, const std::string& strategy, const std::string& schedule) {
  Trial trial;
  trial.stages = equal_stages(stages, kTimes);
  trial.latency = Seconds(0.25e-3);
  trial.strategy = strategy;
  trial.schedule = schedule;
  return trial;
}

void check_step(const Trial& trial, Seconds expected) {
  const double simulated = step_time(trial);
  INFO(document(trial));
  INFO("expected " << expected.value() << " s, simulated " << simulated << " s");
  CHECK(close(simulated, expected.value()));
}

TEST_CASE("M micro-batches and one update take M(P - o) + o") {
  for (int stages : {2, 4, 6}) {
    for (int m : {1, 2, 5, 8}) {
      Trial trial = make_trial(stages, "\"global\"", "\"naive\"");
      trial.micro_batches = m;
      const EqualChain chain = chain_of(trial);
      check_step(trial, accumulated_step(naive_period(chain), kTimes.update, m));
      trial.schedule = "\"naive-split\"";
      check_step(trial, accumulated_step(naive_split_period(chain), kTimes.update, m));
      trial.schedule = "\"eager\"";
      for (int n = 1; n <= stages; ++n) {
        trial.strategy = n_wise(n);
        check_step(trial, accumulated_step(eager_period(chain, n), kTimes.update, m));
      }
    }
  }
}

TEST_CASE("updates every two micro-batches cost half the updates") {
  for (int n : {1, 2, 3}) {
    Trial trial = make_trial(5, n_wise(n), "{\"kind\": \"eager\", \"update_every\": 2}");
    trial.micro_batches = 6;
    const Seconds pure = eager_period(chain_of(trial), n) - kTimes.update;
    check_step(trial, 6 * pure + 3 * kTimes.update);
  }
}

TEST_CASE("skipping unneeded input gradients saves bi in every loop") {
  for (int stages : {2, 4, 6}) {
    const std::string skipped = "\"unneeded_input_gradients\": \"skipped\"}";
    Trial trial = make_trial(stages, "{\"kind\": \"global\", " + skipped, "\"naive\"");
    const EqualChain chain = chain_of(trial);
    const Seconds saved = kTimes.backward_input;
    check_step(trial, naive_period(chain) - saved);
    trial.schedule = "\"naive-split\"";
    check_step(trial, naive_split_period(chain) - saved);
    trial.strategy = "{\"kind\": \"local\", " + skipped;
    trial.schedule = "\"eager\"";
    // The last stage has no head but the same backward: f + a + bw + o is the longest loop.
    check_step(trial, local_period(chain, false) - saved);
    for (int n = 2; n < stages; ++n) {
      trial.strategy = n_wise(n, false, true);
      check_step(trial, eager_period(chain, n) - saved);
    }
  }
}

TEST_CASE("copies on the compute stream cost a local stage both of its copies") {
  for (int stages : {2, 3, 6}) {
    const Trial trial =
        make_trial(stages, "\"local\"", "{\"kind\": \"eager\", \"copies\": \"compute_stream\"}");
    check_step(trial, local_period(chain_of(trial), true));
  }
}

TEST_CASE("with a barrier a local step ends when its slowest stage has its gradients") {
  for (int stages : {2, 3, 6}) {
    const Trial trial =
        make_trial(stages, "\"local\"", "{\"kind\": \"eager\", \"optimizer_sync\": \"barrier\"}");
    // All start together: stage i (from 1) has its gradients after (i - 1)(f + c) + f + a + B;
    // the last one has no a.
    const Seconds c = trial.latency;
    const Seconds own = kTimes.forward + kTimes.backward();
    const Seconds with_head = (stages - 2) * (kTimes.forward + c) + own + kTimes.head;
    const Seconds last = (stages - 1) * (kTimes.forward + c) + own;
    check_step(trial, std::max(with_head, last) + kTimes.update);
  }
}

TEST_CASE("a list of pairs is slower than no pipelining: 15 against 12, 31 against 24") {
  const StageTimes unit{Seconds(1), Seconds(1), Seconds(1)};
  for (const auto& [stages, list, naive] : {std::tuple(4, 15, 12), std::tuple(8, 31, 24)}) {
    Trial trial;
    trial.stages = equal_stages(stages, unit);
    trial.strategy = n_wise(2, true);
    trial.schedule = "\"list\"";
    check_step(trial, Seconds(list));
    trial.strategy = "\"global\"";
    trial.schedule = "\"naive\"";
    check_step(trial, Seconds(naive));
  }
}

TEST_CASE("two batches in flight keep the busiest stage busy") {
  for (int stages : {3, 4, 8}) {
    for (double head : {0.0, 0.5, 3.0}) {
      for (int n : {1, 2}) {
        StageTimes times{Seconds(1), Seconds(1), Seconds(1), Seconds(head)};
        Trial trial;
        trial.stages = equal_stages(stages, times);
        trial.strategy = n_wise(n);
        trial.schedule = "{\"kind\": \"eager\", \"in_flight\": 2}";
        const Metrics metrics = simulate(trial).metrics;
        const Seconds bound = busiest_stage(std::vector<StageTimes>(stages, times), n);
        INFO("K = " << stages << ", N = " << n << ", a = " << head << ": bound " << bound.value()
                    << ", simulated " << metrics.step_time.value());
        CHECK(metrics.step_time.value() >= bound.value() * (1 - 1e-9));
        CHECK(metrics.step_time.value() <= bound.value() * 1.15);
        if (n == 1) CHECK(close(metrics.step_time.value(), bound.value()));
        // A forward may miss the one update of the batch before it, and no more.
        for (const auto& [missed, count] : metrics.staleness) CHECK(missed <= 1);
      }
    }
  }
}

TEST_CASE("with one batch in flight nothing is stale") {
  for (int n : {1, 2, 4}) {
    const Metrics metrics = simulate(make_trial(4, n_wise(n), "\"eager\"")).metrics;
    REQUIRE(metrics.staleness.size() == 1);
    CHECK(metrics.staleness.begin()->first == 0);
    CHECK(metrics.staleness.begin()->second == metrics.measured_steps);
  }
}

TEST_CASE("an inner stage of an eager run is busy (N + 2 + a) / (2N + 1 + a) of the time") {
  for (int n : {2, 3}) {
    for (double head : {0.0, 0.5, 3.0}) {
      Trial trial;
      trial.stages = equal_stages(9, {Seconds(1), Seconds(1), Seconds(1), Seconds(head)});
      trial.strategy = n_wise(n);
      const Metrics metrics = simulate(trial).metrics;
      const DeviceMetrics& inner = metrics.devices[4];
      INFO("N = " << n << ", a = " << head);
      CHECK(close(inner.busy, eager_busy(chain_of(trial), n)));
      CHECK(close(inner.useful, eager_useful(chain_of(trial), n)));
    }
  }
}

TEST_CASE(
    "naive training is useful 1 / K, local training 3 / (3 + a), a flush (K - 1) / (M + K - 1)") {
  for (int stages : {2, 4, 8}) {
    Trial trial;
    trial.stages = equal_stages(stages, {Seconds(1), Seconds(1), Seconds(1), Seconds(0.5)});
    trial.strategy = "\"global\"";
    trial.schedule = "\"naive\"";
    CHECK(close(simulate(trial).metrics.useful, 1.0 / stages));
    trial.strategy = "\"local\"";
    trial.schedule = "\"eager\"";
    CHECK(close(simulate(trial).metrics.useful, 3 / 3.5));
    trial.strategy = "\"global\"";
    trial.schedule = "\"1f1b\"";
    trial.micro_batches = 6;
    CHECK(close(1 - simulate(trial).metrics.busy, flushed_bubble_fraction(stages, 6)));
  }
}

}  // namespace
}  // namespace interlock::policies_test
