// Fused causal attention: scores are made tile by tile in shared memory and never stored.
// SPDX-License-Identifier: Apache-2.0
//
// A block has some queries of a head and walks over the keys that they see, or, for gradients of
// keys and values, some keys and walks over the queries that see them. Forward: a running maximum
// and sum of each row rescale what was added up so far. Backward: the softmax is found again from
// the logarithm of each row's sum; with D = sum of dy y of a row, dscores = p (dp - D) factor.
// Source: FlashAttention-2, arXiv 2307.08691, algorithms 1 and 2. There dq is summed by atomics;
// here it has a pass of its own, so that results are bitwise the same on any grid.
#include <cmath>
#include <string>

#include "base/error.h"
#include "validate/cuda/kernels/fused_attention.h"
#include "validate/cuda/kernels/tile_products.cuh"

namespace interlock::cuda {

namespace {

/// Tiles of a head of up to kHead numbers: as many rows as leave room for all in 99 KiB, which
/// every architecture since sm_80 gives a block.
template <class T, int kHead>
struct HeadTiles {
  static constexpr int kRows = (sizeof(T) == 2 ? 4096 : 2048) / kHead;
  using Rows = Tile<T, kRows, kHead>;        // of queries, keys, values, or their gradients
  using Sums = Tile<float, kRows, kHead>;    // what is added up over tiles
  using Scores = Tile<float, kRows, kRows>;  // of queries and keys
  using Weights = Tile<T, kRows, kRows>;
  using Column = Tile<float, kRows, 1>;  // a number of each row
};

/// One head of one sample in a tensor of queries, keys and values.
template <class T>
struct Head {
  T *query, *key, *value;
  std::int64_t stride;  // from one token to the next
  __device__ Head(T* qkv, const Heads& h, int block)
      : query(qkv + block / h.heads * std::int64_t{h.tokens} * 3 * h.width() +
              block % h.heads * h.size),
        key(query + h.width()),
        value(key + h.width()),
        stride(3 * h.width()) {}
};

/// Returns `count` rows from `row` on, fewer at the end.
template <class T>
__device__ RowSpan<T> span(T* first, std::int64_t stride, const Heads& h, int row, int count) {
  return {first + row * stride, stride, min(count, h.tokens - row), h.size};
}

/// Returns where the output of a head begins, or its gradient; tokens are h.width() apart.
template <class T>
__device__ T* output_of(T* y, const Heads& h, int block) {
  return y + block / h.heads * std::int64_t{h.tokens} * h.width() + block % h.heads * h.size;
}

/// Calls `work(block, tile)` for the tiles of all heads that this block has in turn; those that see
/// most first.
template <class Work>
__device__ void for_tiles(const Heads& h, int rows, bool last_first, Work work) {
  const int tiles = (h.tokens + rows - 1) / rows;
  const std::int64_t all = std::int64_t{h.blocks()} * tiles;
  for (std::int64_t task = blockIdx.x; task < all; task += gridDim.x) {
    const int tile = static_cast<int>(task % tiles);
    __syncthreads();  // shared memory may still be read for the task before
    work(static_cast<int>(task / tiles), (last_first ? tiles - 1 - tile : tile) * rows);
  }
}

template <int kHead, int kWide, class T>
struct Forward {
  using Tiles = HeadTiles<T, kHead>;
  static constexpr int kRows = Tiles::kRows;
  static constexpr int kBytes =
      bytes_of_tiles<typename Tiles::Rows, typename Tiles::Rows, typename Tiles::Sums,
                     typename Tiles::Scores, typename Tiles::Weights, typename Tiles::Column,
                     typename Tiles::Column>();

  typename Tiles::Rows query, seen;  // seen: keys, then values
  typename Tiles::Sums sums;
  typename Tiles::Scores scores;
  typename Tiles::Weights weights;
  typename Tiles::Column most, total;

  __device__ explicit Forward(SharedRoom room)
      : query(room.tile<typename Tiles::Rows>()),
        seen(room.tile<typename Tiles::Rows>()),
        sums(room.tile<typename Tiles::Sums>()),
        scores(room.tile<typename Tiles::Scores>()),
        weights(room.tile<typename Tiles::Weights>()),
        most(room.tile<typename Tiles::Column>()),
        total(room.tile<typename Tiles::Column>()) {}

