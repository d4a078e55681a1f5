// Attention share: computes it from rows, columns and the elements of a head.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/kernels/attention_share.h"

#include <algorithm>

namespace interlock {
namespace {

/// Scans that stand in for attention tell no shape; they reach what such rows do.
constexpr double kTypicalColumns = 2048;

/// Rows of a block: forward 256, backward 128, as kernels for Blackwell have them; between. Blocks
/// start as multiprocessors get free, and the last of them end within kLastBlock of the longest.
/// Source: 4 to 128 heads of 4096 tokens on B200 (MooreThreads/SimuMax 4dcaae5, sdp_fwd and sdp_bwd
/// of its B200 system file; tests/hardware/devices/attention_kernels_2025.csv) lie within 7 % of
/// one rate by these two; without, 3.3 apart.
constexpr double kBlockRows = 192, kLastBlock = 0.2;

/// Returns the share of the multiprocessors that are busy. The longest row has up to twice the
/// columns of the mean one, under a causal mask.
double busy_share(const ProductShape& shape, double ramp, int multiprocessors) {
  if (multiprocessors == 0) return 1;
  const double longest = std::max(shape.n, std::min(shape.m, 2 * shape.n));
  const double blocks = shape.batch * shape.m / kBlockRows;
  const double waves = blocks * (shape.n + ramp) / (multiprocessors * (longest + ramp));
  return waves / std::max(1.0, waves + kLastBlock);
}

}  // namespace

double attention_share(const ProductShape& shape, const AttentionKernel& kernel,
                       int multiprocessors) {
  if (kernel.ramp == 0 && kernel.narrowest == 0) return 1;  // nothing is known of it
  if (shape.k <= 0) return kTypicalColumns / (kTypicalColumns + kernel.ramp);
  const double filled = std::min(1.0, shape.k / std::max(1.0, kernel.narrowest));
  return busy_share(shape, kernel.ramp, multiprocessors) * filled * shape.n /
         (shape.n + kernel.ramp);
}

}  // namespace interlock
