// Calibration: all that is measured of a device, and what is fitted to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hardware/topologies/link.h"
#include "validate/calibration/bench.h"
#include "validate/calibration/held_out.h"
#include "validate/calibration/sample.h"

namespace interlock {

struct CalibrationOptions {
  bool quick = false;  // fewer and smaller shapes, fewer readings
  int seed = 1;
  std::function<void(const std::string& sentence)> progress = {};
};

/// How much longer a kernel of a class takes while the rest of the device is at work.
struct Slowdown {
  OpClass op_class = OpClass::Gemm;
  Beside beside = Beside::Products;
  double factor = 1;
};

struct Calibration {
  BenchFacts facts;
  CalibrationOptions options;
  Seconds launch;               // of a kernel that does nothing
  std::vector<Sample> streams;  // plain copies
  std::vector<Sample> samples;  // kernels
  int rejected = 0;             // measurements that never became steady
  double drift = 0;             // see MeasuredSamples
  CalibratedModel model;        // fitted to all samples
  std::vector<HeldOutErrors> errors;
  std::optional<LinkSpeed> copies;  // from one worker to another
  std::vector<Slowdown> interference;
};

/// Measures everything, then fits.
/// Throws: Error if too little could be measured to fit anything.
Calibration calibrate(const Bench& bench, const CalibrationOptions& options);

/// Returns the latency and bandwidth of messages (bytes, seconds): relative least squares.
/// REQUIRES: two sizes at least.
LinkSpeed fit_link(const std::vector<StreamPoint>& messages);

}  // namespace interlock
