// ResultsPage: results that were written earlier, as a page: a table, heat-maps, curves, fronts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/result/result_file.h"

namespace interlock {

/// Returns the page. REQUIRES: results is not empty.
std::string results_html(const std::vector<ReadResult>& results);

}  // namespace interlock
