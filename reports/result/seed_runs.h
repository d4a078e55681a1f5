// SeedRuns: the trainings of one scenario under several seeds, their mean, and their spread.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two scenarios under the seeds 1 and 2 are four curves: a of seed 1, b of seed 1, a of
// seed 2, b of seed 2. by_scenario() has two lists of two; mean_of_seeds() of the first has at
// step s the mean of both losses of a.
#pragma once

#include <optional>
#include <vector>

#include "base/spread.h"
#include "reports/result/training_curve.h"

namespace interlock {

using SeedRuns = std::vector<TrainingCurve>;

/// Returns the curves of each scenario, in the order of their first ones. Curves of one name,
/// strategy and schedule are of one scenario as long as their seeds differ.
std::vector<SeedRuns> by_scenario(const std::vector<TrainingCurve>& curves);

/// Returns the mean over `runs` of losses and times, as far as all of them got; of memory the most,
/// of the rest that of the first. REQUIRES: there is a run.
TrainingCurve mean_of_seeds(const SeedRuns& runs);
/// Returns the mean of each scenario.
std::vector<TrainingCurve> means_of_seeds(const std::vector<TrainingCurve>& curves);

/// Returns the mean loss over the `few` steps before step `end` of `run`. REQUIRES: it has them.
double loss_before(const TrainingCurve& run, std::size_t end, std::size_t few);
/// Returns the mean over the last `few` steps of each run. REQUIRES: each has as many.
Spread last_losses(const SeedRuns& runs, std::size_t few);

/// Returns by how much the last loss of `runs` is above that of `others` under the same seed, over
/// the seeds that both have. REQUIRES: they have one.
Spread more_than(const SeedRuns& runs, const SeedRuns& others, std::size_t few);

/// Returns after how many steps of `run` the mean loss of the last `few` of them is first at most
/// `loss`; nothing if it never is.
std::optional<std::size_t> steps_to_loss(const TrainingCurve& run, double loss, std::size_t few);

}  // namespace interlock
