// Tiles in shared memory: rows that are loaded and stored, and products of tiles.
// SPDX-License-Identifier: Apache-2.0
//
// A tile has `kLead` numbers from one row to the next, a few more than its columns, so that rows
// begin in other banks. All threads of a block work on a tile together; who calls waits for them
// (__syncthreads) before what was written is read. bf16 is multiplied by tensor cores, fp32 by
// fused multiply-adds; sums are fp32, of one order whatever the grid.
#pragma once

#include <mma.h>

#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

/// A matrix of `kRows` rows in shared memory. Example: Tile<Bf16, 64, 32> has kPad 8, kLead 40 and
/// kNumbers 2,560, for which SharedRoom takes 5,120 bytes.
template <class X, int kRows, int kColumns>
struct Tile {
  using Number = X;
  static constexpr int kPad = 16 / sizeof(X);
  static constexpr int kLead = kColumns + kPad;
  static constexpr int kNumbers = kRows * kLead;
  X* at;
  __device__ X& operator()(int row, int column) const { return at[row * kLead + column]; }
};

/// Rows of a matrix in memory: `count` of them, `stride` numbers apart, of `columns` numbers.
template <class T>
struct RowSpan {
  T* first;
  std::int64_t stride;
  int count, columns;
};

/// Loads rows into a tile; where it is larger, zeros.
template <int kWide, class T, int kRows, int kColumns>
__device__ void load_tile(const Tile<T, kRows, kColumns>& tile, const RowSpan<const T>& rows) {
  constexpr int kLots = kColumns / kWide;
  for (int i = threadIdx.x; i < kRows * kLots; i += blockDim.x) {
    const int row = i / kLots, column = i % kLots * kWide;
    Lot<T, kWide> lot = {};
    if (row < rows.count && column < rows.columns) {
      lot = load<kWide>(rows.first + row * rows.stride + column);
    }
    for (int k = 0; k < kWide; ++k) tile(row, column + k) = lot.at[k];
  }
}

/// Stores the rows of a tile, each number times `factor(row)`.
template <int kWide, class T, class Sums, class Factor>
__device__ void store_tile(const RowSpan<T>& rows, const Sums& tile, Factor factor) {
  const int lots = rows.columns / kWide;
  for (int i = threadIdx.x; i < rows.count * lots; i += blockDim.x) {
    const int row = i / lots, column = i % lots * kWide;
    const float by = factor(row);
    Lot<T, kWide> lot;
    for (int k = 0; k < kWide; ++k) put(lot.at[k], by * tile(row, column + k));
    store(rows.first + row * rows.stride + column, lot);
  }
}

template <class X, int kRows, int kColumns>
__device__ void clear_tile(const Tile<X, kRows, kColumns>& tile) {
  for (int i = threadIdx.x; i < tile.kNumbers; i += blockDim.x) tile.at[i] = X(0.0F);
}

/// Computes c (kM, kN) += a b, over the kK columns of a; `a` is stored (kK, kM) if kFlipA, `b` (kN,
/// kK) if kFlipB.
template <int kM, int kN, int kK, bool kFlipA, bool kFlipB, class Sums, class A, class B>
__device__ void multiply_fp32(const Sums& c, const A& a, const B& b) {
  for (int i = threadIdx.x; i < kM * kN; i += blockDim.x) {
    const int row = i / kN, column = i % kN;
    float sum = c(row, column);
    for (int k = 0; k < kK; ++k) {
      sum += (kFlipA ? a(k, row) : a(row, k)) * (kFlipB ? b(column, k) : b(k, column));
    }
    c(row, column) = sum;
  }
}

template <int kM, int kN, int kK, bool kFlipA, bool kFlipB, class Sums, class A, class B>
__device__ void multiply_bf16(const Sums& c, const A& a, const B& b) {
  namespace wmma = nvcuda::wmma;
  constexpr int kEdge = 16;
  using LayoutA = std::conditional_t<kFlipA, wmma::col_major, wmma::row_major>;
  using LayoutB = std::conditional_t<kFlipB, wmma::col_major, wmma::row_major>;
  for (int i = threadIdx.x / kWarp; i < kM / kEdge * (kN / kEdge); i += blockDim.x / kWarp) {
    const int row = i / (kN / kEdge) * kEdge, column = i % (kN / kEdge) * kEdge;
    wmma::fragment<wmma::accumulator, kEdge, kEdge, kEdge, float> sum;
    wmma::load_matrix_sync(sum, &c(row, column), Sums::kLead, wmma::mem_row_major);
    for (int k = 0; k < kK; k += kEdge) {
      wmma::fragment<wmma::matrix_a, kEdge, kEdge, kEdge, Bf16, LayoutA> left;
      wmma::fragment<wmma::matrix_b, kEdge, kEdge, kEdge, Bf16, LayoutB> right;
      wmma::load_matrix_sync(left, kFlipA ? &a(k, row) : &a(row, k), A::kLead);
      wmma::load_matrix_sync(right, kFlipB ? &b(column, k) : &b(k, column), B::kLead);
      wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(&c(row, column), sum, Sums::kLead, wmma::mem_row_major);
  }
}

/// Adds a b' to c, over the columns of both.
template <class T, int kM, int kN, int kK>
__device__ void add_product_of_rows(const Tile<float, kM, kN>& c, const Tile<T, kM, kK>& a,
                                    const Tile<T, kN, kK>& b) {
  if constexpr (std::is_same_v<T, float>) {
    multiply_fp32<kM, kN, kK, false, true>(c, a, b);
  } else {
    multiply_bf16<kM, kN, kK, false, true>(c, a, b);
  }
}

/// Adds a b to c, or a' b if `kFlip`.
template <bool kFlip, class T, int kM, int kN, int kK>
__device__ void add_product(const Tile<float, kM, kN>& c, const Tile<T, kM, kK>& a,
                            const Tile<T, kK, kN>& b) {
  static_assert(!kFlip || kM == kK, "a square tile is stored alike either way");
  if constexpr (std::is_same_v<T, float>) {
    multiply_fp32<kM, kN, kK, kFlip, false>(c, a, b);
  } else {
    multiply_bf16<kM, kN, kK, kFlip, false>(c, a, b);
  }
}

/// Shared memory that tiles are cut from, each at a multiple of 128 bytes.
struct SharedRoom {
  unsigned char* next;
  template <class X>
  __device__ X* take(int numbers) {
    X* const at = reinterpret_cast<X*>(next);
    next += (numbers * sizeof(X) + 127) / 128 * 128;
    return at;
  }
  template <class TileType>
  __device__ TileType tile() {
    return {take<typename TileType::Number>(TileType::kNumbers)};
  }
};

/// Returns the bytes that SharedRoom takes for each of the tiles, in sum.
template <class... Tiles>
constexpr int bytes_of_tiles() {
  return (0 + ... +
          ((Tiles::kNumbers * static_cast<int>(sizeof(typename Tiles::Number)) + 127) / 128 * 128));
}

}  // namespace interlock::cuda
