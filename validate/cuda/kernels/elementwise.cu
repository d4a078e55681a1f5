// Elementwise: activations, sums of tensors, rows added or multiplied, casts.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

// sqrt(2 / pi) and 0.044715 of the tanh form: Hendrycks and Gimpel, arXiv 1606.08415.
constexpr double kGeluRoot = 0.79788456080286535588, kGeluCube = 0.044715;

struct Gelu {
  __device__ float operator()(float x, float) const {
    const float root = static_cast<float>(kGeluRoot), cube = static_cast<float>(kGeluCube);
    return 0.5F * x * (1 + tanhf(root * (x + cube * x * x * x)));
  }
};
struct GeluGradient {
  __device__ float operator()(float x, float dy) const {
    const float root = static_cast<float>(kGeluRoot), cube = static_cast<float>(kGeluCube);
    const float t = tanhf(root * (x + cube * x * x * x));
    return dy * (0.5F * (1 + t) + 0.5F * x * (1 - t * t) * root * (1 + 3 * cube * x * x));
  }
};
struct Relu {
  // Not fmaxf, which would hide what is not a number.
  __device__ float operator()(float x, float) const { return x < 0 ? 0.0F : x; }
};
struct ReluGradient {
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : 0.0F; }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Multiply {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Scale {
  float factor;
  __device__ float operator()(float x, float) const { return factor * x; }
};

/// y = f(a, b), where b is as large as a, or a row of `columns` numbers, or nothing. Whole packs
/// first, as many as `packs`; the last elements one by one.
template <class T, class F>
__global__ void map(T* y, const T* a, const T* b, std::int64_t size, std::int64_t packs,
                    int columns, F f) {
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const bool row = b != nullptr && columns > 0;
  for (std::int64_t i = first; i < packs; i += step) {
    const Pack<T> from = reinterpret_cast<const Pack<T>*>(a)[i];
    Pack<T> with = {}, to;
    if (b != nullptr) {
      const std::int64_t place = row ? i % (columns / Pack<T>::kSize) : i;
      with = reinterpret_cast<const Pack<T>*>(b)[place];
    }
    for (int k = 0; k < Pack<T>::kSize; ++k) {
      put(to.at[k], f(to_float(from.at[k]), to_float(with.at[k])));
    }
    reinterpret_cast<Pack<T>*>(y)[i] = to;
  }
  for (std::int64_t i = packs * Pack<T>::kSize + first; i < size; i += step) {
    const float with = b == nullptr ? 0.0F : to_float(b[row ? i % columns : i]);
    put(y[i], f(to_float(a[i]), with));
  }
}

bool is_aligned(const void* tensor) { return reinterpret_cast<std::uintptr_t>(tensor) % 16 == 0; }

struct Operands {
  void* y = nullptr;
  const void *a = nullptr, *b = nullptr;
};

template <class F>
void launch_map(const Stream& stream, const char* name, const Operands& on, Matrix shape, F f) {
  // `columns` of 0: not a row.
  const std::int64_t size = shape.columns > 0 ? shape.size() : shape.rows;
  if (size == 0) return;
  with_element(stream, name, [&](auto one) {
    using T = decltype(one);
    // Tensors may lie anywhere, and a pack must not reach over the end of a row.
    const bool packed = is_aligned(on.y) && is_aligned(on.a) && is_aligned(on.b) &&
                        shape.columns % Pack<T>::kSize == 0;
    const std::int64_t packs = packed ? size / Pack<T>::kSize : 0;
    const std::int64_t tasks = packed ? packs + Pack<T>::kSize : size;
    map<T><<<grid_of(stream, (tasks + kThreads - 1) / kThreads), kThreads, 0, stream.handle>>>(
        static_cast<T*>(on.y), static_cast<const T*>(on.a), static_cast<const T*>(on.b), size,
        packs, shape.columns, f);
  });
}

template <class To, class From>
__global__ void cast(To* y, const From* x, std::int64_t size) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    put(y[i], to_float(x[i]));
  }
}

}  // namespace

void gelu(const Stream& stream, void* y, const void* x, std::int64_t size) {
  launch_map(stream, "gelu", {y, x}, {size, 0}, Gelu{});
}

void gelu_gradient(const Stream& stream, void* dx, const void* x, const void* dy,
                   std::int64_t size) {
  launch_map(stream, "gelu_gradient", {dx, x, dy}, {size, 0}, GeluGradient{});
}

void relu(const Stream& stream, void* y, const void* x, std::int64_t size) {
  launch_map(stream, "relu", {y, x}, {size, 0}, Relu{});
}

void relu_gradient(const Stream& stream, void* dx, const void* y, const void* dy,
                   std::int64_t size) {
  launch_map(stream, "relu_gradient", {dx, y, dy}, {size, 0}, ReluGradient{});
}

void add(const Stream& stream, void* y, const void* a, const void* b, std::int64_t size) {
  launch_map(stream, "add", {y, a, b}, {size, 0}, Add{});
}

void add_rows(const Stream& stream, void* y, const void* x, const void* row, Matrix shape) {
  launch_map(stream, "add_rows", {y, x, row}, shape, Add{});
}

void scale_rows(const Stream& stream, void* y, const void* x, const void* row, Matrix shape) {
  launch_map(stream, "scale_rows", {y, x, row}, shape, Multiply{});
}

void scale(const Stream& stream, void* y, const void* x, float factor, std::int64_t size) {
  launch_map(stream, "scale", {y, x}, {size, 0}, Scale{factor});
}

void from_fp32(const Stream& stream, void* y, const float* x, std::int64_t size) {
  with_element(stream, "from_fp32", [&](auto one) {
    using T = decltype(one);
    cast<<<grid_of(stream, (size + 255) / 256), 256, 0, stream.handle>>>(static_cast<T*>(y), x,
                                                                         size);
  });
}

void to_fp32(const Stream& stream, float* y, const void* x, std::int64_t size) {
  with_element(stream, "to_fp32", [&](auto one) {
    using T = decltype(one);
    cast<<<grid_of(stream, (size + 255) / 256), 256, 0, stream.handle>>>(
        y, static_cast<const T*>(x), size);
  });
}

}  // namespace interlock::cuda
