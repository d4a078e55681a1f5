// PageSweep: a page's views of many results: heat-maps, curves and the Pareto front.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/result/result_file.h"

namespace interlock {

/// Returns, for each measure that all results have, a table with a row for each combination of the
/// swept values but the last (from two swept paths on) and curves along a swept number; and
/// throughput against memory. Empty where there is nothing to compare: two results that no sweep
/// made. `why`: for each result what is said of it where it does not fit. Points and cells of
/// results that are `drawn` lead to their sections. REQUIRES: there are results; the others have
/// an entry for each.
std::string sweep_html(const std::vector<ReadResult>& results, const std::vector<std::string>& why,
                       const std::vector<bool>& drawn);

}  // namespace interlock
