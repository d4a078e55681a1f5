// Kernels: everything of a training step but matrix products.
// SPDX-License-Identifier: Apache-2.0
//
// Each file holds the kernels of a kind, and their launchers; plain references in double precision
// lie with the tests.
// Tensors are row-major matrices of the stream's element type; gain, shift and bias are of that
// type too, statistics, losses and states of optimisers are fp32, as is every sum. Gradients of
// weights are added to what is there, those of activations replace it. No kernel uses atomics, and
// how a sum is cut into parts depends on its shape alone, so that results are bitwise the same on
// any number of multiprocessors. Scratch is fp32, as many numbers as *_scratch() says.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "validate/executors/cuda_options.h"
#include "validate/stage/shard.h"

namespace interlock::cuda {

enum class Element { Fp32, Bf16 };
inline std::int64_t bytes_of(Element element) { return element == Element::Fp32 ? 4 : 2; }

/// The place where kernels run: a stream, the multiprocessors behind it, and what tensors are made
/// of.
struct Stream {
  cudaStream_t handle = nullptr;
  int sms = 1;
  Element element = Element::Fp32;
};

struct Matrix {
  std::int64_t rows = 1;
  int columns = 1;
  std::int64_t size() const { return rows * columns; }
};

// elementwise.cu: y may be one of the inputs.
void gelu(const Stream& stream, void* y, const void* x, std::int64_t size);
void gelu_gradient(const Stream& stream, void* dx, const void* x, const void* dy,
                   std::int64_t size);
void relu(const Stream& stream, void* y, const void* x, std::int64_t size);
void relu_gradient(const Stream& stream, void* dx, const void* y, const void* dy,
                   std::int64_t size);
void add(const Stream& stream, void* y, const void* a, const void* b, std::int64_t size);
void add_rows(const Stream& stream, void* y, const void* x, const void* row, Matrix shape);
void scale_rows(const Stream& stream, void* y, const void* x, const void* row, Matrix shape);
void scale(const Stream& stream, void* y, const void* x, float factor, std::int64_t size);
void from_fp32(const Stream& stream, void* y, const float* x, std::int64_t size);
void to_fp32(const Stream& stream, float* y, const void* x, std::int64_t size);

// embedding.cu. `order`: rows sorted by their token, those of one token in order. Example: tokens
// {5, 3, 5} have the order {1, 0, 2}.
struct Lookup {
  const std::int32_t* tokens = nullptr;  // (rows)
  const std::int32_t* order = nullptr;   // (rows)
  int positions = 0;                     // rows of a sample that have places; 0: none have
};
void embed(const Stream& stream, void* y, const void* table, const void* places,
           const Lookup& lookup, Matrix shape);
struct EmbeddingGradients {
  void *dtable = nullptr, *dplaces = nullptr;
};
void embed_gradient(const Stream& stream, const EmbeddingGradients& to, const void* dy,
                    const Lookup& lookup, Matrix shape, float* scratch);
std::int64_t embed_scratch(Matrix shape);

// layer_norm.cu, batch_norm.cu: y = (x - mean) / deviation * gain + shift, over a row or a column.
inline constexpr float kNormEpsilon = 1e-5F;
struct NormGradients {
  void* dx = nullptr;  // nothing: not wanted
  void *dgain = nullptr, *dshift = nullptr;
};
void layer_norm(const Stream& stream, void* y, const void* x, const void* gain, const void* shift,
                Matrix shape);
void layer_norm_gradient(const Stream& stream, const NormGradients& to, const void* x,
                         const void* gain, const void* dy, Matrix shape, float* scratch);
void batch_norm(const Stream& stream, void* y, const void* x, const void* gain, const void* shift,
                Matrix shape, float* scratch);
void batch_norm_gradient(const Stream& stream, const NormGradients& to, const void* x,
                         const void* gain, const void* dy, Matrix shape, float* scratch);
std::int64_t norm_scratch(Matrix shape);

// causal_softmax.cu: (matrices, tokens, tokens), in place; row i knows columns 0..i.
void causal_softmax(const Stream& stream, void* scores, float factor, Matrix shape);
void causal_softmax_gradient(const Stream& stream, void* dscores, const void* weights, float factor,
                             Matrix shape);

// cross_entropy.cu: the loss of each row and, unless `dlogits` is null, the gradient of their mean;
// it may take the place of the logits.
void cross_entropy(const Stream& stream, float* row_losses, void* dlogits, const void* logits,
                   const std::int32_t* targets, Matrix shape);
void mean_loss(const Stream& stream, float* loss, const float* row_losses, std::int64_t rows);

// column_gradients.cu: in two stages, parts of the rows and then their sums.
void bias_gradient(const Stream& stream, void* dbias, const void* dy, Matrix shape, float* scratch);
void scale_gradient(const Stream& stream, void* dweight, const void* x, const void* dy,
                    Matrix shape, float* scratch);
std::int64_t column_scratch(Matrix shape, int sums);

// patches.cu: the numbers that a square kernel with zeros around reads for each pixel, (ky, kx,
// channel). Example: for an image of 4 x 4 pixels and 3 channels, kernel 3 and stride 2, made() is
// (4, 27).
struct Patches {
  int samples = 1, rows = 1, columns = 1, channels = 1;  // of the images
  int kernel = 1, stride = 1;
  int made_rows() const { return (rows + stride - 1) / stride; }
  int made_columns() const { return (columns + stride - 1) / stride; }
  Matrix made() const {
    return {std::int64_t{samples} * made_rows() * made_columns(), kernel * kernel * channels};
  }
};
void gather_patches(const Stream& stream, void* patches, const void* images, const Patches& shape);
void gather_patches_gradient(const Stream& stream, void* dimages, const void* dpatches,
                             const Patches& shape);

// average_pool.cu: `shape` is that of the output, of `pixels` pixels each.
void average_pool(const Stream& stream, void* y, const void* x, Matrix shape, int pixels);
void average_pool_gradient(const Stream& stream, void* dx, const void* dy, Matrix shape,
                           int pixels);

// descent.cu. The gradient is multiplied by `share` first, and is zero afterwards.
struct DescentStep {
  int kind = 0;  // 0: plain, 1: momentum, 2: AdamW
  float share = 1, rate = 0, momentum = 0, decay = 0;
  float beta1 = 0, beta2 = 0, epsilon = 0;
  float unbias1 = 1, unbias2 = 1;  // 1 / (1 - beta^t)
};
struct DescentState {
  void *weights = nullptr, *gradients = nullptr;
  float* masters = nullptr;  // fp32 weights behind those of another type
  float *first = nullptr, *second = nullptr;
};
void descend(const Stream& stream, const DescentState& state, const DescentStep& step,
             std::int64_t size);

// replicas.cu: the mean of a part of equal blocks of one GPU, added up in their order. All get it,
// or `keeper` alone, and the others zeros. REQUIRES: at most kMostReplicas.
void average_replicas(const Stream& stream, const std::vector<void*>& replicas, NumberRange part,
                      int keeper = -1);

}  // namespace interlock::cuda
