// Mesh words: what people are told of a layout, and which device of the machine a rank is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns the place of each simulated rank in the mesh; of folded devices, that of the first.
std::vector<Coordinates> rank_coordinates(const Plan& plan);
/// Returns "device 3", as the cluster counts, for simulated rank `rank`; on a mixed cluster with
/// its name, "device 3 (rtx-4090)".
std::string device_name(const Plan& plan, int rank);

/// Dimensions of several devices of which one is simulated.
std::vector<Dimension> folded_dimensions(const Plan& plan);

/// Returns "1024 devices", and the number that is simulated if not all are.
std::string device_words(const ScenarioResult& result);
/// Returns "pipeline 8 x data 16 x tensor 8, ...": degrees, options and order; empty for a pipeline
/// alone.
std::string layout_words(const Question& scenario);

/// Returns a name such as "all-reduce".
std::string name_of(CollectiveKind kind);
/// Returns "tensor", "data", ...
std::string name_of(MeshAxis axis);

}  // namespace interlock
