// Every shipped file of measurements: it loads, and its rows are scenarios.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "scenarios/scenario.h"
#include "tests/base/thrown.h"
#include "validate/published/measurement_file.h"

namespace interlock::shipped_measurements_test {
namespace {

std::string problem_of(const JsonValue& document) {
  try {
    const std::size_t scenarios = load_scenarios(document).size();
    return scenarios == 1 ? "" : "a sweep";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("every shipped row is a scenario, and every source has a name") {
  REQUIRE(published_names().size() >= 10);
  for (const std::string& name : published_names()) {
    CAPTURE(name);
    const MeasurementFile file = read_measurements(published_path(name));
    CHECK(file.address.starts_with("https://"));
    CHECK_FALSE(file.licence.empty());
    CHECK_FALSE(file.notes.empty());
    for (const MeasuredTable& table : file.tables) {
      for (const MeasuredRow& row : table.rows) {
        CAPTURE(row.id);
        if (row.candidates.empty()) CHECK(problem_of(row.document) == "");
        for (const CandidateScenario& candidate : row.candidates) {
          CAPTURE(candidate.name);
          CHECK(problem_of(candidate.document) == "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace interlock::shipped_measurements_test
