// Fits numbers again: how well they serve sources, models and devices that had no part in them.
// SPDX-License-Identifier: Apache-2.0
//
// The tables of measurements name what was fitted on which of their rows: keys of a framework's
// file, or of a device's. Each is varied alone, between half and twice what it is, over rows that
// it prices. Example: "megatron-lm: kernel_issue, exchange_issue; A100: tile_ramp" names three.
#pragma once

#include <string>
#include <vector>

#include "reports/headlines/headlines.h"
#include "validate/published/measurement_file.h"

namespace interlock {

/// A number of a catalogue file that was fitted.
struct FittedParameter {
  std::string entry;                  // "megatron-lm", or "A100"
  std::string key;                    // "kernel_issue", "efficiency.gemm.compute"
  std::vector<std::string> rests_on;  // "vtrain-a100: 180 rows"
};

/// A row's logarithm of predicted over measured at each factor of a parameter, and its groups.
struct VariedRow {
  std::string source, model, device;
  std::vector<double> errors;
};

/// The error of rows that had no part in a fit: the median of its absolute values.
struct LeftOut {
  int groups = 0;
  double error = 0;
};

struct ParameterFit {
  FittedParameter parameter;
  std::string value, origin;  // as its file has them
  int rows = 0;
  double best = 1;                       // factor
  double error_now = 0, error_best = 0;  // medians of absolute errors
  LeftOut source, model, device;         // no groups: all rows are of one
  std::string problem;                   // why it was not varied; empty: it was
};

/// Returns the parameters that the tables of `files` name, in their order.
std::vector<FittedParameter> fitted_parameters(const std::vector<MeasurementFile>& files);

/// Returns the factors by which a parameter is varied; the one in the middle is 1.
const std::vector<double>& varied_factors();
/// Fits a factor to `rows`: the least sum of absolute logarithms, with errors between factors by
/// linear interpolation. Fills all but the texts.
ParameterFit fit_rows(const std::vector<VariedRow>& rows);

/// A row that tells a speed, and the device that it runs on.
struct SpeedRow {
  const MeasuredRow* row = nullptr;
  std::string source, device;
};

/// Returns the rows of `files` that tell a speed, are predicted, and may be priced by one of
/// `parameters`; by `jobs` processes.
std::vector<SpeedRow> speed_rows(const std::vector<MeasurementFile>& files,
                                 const std::vector<FittedParameter>& parameters, int jobs);

/// Varies `parameter` over at most `most` of the `rows` that it prices, by `jobs` processes.
ParameterFit refit(const FittedParameter& parameter, const std::vector<SpeedRow>& rows,
                   std::size_t most, int jobs);

/// Returns a line for each.
Grid fit_grid(const std::vector<ParameterFit>& fits);
/// Returns what the columns mean.
std::string fit_note();
/// Returns the fits as a document of the format `interlock-fit/1`; errors and factors as shares.
std::string fit_json(const std::vector<ParameterFit>& fits);
/// Returns a page: the table, and below it the origin of each number and the rows that it rests on.
std::string fit_markdown(const std::vector<ParameterFit>& fits, const std::string& command);

}  // namespace interlock
