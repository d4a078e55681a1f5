// Spreads and means of a swarm's outcomes.
// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm/swarm_statistics.h"

#include <functional>

namespace interlock {
namespace {

using Outcomes = std::vector<SwarmOutcome>;

Spread spread_over(const Outcomes& outcomes,
                   const std::function<double(const SwarmOutcome&)>& figure) {
  std::vector<double> values;
  for (const SwarmOutcome& outcome : outcomes) values.push_back(figure(outcome));
  return spread_of(std::move(values));
}

double redone_share(const SwarmOutcome& outcome) {
  const auto again = static_cast<double>(outcome.forwards_redone + outcome.backwards_redone);
  const auto once = static_cast<double>(outcome.forwards + outcome.backwards);
  return again > 0 ? again / (again + once) : 0;
}

void add_share(std::vector<double>& sum, const std::vector<double>& part, double share) {
  sum.resize(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i] * share;
}

}  // namespace

SwarmStatistics swarm_over_seeds(const SwarmInputs& inputs, std::uint64_t first_seed, int seeds) {
  Outcomes outcomes;
  for (int i = 0; i < seeds; ++i) {
    outcomes.push_back(simulate_swarm(inputs, first_seed + static_cast<std::uint64_t>(i)));
  }
  using Outcome = SwarmOutcome;
  SwarmStatistics statistics{.seeds = seeds};
  const auto spread = [&](const std::function<double(const Outcome&)>& figure) {
    return spread_over(outcomes, figure);
  };
  const double samples = inputs.samples_per_micro_batch;
  statistics.micro_batches_per_s = spread([](const Outcome& o) { return o.micro_batches_per_s; });
  statistics.share_of_best = spread([&](const Outcome& o) {
    const double best = o.best_samples_per_s / samples;
    return best > 0 ? o.micro_batches_per_s / best : 0;
  });
  statistics.steps = spread([](const Outcome& o) { return static_cast<double>(o.steps); });
  statistics.failures = spread([](const Outcome& o) { return o.failures; });
  statistics.joins = spread([](const Outcome& o) { return o.joins; });
  statistics.moves = spread([](const Outcome& o) { return o.moves; });
  statistics.redone = spread(redone_share);
  statistics.gradients_dropped =
      spread([](const Outcome& o) { return static_cast<double>(o.gradients_dropped); });
  statistics.without_a_peer_s = spread([](const Outcome& o) { return o.without_a_peer.value(); });
  for (const Outcome& outcome : outcomes) {
    add_share(statistics.stage_utilisation, outcome.stage_utilisation, 1.0 / seeds);
    add_share(statistics.peer_busy, outcome.peer_busy, 1.0 / seeds);
    for (std::size_t kind = 0; kind < outcome.traffic.size(); ++kind) {
      statistics.traffic[kind] += outcome.traffic[kind] / seeds;
    }
    statistics.lost += outcome.lost / seeds;
  }
  return statistics;
}

}  // namespace interlock
