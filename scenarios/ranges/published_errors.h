// Published errors: how far off predictions of measured runs were, and the range that they give.
// SPDX-License-Identifier: Apache-2.0
//
// `interlock validate published --errors` writes the file: of each published table the measured
// step times over the predicted ones, of rows that nothing was fitted on. docs/ranges.md has the
// method and how often it holds.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "scenarios/ranges/confidence.h"
#include "scenarios/scenario.h"

namespace interlock {

/// What makes one run like another.
struct RunTraits {
  std::string generation;  // of its devices: "A100"
  std::string framework;   // empty: none is named
  std::string strategy, schedule, precision;
  int devices = 1;
  auto operator<=>(const RunTraits&) const = default;
};
RunTraits traits_of(const Scenario& scenario);
/// "A100" of "A100-SXM4-80GB", "RTX-3090" of "RTX-3090-24GB": up to the first part with a digit.
std::string generation_of(const std::string& device);

/// The rows of a published table that ran on one generation under one framework.
struct ErrorTable {
  std::string source;  // the file, and the table's name
  std::string generation, framework;
  int devices = 1;                                             // the most of any row
  std::vector<std::string> strategies, schedules, precisions;  // of its rows
  std::vector<double> ratios;                                  // measured step time over predicted
};

/// Reads such a file. Throws: Error with every mistake of it.
std::vector<ErrorTable> read_error_tables(const std::string& path);
/// Those that are shipped; read once.
const std::vector<ErrorTable>& published_errors();

/// The range of a run that is predicted to take `step`, from the tables most like it: of its
/// generation and framework, else of its generation, else all. In it each table weighs alike, since
/// a run is rather like one of another table than like one more row of the same.
Confidence range_from(const std::vector<ErrorTable>& tables, const RunTraits& traits, Seconds step);

/// The same for a scenario, from what is shipped. No range where the device priced nothing, or was
/// calibrated: published rows say nothing of those.
Confidence published_range(const Scenario& scenario, Seconds step);

}  // namespace interlock
