// Groups trainings by scenario, and adds up what their seeds came to.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/seed_runs.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace interlock {
namespace {

bool has_seed(const SeedRuns& runs, std::uint64_t seed) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const TrainingCurve& run) { return run.seed == seed; });
}

bool is_of(const TrainingCurve& run, const TrainingCurve& other) {
  return run.name == other.name && run.strategy == other.strategy &&
         run.schedule == other.schedule && run.executor == other.executor;
}

/// Returns the mean of numbers at one place of all runs; as many as all have.
template <class Numbers>
auto means_of(const SeedRuns& runs, Numbers numbers) {
  auto means = numbers(runs.front());
  for (std::size_t r = 1; r < runs.size(); ++r) {
    const auto& own = numbers(runs[r]);
    means.resize(std::min(means.size(), own.size()));
    for (std::size_t i = 0; i < means.size(); ++i) means[i] = means[i] + own[i];
  }
  for (auto& mean : means) mean = mean * (1.0 / static_cast<double>(runs.size()));
  return means;
}

}  // namespace

std::vector<SeedRuns> by_scenario(const std::vector<TrainingCurve>& curves) {
  std::vector<SeedRuns> scenarios;
  for (const TrainingCurve& curve : curves) {
    const auto found = std::find_if(scenarios.begin(), scenarios.end(), [&](const SeedRuns& runs) {
      return is_of(curve, runs.front()) && !has_seed(runs, curve.seed);
    });
    if (found == scenarios.end()) {
      scenarios.push_back({curve});
    } else {
      found->push_back(curve);
    }
  }
  return scenarios;
}

TrainingCurve mean_of_seeds(const SeedRuns& runs) {
  CHECK(!runs.empty(), "a scenario was trained");
  TrainingCurve mean = runs.front();
  if (runs.size() == 1) return mean;
  mean.losses = means_of(runs, [](const TrainingCurve& run) { return run.losses; });
  mean.ends = means_of(runs, [](const TrainingCurve& run) { return run.ends; });
  for (std::size_t stage = 0; stage < mean.stage_losses.size(); ++stage) {
    mean.stage_losses[stage] =
        means_of(runs, [&](const TrainingCurve& run) { return run.stage_losses.at(stage); });
  }
  mean.measured_step = Seconds(0);
  for (const TrainingCurve& run : runs) {
    mean.measured_step =
        mean.measured_step + run.measured_step * (1.0 / static_cast<double>(runs.size()));
    for (std::size_t d = 0; d < std::min(mean.peaks.size(), run.peaks.size()); ++d) {
      mean.peaks[d] = std::max(mean.peaks[d], run.peaks[d]);
    }
  }
  return mean;
}

std::vector<TrainingCurve> means_of_seeds(const std::vector<TrainingCurve>& curves) {
  std::vector<TrainingCurve> means;
  for (const SeedRuns& runs : by_scenario(curves)) means.push_back(mean_of_seeds(runs));
  return means;
}

double loss_before(const TrainingCurve& run, std::size_t end, std::size_t few) {
  CHECK(0 < few && few <= end && end <= run.losses.size(), "steps that were done");
  const auto last = run.losses.begin() + static_cast<std::ptrdiff_t>(end);
  return std::accumulate(last - static_cast<std::ptrdiff_t>(few), last, 0.0) /
         static_cast<double>(few);
}

Spread last_losses(const SeedRuns& runs, std::size_t few) {
  std::vector<double> losses;
  for (const TrainingCurve& run : runs) losses.push_back(loss_before(run, run.losses.size(), few));
  return spread_of(losses);
}

Spread more_than(const SeedRuns& runs, const SeedRuns& others, std::size_t few) {
  std::vector<double> differences;
  for (const TrainingCurve& run : runs) {
    for (const TrainingCurve& other : others) {
      if (run.seed != other.seed) continue;
      differences.push_back(loss_before(run, run.losses.size(), few) -
                            loss_before(other, other.losses.size(), few));
    }
  }
  return spread_of(differences);
}

std::optional<std::size_t> steps_to_loss(const TrainingCurve& run, double loss, std::size_t few) {
  for (std::size_t end = few; end <= run.losses.size(); ++end) {
    if (loss_before(run, end, few) <= loss) return end;
  }
  return std::nullopt;
}

}  // namespace interlock
