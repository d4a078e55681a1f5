// PageSweep: the data of a page's views of many results, heat-maps, curves and Pareto fronts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// The id of the section of result `index`, as an attribute; views lead there.
std::string section_id(std::size_t index);

/// A place for the views with their data: what was swept, and each result's figures, in SI, as the
/// result JSON has them. Empty where there is nothing to compare: two results that no sweep made.
/// `drawn`: results that have a section. REQUIRES: there are results.
std::string sweep_html(const std::vector<ScenarioResult>& results, std::size_t drawn);

}  // namespace interlock
