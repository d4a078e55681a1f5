// Probe grid: the kernels that a calibration measures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "validate/calibration/bench.h"

namespace interlock {

/// How many there are of each kind, and how large they may be.
struct GridSize {
  int linears = 60, attentions = 24, convolutions = 24, sizes = 16;  // sizes: of what moves bytes
  Flops most_flops;
  Bytes most_bytes;
  std::uint64_t seed = 1;
};

/// Kernels of every class and role; sizes are even in logarithms, those of products drawn.
std::vector<Probe> probe_grid(const GridSize& size, Precision precision);

/// Plain copies of 4 KiB to `most_bytes`.
std::vector<Probe> stream_probes(int count, Bytes most_bytes, Precision precision);

/// Probes of one operator of models/, one for each role that it has.
std::vector<Probe> linear_probes(std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                                 Precision precision);

}  // namespace interlock
