// Accuracy: how far predictions of measured rows are off, by table, group and quantity.
// SPDX-License-Identifier: Apache-2.0
//
// A row counts if it was predicted and nothing was fitted on it. What was not predicted, and what
// was fitted, is counted apart.
//
// Example: 2 s measured and 2.2 s predicted are an error of 0.1. Plans measured at 1, 2, 3 and 4 s
// and predicted at 10, 30, 20 and 40 have a rank correlation of 0.8, as two of them change places.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error_summary.h"
#include "validate/published/measurement_file.h"
#include "validate/published/predict_rows.h"

namespace interlock {

/// One measured number beside its prediction.
struct JudgedValue {
  std::size_t file = 0, table = 0, row = 0;
  Measurand what = Measurand::StepTime;
  double measured = 0;
  std::optional<double> predicted;  // nothing: the row was refused
  std::string problem;              // then why
  bool counts = false;
  double error() const { return *predicted / measured - 1; }
};

/// How well the order of plans was foreseen, over series of two rows and more that count.
struct OrderSummary {
  int series = 0;                     // of three rows and more, which have a Spearman
  std::optional<double> mean, least;  // Spearman's rank correlation over these
  int pairs = 0, pairs_right = 0;     // of values measured over 3 % apart
};

/// Counts how often it was foreseen which plans have the memory to run, on devices whose memory is
/// known: with the reserve that searches leave, see scenarios/plan/reserve.h.
struct FitSummary {
  int ran = 0, ran_without_room = 0;     // rows that ran; that were predicted not to
  int over_capacity = 0;                 // of these: to need more than the whole device
  int failed = 0, failed_with_room = 0;  // that ran out of memory; that were predicted to run
};

struct AccuracySummary {
  int rows = 0, fitted = 0, refused = 0;
  ErrorSummary errors;  // of those that count
  double p90 = 0;
  std::optional<ErrorSummary> fitted_errors;  // of those that were fitted on, for comparison
  OrderSummary order;
};

/// A line of the table: all rows of a table, or of one of its groups, by one quantity.
struct AccuracyLine {
  std::size_t file = 0, table = 0;
  std::string group;  // empty: all
  Measurand what = Measurand::StepTime;
  AccuracySummary summary;
  AccuracyTarget target;            // of the whole table's lines
  std::vector<std::string> missed;  // in words
};

struct Accuracy {
  std::vector<MeasurementFile> files;
  std::vector<std::vector<std::vector<RowPrediction>>> predictions;  // by file, table, row
  std::vector<JudgedValue> values;
  std::vector<AccuracyLine> lines;
  /// Over everything: what tells speed, and what tells memory.
  AccuracySummary speed, memory;
  FitSummary fit;
};

/// Returns Spearman's rank correlation; equal values share their mean rank. Nothing if all of one
/// are equal. REQUIRES: as many of both.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

/// Returns the prediction of what was measured; nothing if the scenario does not say it.
/// `base`: of the row that it is compared with, if any.
std::optional<double> predicted_value(Measurand what, const MeasuredRow& row,
                                      const RowValues& values, const RowValues* base);

/// Predicts every row of `files` by the processes of `jobs`, and judges them.
Accuracy judge(std::vector<MeasurementFile> files, const RowJobs& jobs,
               Efficiencies efficiencies = Efficiencies::Own);
/// Judges predictions that are there.
Accuracy judge(std::vector<MeasurementFile> files,
               std::vector<std::vector<std::vector<RowPrediction>>> predictions);

/// Returns true if every target is reached.
bool reaches_targets(const Accuracy& accuracy);

}  // namespace interlock
