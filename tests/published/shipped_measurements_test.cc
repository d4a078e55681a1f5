// Every shipped file of measurements: it loads, and its rows are scenarios.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "scenarios/load/question.h"
#include "scenarios/ranges/published_errors.h"
#include "tests/base/thrown.h"
#include "tests/support/cases.h"
#include "validate/published/accuracy.h"
#include "validate/published/error_samples.h"
#include "validate/published/measurement_file.h"

namespace interlock::shipped_measurements_test {
namespace {

std::string problem_of(const JsonValue& document) {
  try {
    const std::size_t scenarios = load_questions(document).size();
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

/// Sources whose rows take milliseconds; in a soak, all.
std::vector<std::string> predicted_sources() {
  if (is_soak()) return published_names();
  return {"chimera-blocks", "decentralized-fm", "gpipe", "korthikanti", "mosaic-mpt"};
}

TEST_CASE("ranges rest on the errors that published rows have today") {
  std::vector<MeasurementFile> files;
  for (const std::string& name : predicted_sources()) {
    files.push_back(read_measurements(published_path(name)));
  }
  const std::vector<ErrorTable>& shipped = published_errors().tables;
  std::size_t compared = 0;
  for (const ErrorTable& table : error_tables(judge(files, RowJobs{2}))) {
    CAPTURE(table.source);
    const auto told = std::find_if(shipped.begin(), shipped.end(), [&](const ErrorTable& one) {
      return one.source == table.source && one.generation == table.generation &&
             one.framework == table.framework;
    });
    INFO("to renew the file: the command in its first lines");
    REQUIRE(told != shipped.end());
    REQUIRE(told->ratios.size() == table.ratios.size());
    for (std::size_t i = 0; i < table.ratios.size(); ++i) {
      CHECK(std::abs(told->ratios[i] - table.ratios[i]) < 1.01e-4);  // four decimals are written
    }
    ++compared;
  }
  CHECK(compared >= 5);
}

}  // namespace
}  // namespace interlock::shipped_measurements_test
