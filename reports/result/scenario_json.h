// ScenarioJson: the scenario of a result, so that the result can be simulated again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "scenarios/load/question.h"

namespace interlock {

/// Returns the document of `scenario` with its name, without "$schema" and "sweep"; files that it
/// names are written as seen from where the program runs. Null if there is no document.
nlohmann::ordered_json scenario_json(const Question& scenario);

/// Returns a part of a document, its files written likewise.
nlohmann::ordered_json value_json(const JsonValue& value);

/// Returns the text of a scenario file in the folder `folder` ("" for where the program runs) that
/// holds `document`: its files are written as seen from there.
std::string scenario_file(const JsonValue& document, const std::string& folder);

/// Returns an object from the paths of a sweep to the values of `scenario`.
nlohmann::ordered_json sweep_json(const Question& scenario);

}  // namespace interlock