  /// Turns scores of queries from `first` and keys from `from` on into weights; a warp has a row.
  __device__ void weigh(int first, int from, float factor) const {
    const int thread = threadIdx.x % kWarp;
    for (int row = threadIdx.x / kWarp; row < kRows; row += blockDim.x / kWarp) {
      const auto score = [&](int c) {
        return from + c <= first + row ? factor * scores(row, c) : -INFINITY;
      };
      float high = -INFINITY;
      for (int c = thread; c < kRows; c += kWarp) high = fmaxf(high, score(c));
      const float before = most(row, 0), now = fmaxf(before, warp_max(high));
      const float shrink = expf(before - now);
      float sum = 0;
      for (int c = thread; c < kRows; c += kWarp) {
        const float weight = expf(score(c) - now);
        put(weights(row, c), weight);
        sum += weight;
      }
      sum = warp_sum(sum);
      for (int c = thread; c < kHead; c += kWarp) sums(row, c) *= shrink;
      if (thread == 0) {
        most(row, 0) = now;
        total(row, 0) = total(row, 0) * shrink + sum;
      }
    }
  }

  __device__ void run(T* y, float* statistics, const T* qkv, const Heads& h, float factor,
                      int block, int first) const {
    const Head<const T> head(qkv, h, block);
    load_tile<kWide>(query, span(head.query, head.stride, h, first, kRows));
    clear_tile(sums);
    for (int row = threadIdx.x; row < kRows; row += blockDim.x) {
      most(row, 0) = -INFINITY;
      total(row, 0) = 0;
    }
    for (int from = 0; from < min(first + kRows, h.tokens); from += kRows) {
      __syncthreads();
      load_tile<kWide>(seen, span(head.key, head.stride, h, from, kRows));
      clear_tile(scores);
      __syncthreads();
      add_product_of_rows(scores, query, seen);
      __syncthreads();
      load_tile<kWide>(seen, span(head.value, head.stride, h, from, kRows));
      weigh(first, from, factor);
      __syncthreads();
      add_product<false>(sums, weights, seen);
    }
    __syncthreads();
    store_tile<kWide>(span(output_of(y, h, block), h.width(), h, first, kRows), sums,
                      [&](int row) { return 1 / total(row, 0); });
    for (int row = threadIdx.x; row < min(kRows, h.tokens - first); row += blockDim.x) {
      statistics[std::int64_t{block} * h.tokens + first + row] = most(row, 0) + logf(total(row, 0));
    }
  }
};

/// Puts D of each head and token, the sum of dy y, into `along`; a warp has one.
template <class T>
__global__ void sum_along(float* along, const T* y, const T* dy, Heads h) {
  const int thread = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  const std::int64_t all = std::int64_t{h.blocks()} * h.tokens;
  for (std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / kWarp; i < all;
       i += std::int64_t{gridDim.x} * warps) {
    const int block = static_cast<int>(i / h.tokens), token = static_cast<int>(i % h.tokens);
    const std::int64_t at = token * h.width();
    const T *made = output_of(y, h, block) + at, *slope = output_of(dy, h, block) + at;
    float sum = 0;
    for (int c = thread; c < h.size; c += kWarp) sum += to_float(made[c]) * to_float(slope[c]);
    sum = warp_sum(sum);
    if (thread == 0) along[i] = sum;
  }
}

/// Holds, for both passes of the backward, tiles of queries, keys, values and dy, and the scores of
/// these queries and keys.
template <int kHead, int kWide, class T>
struct Backward {
  using Tiles = HeadTiles<T, kHead>;
  static constexpr int kRows = Tiles::kRows;
  static constexpr int kBytes =
      bytes_of_tiles<typename Tiles::Rows, typename Tiles::Rows, typename Tiles::Rows,
                     typename Tiles::Rows, typename Tiles::Sums, typename Tiles::Sums,
                     typename Tiles::Scores, typename Tiles::Weights, typename Tiles::Column,
                     typename Tiles::Column>();

  typename Tiles::Rows query, key, value, slope;
  typename Tiles::Sums sums, more;
  typename Tiles::Scores scores;
  typename Tiles::Weights weights;
  typename Tiles::Column statistic, along;

  __device__ explicit Backward(SharedRoom room)
      : query(room.tile<typename Tiles::Rows>()),
        key(room.tile<typename Tiles::Rows>()),
        value(room.tile<typename Tiles::Rows>()),
        slope(room.tile<typename Tiles::Rows>()),
        sums(room.tile<typename Tiles::Sums>()),
        more(room.tile<typename Tiles::Sums>()),
        scores(room.tile<typename Tiles::Scores>()),
        weights(room.tile<typename Tiles::Weights>()),
        statistic(room.tile<typename Tiles::Column>()),
        along(room.tile<typename Tiles::Column>()) {}

