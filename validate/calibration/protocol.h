// Protocol: in which order probes are timed, how often, and which measurements count.
// SPDX-License-Identifier: Apache-2.0
//
// Shapes come in random order, so that what drifts is not taken for what grows; the first comes
// again at the end, and how much it differs is told. A measurement whose readings scatter too much
// is repeated once when all others are done, then rejected.
//
// Example: the first probe takes 10 us, and 10.2 us when it comes again at the end: a drift of
// 0.02.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "validate/calibration/bench.h"
#include "validate/calibration/sample.h"

namespace interlock {

struct Protocol {
  int readings = 31;
  std::uint64_t seed = 1;
  Beside beside = Beside::Nothing;
  std::function<void(const std::string& sentence)> progress = {};
};

/// Returns the median of readings with its interval and spread. REQUIRES: a reading at least.
Sample sample_of(const Probe& probe, const Readings& readings);

struct MeasuredSamples {
  std::vector<Sample> samples;  // in the order of their probes; those that count
  int rejected = 0;
  double drift = 0;  // the first probe at the end over the first time, less one
};

MeasuredSamples measure(const Bench& bench, const std::vector<Probe>& probes,
                        const Protocol& protocol);

}  // namespace interlock
