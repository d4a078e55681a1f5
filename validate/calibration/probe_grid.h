// Probe grid: the kernels that a calibration measures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "validate/calibration/bench.h"

namespace interlock {

/// The number of kernels of each kind, and how large they may be.
struct GridSize {
  int linears = 60, attentions = 24, convolutions = 24, sizes = 16;  // sizes: of what moves bytes
  Flops most_flops;
  Bytes most_bytes;
  std::uint64_t seed = 1;
  /// The longest side of a linear layer. Beyond 4096 every second one has sides that models have,
  /// whose tiles fill a device better than most numbers do.
  std::int64_t longest_side = 4096;
};

/// Returns kernels of every class and role; sizes are even in logarithms, those of products drawn.
std::vector<Probe> probe_grid(const GridSize& size, Precision precision);

/// Returns true if the table of a calibrated device cannot tell the two apart: it knows them by
/// class, role, variant, launches, flops, bytes and shape.
bool is_same_kernel(const Work& a, const Work& b);

/// Returns plain copies of 4 KiB to `most_bytes`, of 4 KiB, 512 KiB and 64 MiB, e.g., for three.
std::vector<Probe> stream_probes(int count, Bytes most_bytes, Precision precision);

/// Returns probes of everything that moves bytes, on matrices of (rows, width).
std::vector<Probe> mover_probes(std::int64_t rows, std::int64_t width, Precision precision);

/// Returns probes of one operator of models/, one for each role that it has.
std::vector<Probe> linear_probes(std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                                 Precision precision);

}  // namespace interlock
