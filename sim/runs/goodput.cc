// Runs a plan under many seeds and gathers what comes out.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/goodput.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {
namespace {

template <class Read>
Spread spread_over(const std::vector<RunOutcome>& outcomes, const Read& read) {
  std::vector<double> values;
  values.reserve(outcomes.size());
  for (const RunOutcome& outcome : outcomes) values.push_back(read(outcome));
  return spread_of(std::move(values));
}

Spread times(const std::vector<RunOutcome>& outcomes, Seconds RunOutcome::*time) {
  return spread_over(outcomes, [time](const RunOutcome& one) { return one.*time / Seconds(1); });
}

Spread counts(const std::vector<RunOutcome>& outcomes, std::int64_t RunOutcome::*count) {
  return spread_over(outcomes,
                     [count](const RunOutcome& one) { return static_cast<double>(one.*count); });
}

}  // namespace

RunStatistics goodput_over_seeds(const RunPlan& plan, std::uint64_t first_seed, int seeds) {
  CHECK(seeds > 0, "there is a seed to run under");
  if (plan.failures.kinds.empty()) seeds = 1;
  std::vector<RunOutcome> outcomes;
  outcomes.reserve(seeds);
  int fewest = plan.replicas;
  for (int i = 0; i < seeds; ++i) {
    outcomes.push_back(simulate_training_run(plan, first_seed + static_cast<std::uint64_t>(i)));
    fewest = std::min(fewest, outcomes.back().fewest_replicas);
  }
  return {.seeds = seeds,
          .goodput = spread_over(outcomes, [](const RunOutcome& one) { return one.goodput; }),
          .wall = times(outcomes, &RunOutcome::wall),
          .useful = times(outcomes, &RunOutcome::useful),
          .lost = times(outcomes, &RunOutcome::lost),
          .checkpoint = times(outcomes, &RunOutcome::checkpoint),
          .restart = times(outcomes, &RunOutcome::restart),
          .idle = times(outcomes, &RunOutcome::idle),
          .failures = counts(outcomes, &RunOutcome::failures),
          .rollbacks = counts(outcomes, &RunOutcome::rollbacks),
          .checkpoints = counts(outcomes, &RunOutcome::checkpoints),
          .redone_steps = counts(outcomes, &RunOutcome::redone_steps),
          .redone_micro_batches = counts(outcomes, &RunOutcome::redone_micro_batches),
          .fewest_replicas = fewest};
}

}  // namespace interlock
