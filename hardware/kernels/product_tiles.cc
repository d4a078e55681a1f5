// Product tiles: tries the tiles of a library's kernels and takes those that end soonest.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/kernels/product_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace interlock {
namespace {

/// A tile loads (rows + columns) operands for each step, for rows x columns multiplications.
/// `speed` is what is left of the rate because of that, as a share of the largest tile's.
/// Source: the tiles that cuBLAS and CUTLASS have for 16-bit products; speeds are an assumption,
/// between what NVIDIA's matrix multiplication guide (docs.nvidia.com, "Matrix Multiplication
/// Background", figure 3) shows for its tiles.
struct Tile {
  double rows, columns, speed;
};
constexpr std::array kTiles = {Tile{256, 128, 1.0}, Tile{128, 256, 1.0}, Tile{128, 128, 0.95},
                               Tile{256, 64, 0.85}, Tile{64, 256, 0.85}, Tile{128, 64, 0.8},
                               Tile{64, 128, 0.8},  Tile{64, 64, 0.65}};
constexpr int kMostParts = 16;      // of the inner dimension
constexpr double kLeastPart = 128;  // steps; a shorter part is no use

}  // namespace

double tiled_share(const ProductShape& shape, const ProductTiles& tiles) {
  if (shape.k <= 0 || tiles.multiprocessors <= 0) return 1;
  const double whole = shape.m * shape.n * shape.k * shape.batch / tiles.multiprocessors;
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double count =
        std::ceil(shape.m / tile.rows) * std::ceil(shape.n / tile.columns) * shape.batch;
    for (int parts = 1; parts <= kMostParts; parts *= 2) {
      const double steps = shape.k / parts;
      if (parts > 1 && steps < kLeastPart) break;
      const double waves = std::ceil(count * parts / tiles.multiprocessors);
      const double spent = waves * tile.rows * tile.columns * (steps + tiles.ramp) / tile.speed;
      best = std::max(best, whole / spent);
    }
  }
  return std::min(1.0, best);
}

}  // namespace interlock
