// ResultJson: a result as a JSON document, for what is made of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns the result contract, see result_json() of reports/report.h.
nlohmann::ordered_json result_document(const ScenarioResult& result);

}  // namespace interlock
