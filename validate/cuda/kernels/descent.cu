// Gradient descent: plain, with momentum, AdamW; fp32 masters behind weights of another type.
// SPDX-License-Identifier: Apache-2.0
//
// Decay of the first two is L2 and goes through the momentum; AdamW's is apart from the gradient
// (Loshchilov and Hutter, arXiv 1711.05101).
#include <cmath>

#include "validate/cuda/kernels/element.cuh"

namespace interlock::cuda {

namespace {

template <class T>
__global__ void step_down(DescentState state, DescentStep step, std::int64_t size) {
  T* weights = static_cast<T*>(state.weights);
  T* gradients = static_cast<T*>(state.gradients);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += stride) {
    float weight = state.masters != nullptr ? state.masters[i] : to_float(weights[i]);
    float gradient = to_float(gradients[i]) * step.share;
    if (step.kind == 2) {
      const float first = step.beta1 * state.first[i] + (1 - step.beta1) * gradient;
      const float second = step.beta2 * state.second[i] + (1 - step.beta2) * gradient * gradient;
      state.first[i] = first;
      state.second[i] = second;
      const float down = first * step.unbias1 / (sqrtf(second * step.unbias2) + step.epsilon);
      weight -= step.rate * (down + step.decay * weight);
    } else {
      gradient += step.decay * weight;
      if (step.kind == 1) {
        gradient += step.momentum * state.first[i];
        state.first[i] = gradient;
      }
      weight -= step.rate * gradient;
    }
    if (state.masters != nullptr) state.masters[i] = weight;
    put(weights[i], weight);
    put(gradients[i], 0.0F);
  }
}

}  // namespace

void descend(const Stream& stream, const DescentState& state, const DescentStep& step,
             std::int64_t size) {
  with_element(stream, "descend", [&](auto one) {
    using T = decltype(one);
    step_down<T><<<grid_of(stream, (size + kThreads - 1) / kThreads), kThreads, 0, stream.handle>>>(
        state, step, size);
  });
}

}  // namespace interlock::cuda