  __device__ void load_queries(const FusedAttentionGradient& g, const Heads& h, int block,
                               int first) const {
    const Head<const T> head(static_cast<const T*>(g.qkv), h, block);
    const T* dy = output_of(static_cast<const T*>(g.dy), h, block);
    load_tile<kWide>(query, span(head.query, head.stride, h, first, kRows));
    load_tile<kWide>(slope, span(dy, h.width(), h, first, kRows));
    for (int row = threadIdx.x; row < min(kRows, h.tokens - first); row += blockDim.x) {
      const std::int64_t at = std::int64_t{block} * h.tokens + first + row;
      statistic(row, 0) = g.statistics[at];
      along(row, 0) = g.along[at];
    }
  }

  __device__ void load_keys(const FusedAttentionGradient& g, const Heads& h, int block,
                            int from) const {
    const Head<const T> head(static_cast<const T*>(g.qkv), h, block);
    load_tile<kWide>(key, span(head.key, head.stride, h, from, kRows));
    load_tile<kWide>(value, span(head.value, head.stride, h, from, kRows));
  }

  /// Puts the softmax of queries from `first` and keys from `from` on into `weights`.
  __device__ void weigh(const Heads& h, int first, int from, float factor) const {
    clear_tile(scores);
    __syncthreads();
    add_product_of_rows(scores, query, key);
    __syncthreads();
    for (int i = threadIdx.x; i < kRows * kRows; i += blockDim.x) {
      const int row = i / kRows, column = i % kRows;
      const bool sees = first + row < h.tokens && from + column <= first + row;
      put(weights(row, column),
          sees ? expf(factor * scores(row, column) - statistic(row, 0)) : 0.0F);
      scores(row, column) = 0;
    }
    __syncthreads();
  }

  /// Turns the softmax in `weights`, which may still be read, into the gradient of the scores.
  __device__ void slope_of_scores(const Heads& h, int first, float factor) const {
    add_product_of_rows(scores, slope, value);
    __syncthreads();
    for (int i = threadIdx.x; i < kRows * kRows; i += blockDim.x) {
      const int row = i / kRows, column = i % kRows;
      const bool there = first + row < h.tokens;
      const float off = there ? scores(row, column) - along(row, 0) : 0.0F;
      put(weights(row, column), to_float(weights(row, column)) * off * factor);
    }
    __syncthreads();
  }

  /// Makes dq of queries from `first` on.
  __device__ void run_queries(const FusedAttentionGradient& g, const Heads& h, int block,
                              int first) const {
    load_queries(g, h, block, first);
    clear_tile(sums);
    for (int from = 0; from < min(first + kRows, h.tokens); from += kRows) {
      __syncthreads();
      load_keys(g, h, block, from);
      weigh(h, first, from, g.factor);
      slope_of_scores(h, first, g.factor);
      add_product<false>(sums, weights, key);
    }
    __syncthreads();
    const bool aside = g.queries != nullptr;
    T* const to = aside ? output_of(static_cast<T*>(g.queries), h, block)
                        : Head<T>(static_cast<T*>(g.dqkv), h, block).query;
    store_tile<kWide>(span(to, (aside ? 1 : 3) * h.width(), h, first, kRows), sums,
                      [](int) { return 1.0F; });
  }

  /// Makes dk and dv of keys from `from` on, which may take their places: no other block reads
  /// them.
  __device__ void run_keys(const FusedAttentionGradient& g, const Heads& h, int block,
                           int from) const {
    load_keys(g, h, block, from);
    clear_tile(sums);
    clear_tile(more);
    for (int first = from; first < h.tokens; first += kRows) {
      __syncthreads();
      load_queries(g, h, block, first);
      weigh(h, first, from, g.factor);
      add_product<true>(more, weights, slope);
      slope_of_scores(h, first, g.factor);
      add_product<true>(sums, weights, query);
    }
    __syncthreads();
    const Head<T> made(static_cast<T*>(g.dqkv), h, block);
    const auto whole = [](int) { return 1.0F; };
    store_tile<kWide>(span(made.key, made.stride, h, from, kRows), sums, whole);
    store_tile<kWide>(span(made.value, made.stride, h, from, kRows), more, whole);
  }
};

extern __shared__ __align__(128) unsigned char shared_tiles[];

template <int kHead, int kWide, class T>
__global__ void attend(T* y, float* statistics, const T* qkv, Heads h, float factor) {
  const Forward<kHead, kWide, T> pass(SharedRoom{shared_tiles});
  for_tiles(h, pass.kRows, true,
            [&](int block, int first) { pass.run(y, statistics, qkv, h, factor, block, first); });
}

template <int kHead, int kWide, class T>
__global__ void attend_query_gradient(FusedAttentionGradient g, Heads h) {
  const Backward<kHead, kWide, T> pass(SharedRoom{shared_tiles});
  for_tiles(h, pass.kRows, true,
            [&](int block, int first) { pass.run_queries(g, h, block, first); });
}

template <int kHead, int kWide, class T>
__global__ void attend_key_gradients(FusedAttentionGradient g, Heads h) {
  const Backward<kHead, kWide, T> pass(SharedRoom{shared_tiles});
  for_tiles(h, pass.kRows, false, [&](int block, int from) { pass.run_keys(g, h, block, from); });
}

/// Puts the gradients of queries, which stood aside, beside those of keys and values.
template <class T>
__global__ void place_queries(T* dqkv, const T* queries, std::int64_t rows, int width) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
      dqkv[row * 3 * width + c] = queries[row * width + c];
    }
  }
}

