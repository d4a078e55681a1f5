// Published errors: how far off predictions of measured runs were, and the range that they give.
// SPDX-License-Identifier: Apache-2.0
//
// `interlock validate published --errors` writes the file: of each published table the measured
// step times over the predicted ones, of rows that nothing was fitted on; and once more, predicted
// with efficiencies borrowed from another architecture. docs/ranges.md has the method and how often
// it holds.
//
// Example: a run has the traits {A100, no framework, "global", "1f1b", "bf16", 8 devices}. Where
// measured steps of such runs took 0.9 to 1.3 times as long as predicted, a step predicted to take
// 1 s has the range 0.9 s to 1.3 s, before it is widened.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/plan/plan.h"
#include "scenarios/ranges/confidence.h"

namespace interlock {

/// Traits in which one run is like another.
struct RunTraits {
  std::string generation;  // of its devices: "A100"
  std::string framework;   // empty: none is named
  std::string strategy, schedule, precision;
  int devices = 1;
  auto operator<=>(const RunTraits&) const = default;
};
RunTraits traits_of(const Plan& plan);

/// The rows of a published table that ran on one generation under one framework.
struct ErrorTable {
  std::string source;  // the file, and the table's name
  std::string generation, framework;
  int devices = 1;                                             // the most of any row
  std::vector<std::string> strategies, schedules, precisions;  // of its rows
  std::vector<double> ratios;                                  // measured step time over predicted
};

/// The contents of a file of errors.
struct PublishedErrors {
  std::vector<ErrorTable> tables;
  /// How many times further from the middle, in logarithms, the rows of a source lie than those of
  /// others that are taken for it; at least 1.
  double widening = 1;
  /// Tables of rows that were predicted with borrowed efficiencies, and their widening.
  std::vector<ErrorTable> borrowed = {};
  double borrowed_widening = 1;
};
inline constexpr double kMostWidening = 20;
/// The generation of tables that were predicted with borrowed efficiencies: they are all alike.
inline constexpr const char* kBorrowedGeneration = "borrowed";

/// Reads such a file. Throws: Error with every mistake of it.
PublishedErrors read_published_errors(const std::string& path);
/// Returns the one that is shipped; read once.
const PublishedErrors& published_errors();

/// Quantiles of measured over predicted step times.
struct RatioSpread {
  double low = 1, middle = 1, high = 1;
};
inline constexpr double kRangeLevel = 0.8;  // between low and high
/// Returns the spread of the tables most like a run: those of its generation and framework, else of
/// its generation, else all; nothing if they have too few rows. Each table has the same weight,
/// since a new run is more like a run of another table than like one more row of the same.
std::optional<RatioSpread> spread_of(const std::vector<ErrorTable>& tables,
                                     const RunTraits& traits);

/// Returns the range of a run that is predicted to take `step`: that spread, widened.
Confidence range_from(const PublishedErrors& errors, const RunTraits& traits, Seconds step);
/// Returns the range of a run on a device that borrows its efficiencies: the spread of all rows
/// that were predicted so, widened. `device` borrows.
Confidence borrowed_range(const PublishedErrors& errors, const RunTraits& traits,
                          const Device& device, Seconds step);

/// Returns the range of a scenario by the shipped errors. No range where the device priced nothing,
/// priced kernels at its peak rates, or was calibrated: published rows say nothing of those.
Confidence published_range(const Plan& plan, Seconds step);

}  // namespace interlock
