// Embedding: rows of a table by token and by place; gradients without atomics.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a token's row is the sum over the positions that read it. Positions come sorted
// by token and are cut into chunks; runs of one token that lie in several chunks are added up in a
// second stage, since the commonest token of a text comes hundreds of times in a micro-batch.
#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

template <class T>
__global__ void look_up(T* y, const T* table, const T* places, Lookup lookup, Matrix shape) {
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* word = table + std::int64_t{lookup.tokens[row]} * shape.columns;
    const T* place =
        lookup.positions > 0 ? places + (row % lookup.positions) * shape.columns : nullptr;
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      const float at_place = place == nullptr ? 0.0F : to_float(place[c]);
      put(y[row * shape.columns + c], to_float(word[c]) + at_place);
    }
  }
}

/// Positions of the sorted order that are added up at once; they depend on the shape alone.
constexpr int kChunk = 32;
constexpr unsigned kChunkThreads = 64;

std::int64_t chunks_of(std::int64_t rows) { return (rows + kChunk - 1) / kChunk; }

/// Lots of columns that a block works on, and how many such tiles a row has.
template <int kWide>
__device__ std::int64_t tiles_of(int columns) {
  return (columns / kWide + static_cast<int>(blockDim.x) - 1) / static_cast<int>(blockDim.x);
}

__device__ inline std::int32_t token_at(const Lookup& lookup, std::int64_t position) {
  return lookup.tokens[lookup.order[position]];
}

/// Adds the rows of a chunk's runs of one token: a run that lies inside the chunk goes to the
/// table, one that also lies in a neighbour to `edges` (chunks, 2, columns): 0 if it began before,
/// else 1.
template <int kWide, class T>
__global__ void add_chunks(T* dtable, float* edges, const T* dy, Lookup lookup, Matrix shape) {
  __shared__ std::int32_t rows[kChunk], tokens[kChunk + 2];  // tokens[1 + i] is that of rows[i]
  const std::int64_t tiles = tiles_of<kWide>(shape.columns);
  const std::int64_t chunks = (shape.rows + kChunk - 1) / kChunk;
  for (std::int64_t task = blockIdx.x; task < chunks * tiles; task += gridDim.x) {
    const std::int64_t chunk = task / tiles, first = chunk * kChunk;
    const int length = static_cast<int>(min(std::int64_t{kChunk}, shape.rows - first));
    __syncthreads();  // rows and tokens may still be read for the task before
    for (int i = threadIdx.x; i < length + 2; i += blockDim.x) {
      const std::int64_t position = first + i - 1;
      const bool there = position >= 0 && position < shape.rows;
      tokens[i] = there ? token_at(lookup, position) : -1;
      if (i > 0 && i <= length) rows[i - 1] = lookup.order[position];
    }
    __syncthreads();
    const int lot = static_cast<int>(task % tiles) * blockDim.x + threadIdx.x;
    const int column = lot * kWide;
    if (column >= shape.columns) continue;
    float sums[kWide] = {};
    bool from_before = tokens[0] == tokens[1];
#pragma unroll 4
    for (int i = 0; i < length; ++i) {
      const auto from = load<kWide>(dy + std::int64_t{rows[i]} * shape.columns + column);
      for (int k = 0; k < kWide; ++k) sums[k] += to_float(from.at[k]);
      const bool goes_on = tokens[2 + i] == tokens[1 + i];
      if (goes_on && i + 1 < length) continue;
      if (from_before || goes_on) {
        float* to = edges + (2 * chunk + (from_before ? 0 : 1)) * shape.columns + column;
        for (int k = 0; k < kWide; ++k) to[k] = sums[k];
      } else {
        T* to = dtable + std::int64_t{tokens[1 + i]} * shape.columns + column;
        for (int k = 0; k < kWide; ++k) put(to[k], to_float(to[k]) + sums[k]);
      }
      for (int k = 0; k < kWide; ++k) sums[k] = 0;
      from_before = false;
    }
  }
}

