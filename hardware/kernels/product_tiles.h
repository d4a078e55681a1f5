// Product tiles: what share of its rate a device reaches in a matrix product of a given shape.
// SPDX-License-Identifier: Apache-2.0
//
// A library cuts the result into tiles, one for a multiprocessor at a time, and takes the size of
// tiles, and the number of parts that the inner dimension is cut into, that end soonest. Time is
// lost in three ways: tiles reach over the edge of the result; the last wave leaves
// multiprocessors idle; filling and draining a tile's pipeline takes as long as a number of steps
// of the inner dimension. Smaller tiles fit better but load more operands for each multiplication.
//
// Example: 100 multiprocessors and no ramp. 2,560 x 1,280 results are 10 x 10 tiles of 256 x 128,
// one full wave: share 1. 101 products of 256 x 128 are best cut into 404 tiles of 128 x 64, which
// have 0.8 of the speed and take five waves for 4.04: share 0.8 x 4.04 / 5 = 0.646.
#pragma once

#include "base/work.h"

namespace interlock {

struct ProductTiles {
  int multiprocessors = 0;  // 0: unknown, and every shape reaches the whole rate
  double ramp = 0;          // steps of the inner dimension, in 16 bits, that its start and end take
};

/// Returns the share, in (0, 1], of what the device would reach if tiles filled it evenly and the
/// inner dimension were endless. 1 where `shape` is of no product.
double tiled_share(const ProductShape& shape, const ProductTiles& tiles);

}  // namespace interlock
