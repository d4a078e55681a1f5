// The headline numbers of a swarm: rate, what holds it back, what failed and moved.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/swarm_headlines.h"

#include <algorithm>

#include "base/text.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

std::string range(const Spread& spread, double factor, int seeds) {
  if (seeds == 1) return "one run";
  return "mean of " + std::to_string(seeds) + " runs; 5th to 95th percentile " +
         format_number(spread.p5 * factor) + " to " + format_number(spread.p95 * factor);
}

Headline rate_headline(const SwarmResult& swarm, const std::optional<double>& samples) {
  const Spread& rate = swarm.statistics.micro_batches_per_s;
  const double factor = samples.value_or(1);
  return {"Swarm",
          format_number(rate.mean * factor) + (samples ? " samples/s" : " micro-batches/s"),
          range(rate, factor, swarm.statistics.seeds)};
}

Headline peers_headline(const SwarmResult& swarm) {
  const SwarmStatistics& statistics = swarm.statistics;
  const std::vector<double>& use = statistics.stage_utilisation;
  const auto [least, most] = std::minmax_element(use.begin(), use.end());
  return {"Peers", std::to_string(swarm.inputs.peers.size()),
          "computing " + format_percent(*least) + " to " + format_percent(*most) +
              " of their time by stage; " + format_percent(statistics.share_of_best.mean) +
              " of the best rate of those there"};
}

Headline changes_headline(const SwarmStatistics& statistics) {
  std::string note = format_number(statistics.joins.mean) + " joins, " +
                     format_number(statistics.moves.mean) + " moves; " +
                     format_percent(statistics.redone.mean) + " of all ops run again";
  if (statistics.gradients_dropped.mean > 0) {
    note += ", " + format_number(statistics.gradients_dropped.mean) + " gradients dropped";
  }
  if (statistics.without_a_peer_s.mean > 0) {
    note += "; a stage without a peer for " + format(Seconds(statistics.without_a_peer_s.mean));
  }
  return {"Peers lost", format_number(statistics.failures.mean), note};
}

}  // namespace

std::vector<Headline> swarm_headlines(const ScenarioResult& result) {
  if (!result.swarm) return {};
  const SwarmResult& swarm = *result.swarm;
  return {rate_headline(swarm, result.plan.question.training().graph.samples_per_micro_batch),
          peers_headline(swarm), changes_headline(swarm.statistics)};
}

void add_swarm_columns(const std::vector<ScenarioResult>& results, Grid& grid) {
  bool any = false, samples = true;
  for (const ScenarioResult& result : results) {
    const Question& question = result.plan.question;
    any = any || result.swarm;
    samples = samples && !question.trace() && question.training().graph.samples_per_micro_batch;
  }
  if (!any) return;
  grid.columns.push_back({"Swarm", samples ? "samples/s" : "micro-batches/s"});
  grid.columns.push_back({"Of best", "%"});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].swarm) {
      grid.rows[i].insert(grid.rows[i].end(), {{kUnknown}, {kUnknown}});
      continue;
    }
    const SwarmResult& swarm = *results[i].swarm;
    const double factor = samples ? swarm.inputs.samples_per_micro_batch : 1;
    grid.rows[i].push_back({format_number(swarm.statistics.micro_batches_per_s.mean * factor)});
    grid.rows[i].push_back({fixed(100 * swarm.statistics.share_of_best.mean, 1)});
  }
}

}  // namespace interlock
