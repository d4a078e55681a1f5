// Every strategy and schedule on every small chain: the grid that properties are checked over.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/small_grid.h"

namespace interlock {
namespace {

TrialStage stage_of(int index) {
  return {
      .times = {(3 + index % 2) * Seconds(kTick), (2 + index % 3) * Seconds(kTick),
                (4 - index % 3) * Seconds(kTick), (2 + index % 2) * Seconds(kTick), Seconds(kTick)},
      .output = Bytes(1000.0 * (index % 3)),
      .stash = Bytes(4000),
      .parameters = Bytes(2000)};
}

Trial base_trial(int stages, int micro_batches) {
  Trial trial;
  for (int i = 0; i < stages; ++i) trial.stages.push_back(stage_of(i));
  trial.latency = Seconds(kTick);
  trial.bandwidth = BytesPerSecond(1000 / kTick);
  trial.micro_batches = micro_batches;
  trial.steps = 2;
  return trial;
}

void add_global(Trial trial, const std::function<void(const GridPoint&)>& visit) {
  trial.strategy = "\"global\"";
  const int stages = static_cast<int>(trial.stages.size());
  for (const char* schedule : {"naive", "naive-split", "gpipe", "1f1b"}) {
    trial.schedule = "\"" + std::string(schedule) + "\"";
    const TrialPolicy plan{.schedule = schedule,
                           .n_wise = stages,
                           .split = trial.schedule == "\"naive-split\"",
                           .update_every = trial.micro_batches};
    visit({plan, trial});
  }
}

void add_chains(Trial trial, int n, const std::function<void(const GridPoint&)>& visit) {
  for (bool all : {false, true}) {
    if (all && n == 1) continue;
    trial.strategy = n == 1 ? "\"local\"" : n_wise(n, all);
    for (const char* backward : {"split", "fused"}) {
      for (int in_flight : {1, 2}) {
        TrialPolicy plan{.schedule = "eager",
                         .n_wise = n,
                         .all_heads = all,
                         .split = backward == std::string("split"),
                         .in_flight = in_flight,
                         .update_every = trial.micro_batches % 2 ? 1 : 2};
        trial.schedule = "{\"kind\": \"eager\", \"backward\": \"" + std::string(backward) +
                         "\", \"in_flight\": " + std::to_string(in_flight) +
                         ", \"update_every\": " + std::to_string(plan.update_every) + "}";
        visit({plan, trial});
      }
    }
    if (n == 1) continue;
    trial.schedule = rendezvous("list");
    const TrialPolicy plan{.schedule = "list",
                           .n_wise = n,
                           .all_heads = all,
                           .split = false,
                           .update_every = trial.micro_batches};
    visit({plan, trial});
  }
}

}  // namespace

void for_small_grid(const std::function<void(const GridPoint&)>& visit) {
  for (int stages = 1; stages <= 5; ++stages) {
    for (int micro_batches = 1; micro_batches <= 6; ++micro_batches) {
      const Trial trial = base_trial(stages, micro_batches);
      add_global(trial, visit);
      for (int n = 1; n <= stages; ++n) add_chains(trial, n, visit);
    }
  }
}

}  // namespace interlock
