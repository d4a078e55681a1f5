// The table of steady-state periods, met by the engines through a scenario document.
// SPDX-License-Identifier: Apache-2.0
//
// Grid: K in {2, 4, 8, 16}, every N in 1..K, heads of 0, 0.5 and 3 forwards, transfers of nothing,
// of latency alone, and of latency and bandwidth; unit costs and costs drawn once a case. Queues of
// the schedule's default and rendezvous: no transfer here is longer than a backward, so that every
// row holds in both.
#include <doctest/doctest.h>

#include <functional>

#include "base/random.h"
#include "tests/support/cases.h"
#include "tests/validate/support/trial.h"

namespace interlock::period_grid_test {
namespace {

struct Transfer {
  double latency, occupancy;  // in forwards
};
const std::vector<Transfer> kTransfers = {{0, 0}, {0.25, 0}, {0.125, 0.0625}};

/// Costs of one grid point: unit costs, or drawn from `seed`.
StageTimes costs(double head, int seed) {
  if (seed == 0) return {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(head * 1e-3)};
  Random random(20, seed);
  const double forward = 1e-3 * (0.5 + random.uniform());
  return {Seconds(forward), Seconds(1e-3 * (0.5 + random.uniform())),
          Seconds(1e-3 * (0.5 + random.uniform())), Seconds(head * forward),
          Seconds(1e-4 * random.uniform())};
}

using Visit = std::function<void(Trial&)>;

/// Visits every K, head and transfer; the draw of costs differs from point to point.
void for_grid(bool random_costs, const Visit& visit) {
  int seed = 0;
  for (int stages : {2, 4, 8, 16}) {
    for (double head : {0.0, 0.5, 3.0}) {
      for (const Transfer& transfer : kTransfers) {
        const StageTimes times = costs(head, random_costs ? ++seed : 0);
        Trial trial;
        trial.stages = equal_stages(stages, times, transfer.occupancy * times.forward);
        trial.latency = transfer.latency * times.forward;
        trial.steps = 4;
        visit(trial);
      }
    }
  }
}

void check_period(const Trial& trial, Seconds expected) {
  const double simulated = step_time(trial);
  const EqualChain chain = chain_of(trial);
  INFO("K = " << chain.stages << ", f " << chain.stage.forward.value() << ", bi "
              << chain.stage.backward_input.value() << ", bw "
              << chain.stage.backward_weight.value() << ", a " << chain.stage.head.value() << ", o "
              << chain.stage.update.value() << ", c " << chain.transfer.value() << "; strategy "
              << trial.strategy << ", schedule " << trial.schedule << ", engine " << trial.engine
              << ": closed form " << expected.value() << " s, simulated " << simulated << " s");
  CHECK(close(simulated, expected.value()));
}

/// Checks every row of the table at one point of the grid.
void check_rows(Trial& trial) {
  const EqualChain chain = chain_of(trial);
  const StageTimes& s = chain.stage;
  const int stages = chain.stages;
  trial.strategy = "\"global\"";
  trial.schedule = "\"naive\"";
  check_period(trial, naive_period(chain));
  trial.schedule = "\"naive-split\"";
  check_period(trial, naive_split_period(chain));
  for (const char* schedule : {"\"eager\"", "{\"kind\": \"eager\", \"queue\": \"rendezvous\"}"}) {
    trial.schedule = schedule;
    trial.strategy = "\"local\"";
    check_period(trial, local_period(chain, false));
    for (int n = 1; n <= stages; ++n) {
      trial.strategy = n_wise(n);
      check_period(trial, eager_period(chain, n));
    }
  }
  trial.strategy = n_wise(2, true);
  trial.schedule = rendezvous("eager");
  check_period(trial, shipped_pairwise_period(chain));
  trial.schedule = "{\"kind\": \"eager\", \"backward\": \"fused\"}";
  check_period(trial, shipped_pairwise_period(chain));
  if (s.head > s.forward + s.backward() + 2 * chain.transfer) return;
  for (const char* schedule : {"\"list\"", "{\"kind\": \"list\", \"queue\": \"rendezvous\"}"}) {
    trial.schedule = schedule;
    for (int n = 2; n <= stages; ++n) {
      trial.strategy = n_wise(n, true);
      check_period(trial, list_period_with_bandwidth(chain, n, trial.latency,
                                                     trial.stages[0].output / trial.bandwidth));
    }
  }
}

TEST_CASE("every strategy meets its closed form at unit costs") { for_grid(false, check_rows); }

TEST_CASE("every strategy meets its closed form at random costs") { for_grid(true, check_rows); }

TEST_CASE("every strategy meets its closed form under SimGrid") {
  int point = 0;
  for_grid(true, [&](Trial& trial) {
    if (++point % 4 != 0 && !is_soak()) return;  // a fork for each run
    trial.engine = "simgrid";
    trial.steps = 2;
    check_rows(trial);
  });
}

TEST_CASE("flushed pipelines take (M + K - 1)(f + B) + o without transfers") {
  for (const char* engine : {"native", "simgrid"}) {
    for (int stages : {1, 2, 4, 8}) {
      for (int m : {1, 2, 3, 4, 8, 32}) {
        Trial trial;
        trial.stages = equal_stages(stages, costs(0, stages + m));
        trial.strategy = "\"global\"";
        trial.micro_batches = m;
        trial.engine = engine;
        trial.steps = 2;
        for (const char* schedule : {"\"gpipe\"", "\"1f1b\""}) {
          trial.schedule = schedule;
          check_period(trial, flushed_step(chain_of(trial), m));
        }
      }
    }
  }
}

TEST_CASE("GPipe with transfers adds 2(K - 1)c while a wire is faster than an op") {
  for (int stages : {2, 4, 8}) {
    for (int m : {1, 2, 8, 16}) {
      const StageTimes times = costs(0, stages * m);
      Trial trial;
      // The narrower of f and B is exactly as long as a tensor occupies a wire in the first case.
      const Seconds narrow = std::min(times.forward, times.backward());
      for (double share : {1.0, 0.5, 0.0}) {
        trial.stages = equal_stages(stages, times, share * narrow);
        trial.latency = Seconds(3e-4);
        trial.strategy = "\"global\"";
        trial.schedule = "\"gpipe\"";
        trial.micro_batches = m;
        check_period(trial, flushed_step(chain_of(trial), m));
      }
    }
  }
}

}  // namespace
}  // namespace interlock::period_grid_test
