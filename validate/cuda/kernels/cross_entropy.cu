// Softmax and cross-entropy: a block for each row; the mean loss by one block.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

template <class T>
__global__ void softmax_loss(float* losses, T* slopes, const T* logits, const std::int32_t* targets,
                             Matrix shape) {
  __shared__ float parts[kWarp];
  const float mean_share = 1.0F / static_cast<float>(shape.rows);
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* at = logits + row * shape.columns;
    float most = -INFINITY;
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      most = fmaxf(most, to_float(at[c]));
    }
    most = block_max(most, parts);
    float sum = 0;
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      sum += expf(to_float(at[c]) - most);
    }
    sum = block_sum(sum, parts);
    const int target = targets[row];
    if (threadIdx.x == 0) losses[row] = logf(sum) + most - to_float(at[target]);
    if (slopes == nullptr) continue;
    __syncthreads();  // the target's logit has been read
    for (int c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      const float probability = expf(to_float(at[c]) - most) / sum;
      const float off = probability - (c == target ? 1.0F : 0.0F);
      put(slopes[row * shape.columns + c], off * mean_share);
    }
  }
}

__global__ void mean(float* loss, const float* losses, std::int64_t rows) {
  __shared__ float parts[kWarp];
  float sum = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) sum += losses[row];
  sum = block_sum(sum, parts);
  if (threadIdx.x == 0) *loss = sum / static_cast<float>(rows);
}

}  // namespace

void cross_entropy(const Stream& stream, float* row_losses, void* dlogits, const void* logits,
                   const std::int32_t* targets, Matrix shape) {
  with_element(stream, "cross_entropy", [&](auto one) {
    using T = decltype(one);
    softmax_loss<<<grid_of(stream, shape.rows), threads_of_row(shape.columns), 0, stream.handle>>>(
        row_losses, static_cast<T*>(dlogits), static_cast<const T*>(logits), targets, shape);
  });
}

void mean_loss(const Stream& stream, float* loss, const float* row_losses, std::int64_t rows) {
  mean<<<1, 256, 0, stream.handle>>>(loss, row_losses, rows);
  require(cudaGetLastError(), "mean_loss");
}

}  // namespace interlock::cuda
