// Calibration: all that is measured of a device, and what is fitted to it.
// SPDX-License-Identifier: Apache-2.0
//
// Example: in an all-reduce of 8 MB by four members each sends 2 x 3 / 4 x 8 = 12 MB. At a latency
// of 10 us and 100 GB/s it takes 130 us.
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
  Beside beside = Beside::Nothing;           // what others do while kernels are timed
  bool warm = false;                         // operands are found in caches
  std::vector<Probe> wanted = {};            // of scenarios: measured beside the grid
  std::vector<std::string> wanted_for = {};  // those scenarios, by name
  std::function<void(const std::string& sentence)> progress = {};
};

/// How much longer a kernel of a class takes while the rest of the device is at work.
struct Slowdown {
  OpClass op_class = OpClass::Gemm;
  Beside beside = Beside::Products;
  double factor = 1;
};

/// A collective of that many devices.
struct MeasuredCollective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int members = 2;
  Bytes bytes;
  Seconds time, low, high;  // the median, and its interval
};

/// Fit to the sizes of one collective: time = latency + bytes that each member sends / bandwidth.
struct CollectiveSpeed {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int members = 2;
  LinkSpeed speed;
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
  std::vector<MeasuredCollective> collectives;
  std::vector<CollectiveSpeed> network;
};

/// Measures everything, then fits.
/// Throws: Error if too little could be measured to fit anything.
Calibration calibrate(const Bench& bench, const CalibrationOptions& options);

/// Returns the latency and bandwidth of messages (bytes, seconds): relative least squares.
/// REQUIRES: two sizes at least.
LinkSpeed fit_link(const std::vector<StreamPoint>& messages);

}  // namespace interlock
