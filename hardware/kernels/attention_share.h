// Attention share: what share of its rate a device reaches in a fused attention of a given shape.
// SPDX-License-Identifier: Apache-2.0
//
// Time is lost in three ways. Rows of queries begin and end: their operands are loaded before the
// first product, and sums are divided and stored behind the last, which takes as long as a number
// of columns of the scores (`ramp`). Each score has one exponential, however short the sums are
// that make it: a head narrower than `narrowest` takes as long as one of that size. And a
// multiprocessor has a block of rows at a time, so that few blocks, or long ones that come last,
// leave others idle.
//
// Example: ramp 500, narrowest 96, many rows. Heads of 128 whose rows have 2000 columns reach 2000
// / 2500 = 0.8 of the rate; heads of 64 under a window of 250 columns 64 / 96 x 250 / 750 = 0.22.
#pragma once

#include "base/work.h"

namespace interlock {

/// The kernel of fused attention, forward and backward together.
struct AttentionKernel {
  double ramp = 0;       // columns of the scores that its start and end take
  double narrowest = 0;  // elements of a head that take no longer than the exponentials
};

/// Returns the share, in (0, 1], of what `multiprocessors` (0: unknown, all are busy) would reach
/// with wide heads and endless rows. In `shape`, m is the rows of a head, n the columns of a row
/// that are computed, on average, k the elements of a head; k = 0: unknown.
double attention_share(const ProductShape& shape, const AttentionKernel& kernel,
                       int multiprocessors);

}  // namespace interlock