/// Calls `launch(element, lot, head)` with types that fit.
template <class Launch>
void with_head(const Stream& stream, const char* kernel, const Heads& h, Launch launch) {
  if (h.size > 256) {
    throw Error("fused attention on a GPU has heads of up to 256 numbers, not " +
                std::to_string(h.size) +
                "; expected more heads, or \"attention\": \"materialised\"");
  }
  with_lots(stream, kernel, h.size, [&](auto one, auto width) {
    if (h.size <= 64) {
      launch(one, width, std::integral_constant<int, 64>{});
    } else if (h.size <= 128) {
      launch(one, width, std::integral_constant<int, 128>{});
    } else {
      launch(one, width, std::integral_constant<int, 256>{});
    }
  });
}

template <class Kernel>
void allow_shared(Kernel kernel, int bytes) {
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "give a block shared memory");
}

}  // namespace

void fused_attention(const Stream& stream, void* y, float* statistics, const void* qkv,
                     const Heads& shape, float factor) {
  with_head(stream, "fused_attention", shape, [&](auto one, auto width, auto head) {
    using T = decltype(one);
    constexpr int kWide = decltype(width)::value, kHead = decltype(head)::value;
    using Pass = Forward<kHead, kWide, T>;
    allow_shared(attend<kHead, kWide, T>, Pass::kBytes);
    const std::int64_t tiles = (shape.tokens + Pass::kRows - 1) / Pass::kRows;
    const unsigned grid = grid_of(stream, tiles * shape.blocks());
    attend<kHead, kWide><<<grid, kThreads, Pass::kBytes, stream.handle>>>(
        static_cast<T*>(y), statistics, static_cast<const T*>(qkv), shape, factor);
  });
}

void fused_attention_gradient(const Stream& stream, const FusedAttentionGradient& g,
                              const Heads& shape) {
  with_head(stream, "fused_attention_gradient", shape, [&](auto one, auto width, auto head) {
    using T = decltype(one);
    constexpr int kWide = decltype(width)::value, kHead = decltype(head)::value;
    using Pass = Backward<kHead, kWide, T>;
    allow_shared(attend_query_gradient<kHead, kWide, T>, Pass::kBytes);
    allow_shared(attend_key_gradients<kHead, kWide, T>, Pass::kBytes);
    const std::int64_t rows = std::int64_t{shape.samples} * shape.tokens;
    const unsigned sums = grid_of(stream, (rows * shape.heads * kWarp + kThreads - 1) / kThreads);
    sum_along<<<sums, kThreads, 0, stream.handle>>>(g.along, static_cast<const T*>(g.y),
                                                    static_cast<const T*>(g.dy), shape);
    const std::int64_t tiles = (shape.tokens + Pass::kRows - 1) / Pass::kRows;
    const unsigned grid = grid_of(stream, tiles * shape.blocks());
    attend_query_gradient<kHead, kWide, T>
        <<<grid, kThreads, Pass::kBytes, stream.handle>>>(g, shape);
    attend_key_gradients<kHead, kWide, T>
        <<<grid, kThreads, Pass::kBytes, stream.handle>>>(g, shape);
    if (g.queries == nullptr) return;
    const int columns = static_cast<int>(shape.width());
    place_queries<<<grid_of(stream, rows), threads_of_row(columns), 0, stream.handle>>>(
        static_cast<T*>(g.dqkv), static_cast<const T*>(g.queries), rows, columns);
  });
}

}  // namespace interlock::cuda
