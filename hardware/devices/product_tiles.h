// Product tiles: what share of its rate a device reaches in a matrix product of a given shape.
// SPDX-License-Identifier: Apache-2.0
//
// A library cuts the result into tiles, one for a multiprocessor at a time, and takes the size of
// tiles, and the number of parts that the inner dimension is cut into, that end soonest. Time is
// lost in three ways: tiles reach over the edge of the result; the last wave leaves
// multiprocessors idle; filling and draining a tile's pipeline takes as long as a number of steps
// of the inner dimension. Smaller tiles fit better but load more operands for each multiplication.
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