/// Adds up, chunk by chunk, the edges of each run that lies in several: at the chunk it begins in.
template <class T>
__global__ void add_edges(T* dtable, const float* edges, Lookup lookup, Matrix shape) {
  const std::int64_t chunks = (shape.rows + kChunk - 1) / kChunk;
  for (std::int64_t chunk = blockIdx.x; chunk + 1 < chunks; chunk += gridDim.x) {
    const std::int64_t first = chunk * kChunk, next = first + kChunk;
    const std::int32_t token = token_at(lookup, next - 1);
    if (token_at(lookup, next) != token) continue;
    if (first > 0 && token_at(lookup, first - 1) == token) continue;  // it began before
    std::int64_t last = chunk + 1;                                    // the chunk that it ends in
    while (last + 1 < chunks && token_at(lookup, (last + 1) * kChunk) == token) ++last;
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      float sum = edges[(2 * chunk + 1) * shape.columns + c];
      for (std::int64_t in = chunk + 1; in <= last; ++in) sum += edges[2 * in * shape.columns + c];
      T& to = dtable[std::int64_t{token} * shape.columns + c];
      put(to, to_float(to) + sum);
    }
  }
}

template <int kWide, class T>
__global__ void add_by_place(T* dplaces, const T* dy, int positions, Matrix shape) {
  for (std::int64_t place = blockIdx.x; place < positions; place += gridDim.x) {
    for (int c = first_column<kWide>(); c < shape.columns; c += column_step<kWide>()) {
      float sums[kWide] = {};
#pragma unroll 4
      for (std::int64_t row = place; row < shape.rows; row += positions) {
        const auto from = load<kWide>(dy + row * shape.columns + c);
        for (int k = 0; k < kWide; ++k) sums[k] += to_float(from.at[k]);
      }
      T* to = dplaces + place * shape.columns + c;
      for (int k = 0; k < kWide; ++k) put(to[k], to_float(to[k]) + sums[k]);
    }
  }
}

}  // namespace

void embed(const Stream& stream, void* y, const void* table, const void* places,
           const Lookup& lookup, Matrix shape) {
  with_element(stream, "embed", [&](auto one) {
    using T = decltype(one);
    look_up<<<grid_of(stream, shape.rows), threads_of_row(shape.columns), 0, stream.handle>>>(
        static_cast<T*>(y), static_cast<const T*>(table), static_cast<const T*>(places), lookup,
        shape);
  });
}

/// Returns the scratch of embed_gradient: two sums a column of each chunk.
std::int64_t embed_scratch(Matrix shape) { return 2 * chunks_of(shape.rows) * shape.columns; }

void embed_gradient(const Stream& stream, const EmbeddingGradients& to, const void* dy,
                    const Lookup& lookup, Matrix shape, float* scratch) {
  with_lots(stream, "embed_gradient", shape.columns, [&](auto one, auto width) {
    using T = decltype(one);
    constexpr int kWide = decltype(width)::value;
    const T* slopes = static_cast<const T*>(dy);
    const unsigned row_threads = threads_of_row(shape.columns, kWide);
    const unsigned threads = std::min(kChunkThreads, row_threads);
    const std::int64_t tiles = (shape.columns / kWide + threads - 1) / threads;
    const std::int64_t chunks = chunks_of(shape.rows);
    add_chunks<kWide><<<grid_of(stream, chunks * tiles), threads, 0, stream.handle>>>(
        static_cast<T*>(to.dtable), scratch, slopes, lookup, shape);
    add_edges<<<grid_of(stream, chunks), threads_of_row(shape.columns), 0, stream.handle>>>(
        static_cast<T*>(to.dtable), scratch, lookup, shape);
    if (lookup.positions == 0) return;
    add_by_place<kWide><<<grid_of(stream, lookup.positions), row_threads, 0, stream.handle>>>(
        static_cast<T*>(to.dplaces), slopes, lookup.positions, shape);
  });
}

}  // namespace interlock::cuda
