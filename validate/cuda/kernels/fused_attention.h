// Fused causal attention: a kernel that stores no scores.
// SPDX-License-Identifier: Apache-2.0
//
// qkv (samples, tokens, 3, heads, size) has queries, keys and values side by side; y has the shape
// (samples, tokens, heads, size). Heads have up to 256 numbers.
//
// Example: Heads {samples 2, tokens 1024, heads 16, size 64} have a width() of 1,024 and 32
// blocks(). qkv has 2 x 1,024 x 3 x 16 x 64 = 6,291,456 numbers, the statistics 2 x 16 x 1,024 =
// 32,768.
#pragma once

#include "validate/cuda/kernels/kernels.h"

namespace interlock::cuda {

struct Heads {
  int samples = 1, tokens = 1, heads = 1, size = 1;
  __host__ __device__ std::int64_t width() const { return std::int64_t{heads} * size; }
  __host__ __device__ int blocks() const { return samples * heads; }
};
/// Computes y and `statistics` (samples, heads, tokens), the logarithm of each row's sum of
/// exponentials, which the gradient needs.
void fused_attention(const Stream& stream, void* y, float* statistics, const void* qkv,
                     const Heads& shape, float factor);

struct FusedAttentionGradient {
  const void *qkv = nullptr, *y = nullptr, *dy = nullptr;
  const float* statistics = nullptr;
  void* dqkv = nullptr;     // may be qkv: then `queries` is needed
  void* queries = nullptr;  // scratch, of the shape of y: gradients of queries, until placed
  float* along = nullptr;   // scratch, of the shape of the statistics
  float factor = 1;         // of the scores
};
void fused_attention_gradient(const Stream& stream, const FusedAttentionGradient& gradient,
                              const Heads& shape);

}  // namespace interlock::cuda
