// Embedding: rows of a table by token and by place; gradients without atomics.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a token's row is the sum over the positions that read it. Positions come sorted
// by token, so a block that stands at the first of a token adds up the whole run, in order.
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

template <class T>
__global__ void add_by_token(T* dtable, const T* dy, Lookup lookup, Matrix shape) {
  for (std::int64_t first = blockIdx.x; first < shape.rows; first += gridDim.x) {
    const std::int32_t token = lookup.tokens[lookup.order[first]];
    if (first > 0 && lookup.tokens[lookup.order[first - 1]] == token) continue;
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      float sum = 0;
      for (std::int64_t i = first; i < shape.rows; ++i) {
        const std::int64_t row = lookup.order[i];
        if (lookup.tokens[row] != token) break;
        sum += to_float(dy[row * shape.columns + c]);
      }
      T& to = dtable[std::int64_t{token} * shape.columns + c];
      put(to, to_float(to) + sum);
    }
  }
}

template <class T>
__global__ void add_by_place(T* dplaces, const T* dy, int positions, Matrix shape) {
  for (std::int64_t place = blockIdx.x; place < positions; place += gridDim.x) {
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      float sum = 0;
      for (std::int64_t row = place; row < shape.rows; row += positions) {
        sum += to_float(dy[row * shape.columns + c]);
      }
      T& to = dplaces[place * shape.columns + c];
      put(to, to_float(to) + sum);
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

void embed_gradient(const Stream& stream, void* dtable, void* dplaces, const void* dy,
                    const Lookup& lookup, Matrix shape) {
  with_element(stream, "embed_gradient", [&](auto one) {
    using T = decltype(one);
    add_by_token<<<grid_of(stream, shape.rows), threads_of_row(shape.columns), 0, stream.handle>>>(
        static_cast<T*>(dtable), static_cast<const T*>(dy), lookup, shape);
    if (lookup.positions == 0) return;
    add_by_place<<<grid_of(stream, lookup.positions), threads_of_row(shape.columns), 0,
                   stream.handle>>>(static_cast<T*>(dplaces), static_cast<const T*>(dy),
                                    lookup.positions, shape);
  });
}

}  // namespace interlock::cuda
