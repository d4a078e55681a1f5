// The headline numbers of a training run: time, goodput, where the rest went.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/run_headlines.h"

#include "base/text.h"

namespace interlock {
namespace {

std::string time_of(double seconds) { return format(Seconds(seconds)); }

std::string count_of(double count) { return format_number(count); }

/// "5th to 95th percentile A to B" of several runs.
std::string range(const std::string& low, const std::string& high, int seeds) {
  if (seeds == 1) return "";
  return "5th to 95th percentile " + low + " to " + high;
}

Headline time_headline(const RunResult& run) {
  const RunStatistics& statistics = run.statistics;
  std::string note = count_of(static_cast<double>(run.plan.steps)) + " steps";
  if (statistics.seeds > 1) {
    note += ", mean of " + std::to_string(statistics.seeds) + " runs; " +
            range(time_of(statistics.wall.p5), time_of(statistics.wall.p95), statistics.seeds);
  }
  return {"Run", time_of(statistics.wall.mean), note};
}

Headline goodput_headline(const RunStatistics& statistics) {
  const Spread& goodput = statistics.goodput;
  return {"Goodput", format_percent(goodput.mean),
          range(format_percent(goodput.p5), format_percent(goodput.p95), statistics.seeds)};
}

Headline losses_headline(const RunStatistics& statistics) {
  const auto share = [&](const Spread& time) {
    return format_percent(time.mean / statistics.wall.mean);
  };
  return {"Lost", share(statistics.lost),
          "of the run; checkpoints " + share(statistics.checkpoint) + ", restarts " +
              share(statistics.restart) + ", waiting for devices " + share(statistics.idle)};
}

Headline failures_headline(const RunResult& run) {
  const RunStatistics& statistics = run.statistics;
  std::string note = count_of(statistics.rollbacks.mean) + " back to a checkpoint, " +
                     count_of(statistics.redone_steps.mean) + " steps done again";
  if (statistics.fewest_replicas < run.plan.replicas) {
    note += ", at times " + std::to_string(statistics.fewest_replicas) + " of " +
            std::to_string(run.plan.replicas) + " replicas";
  }
  return {"Failures", count_of(statistics.failures.mean), note};
}

Headline checkpoint_headline(const RunResult& run) {
  const RunPlan& plan = run.plan;
  const auto steps = static_cast<double>(plan.checkpoint.interval);
  std::string note = count_of(steps) + " steps, " + format(plan.checkpoint.write) + " each";
  if (run.costs) {
    note += "; best " + format(optimal_interval(*run.costs)) + ", Young " +
            format(young_interval(*run.costs)) + ", Daly " + format(daly_interval(*run.costs));
  }
  return {"Checkpoint every", format(steps * plan.step_time), note};
}

}  // namespace

std::vector<Headline> run_headlines(const ScenarioResult& result) {
  if (!result.run) return {};
  const RunResult& run = *result.run;
  std::vector<Headline> headlines = {time_headline(run), goodput_headline(run.statistics),
                                     losses_headline(run.statistics), failures_headline(run)};
  if (run.plan.checkpoint.interval > 0) headlines.push_back(checkpoint_headline(run));
  return headlines;
}

}  // namespace interlock
