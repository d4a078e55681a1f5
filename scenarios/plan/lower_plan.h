// lower_plan: Plan to Program, and what its kernels and exchanges take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scenarios/plan/plan.h"
#include "sim/lower/lower.h"

namespace interlock {

/// Lowers `steps` steps.
Program lower_plan(const Plan& plan, int steps);
/// Lowers `steps` steps from `inputs`, which serve several lengths, and may say otherwise than
/// lower_inputs() does how devices are folded and links shared.
Program lower_plan(const Plan& plan, LowerInputs inputs, int steps);

/// Prices the stages of `plan`. Returns the inputs of lowering, but for the order of work, which
/// depends on the steps.
LowerInputs lower_inputs(const Plan& plan);
/// Returns the order of `steps` steps; fits the windows of `inputs` to slices. REQUIRES: it is
/// known.
Schedule schedule_of(const Plan& plan, LowerInputs& inputs, int steps);
/// Gives `inputs` the order of `steps` steps, and what depends on it: which stash leaves for hosts.
/// REQUIRES: it is known.
void order_steps(const Plan& plan, LowerInputs& inputs, int steps);

/// Prices of modules, which several plans may share.
using ModulePrices = std::shared_ptr<const std::vector<StageCost>>;
/// Returns the prices of the modules of `graph` on the device at `at`, each by itself.
ModulePrices priced_modules(const Question& question, const ModelGraph& graph,
                            const Coordinates& at = {});
/// Returns the balanced partition of modules of such prices into `parts`, to be read or, while it
/// has no boundaries, set; null where none is kept.
Partition* known_cut(const Question& question, int parts);
/// Returns their prices in the stages of `partition`.
ModulePrices priced_in_stages(const Question& question, const ModelGraph& graph,
                              const Coordinates& at, const Partition& partition);

/// Returns what prices the modules of `question` on the device at `at`: its machine, the groups
/// that it is in, and the layout of its pipeline rank. REQUIRES: `question` outlives it.
PriceInputs price_inputs(const Question& question, const Coordinates& at = {});

/// Returns a place on each machine of the cluster that the layout of `question` uses; nothing for
/// one that it does not use.
std::vector<std::optional<Coordinates>> places_on_machines(const Question& question);
/// Returns the numbers of the machines that pipeline rank `rank` has devices of.
std::vector<std::size_t> machines_of(const Question& question, int rank);

}  // namespace interlock
