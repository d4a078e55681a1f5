// ResultFile: result and training JSON read back, as far as figures need it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "reports/result/training_curve.h"
#include "scenarios/load/question.h"
#include "sim/measure/metrics.h"

namespace interlock {

struct ReadDevice {
  int device = 0;                  // as the machine counts
  DeviceMetrics metrics = {};      // shares of time and memory
  std::optional<Bubbles> bubbles;  // seconds of a step; none of runs that were not explained
};

/// One result. Example: two devices with a step of 11 ms, the first busy for 6 ms: devices 2,
/// values {"step_time_s": 0.011, ...}, simulated {{device 0, {busy 0.545, ...}}, ...}.
struct ReadResult {
  std::string file, name;
  std::string strategy;  // "global", "3-wise"; empty of a workload
  std::vector<SweptValue> swept;
  int devices = 1;                                    // of the whole layout
  bool fits = true;                                   // in the memory of devices and hosts
  std::map<std::string, double, std::less<>> values;  // of all_metrics() by key; known ones only
  std::string currency, quality_measure;              // as the scenario tells them
  std::vector<ReadDevice> simulated;
  std::shared_ptr<const JsonValue> scenario;  // none if the result has none

  /// Returns the metric with this key, in SI; nothing if the result does not know it.
  std::optional<double> value(std::string_view key) const;
  /// Returns a metric that every result has. REQUIRES: it was read.
  double known(std::string_view key) const;
};

/// The contents of files, in order; one kind only.
struct ResultFiles {
  std::vector<ReadResult> results;
  std::vector<TrainingCurve> curves;
};

/// Throws: Error if a document has no result, is of another version or lacks a key, or if results
/// and training curves are mixed.
ResultFiles read_result_files(const std::vector<JsonValue>& documents);

}  // namespace interlock
