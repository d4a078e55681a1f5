// Validation: a scenario predicted, then run for real, then compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/headlines/headlines.h"
#include "reports/report.h"
#include "scenarios/simulate/run_scenario.h"
#include "validate/crosscheck/comparison.h"
#include "validate/training/execution.h"

namespace interlock {

/// Simulates `fill` + `steps` steps of `plan`, and leaves out the first.
ScenarioResult predict(const Plan& plan, int fill, int steps);

/// Returns the prediction as JSON, "interlock-prediction/1": written before anything runs.
std::string prediction_json(const std::vector<ScenarioResult>& predictions, int fill, int steps);

struct Validation {
  Comparison comparison;
  /// Named "measured, CLOCK clock | ...": what was compared. By the wall, the run; by the
  /// processor's clock, the simulation with the times of ops in the run.
  ScenarioResult measured;
};

struct ValidationOptions {
  ExecutionOptions execution;  // steps are fill + measured ones
  int fill = 2;
  std::optional<OpClock> clock;  // nothing: the wall, where each device has a processor
};

/// Runs what was predicted, its ops also one after the other, and compares.
/// Throws: Error if it cannot be run, or was stopped before its end.
Validation validate(const ScenarioResult& predicted, const NeuralNetwork& network,
                    const ValidationOptions& options);

/// Returns a row of errors for each scenario.
Grid validation_grid(const std::vector<Comparison>& comparisons);
/// Returns what the columns of that table mean, a paragraph each.
std::vector<std::string> validation_notes(const std::vector<Comparison>& comparisons);
/// Returns what all errors and the order of the scenarios come to, a sentence each.
std::vector<std::string> validation_summary(const std::vector<Comparison>& comparisons);

/// Returns table, notes and summary for a terminal.
std::string validation_table(const std::vector<Comparison>& comparisons, const TableStyle& style);

/// Returns a page: table, notes and summary, and for each scenario its errors by source, its ops,
/// its devices and both timelines. `runs`: the prediction and the measured run of each, in turn.
std::string validation_html(const std::vector<Comparison>& comparisons,
                            const std::vector<ScenarioResult>& runs);

/// Returns the comparisons as "interlock-validation/1", see docs/validation.md. `prediction`: the
/// checksum of prediction_json.
std::string validation_json(const std::vector<Comparison>& comparisons,
                            const std::string& prediction);

}  // namespace interlock
