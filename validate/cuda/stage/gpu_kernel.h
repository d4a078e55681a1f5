// GpuKernel: one step of a plan with what it works on, as the kernels of its layer see it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/cuda/stage/gpu_steps.h"

namespace interlock::cuda {

struct GpuKernel {
  const KernelContext& context;
  const Step& step;
  const StageTensors& on;
  const GpuBatch& batch;

  const Stream& stream() const { return context.stream; }
  const Layer& layer() const { return *step.layer; }
  std::int64_t element() const { return bytes_of(context.stream.element); }
  char* at(const Tensor& tensor) const {
    return on.places[static_cast<std::size_t>(tensor.place)] + tensor.offset;
  }
  char* weight(int which = 0) const { return (*on.weights)[number(which)]; }
  char* gradient(int which = 0) const { return (*on.gradients)[number(which)]; }
  std::size_t number(int which) const {
    return static_cast<std::size_t>(step.parameter) + static_cast<std::size_t>(which);
  }
  /// Returns room for `bytes` beside the blocks of the plan.
  char* scratch(std::int64_t bytes) const { return context.scratch->take(bytes, stream().handle); }
  float* sums(std::int64_t numbers) const {
    return reinterpret_cast<float*>(scratch(numbers * static_cast<std::int64_t>(sizeof(float))));
  }
  void multiply(ProductShape shape, const ProductOperands& operands) const {
    shape.element = stream().element;
    shape.sms = context.planned_sms;
    context.products->run(stream(), shape, operands);
  }
};

inline Matrix shape_of(const Tensor& tensor) { return {tensor.rows, tensor.columns}; }

// gpu_products.cc: layers that are products, or many small ones.
void linear_forward(const GpuKernel& k);
void linear_input_gradient(const GpuKernel& k);
void linear_weight_gradient(const GpuKernel& k);
void convolution_forward(const GpuKernel& k);
void convolution_input_gradient(const GpuKernel& k);
void convolution_weight_gradient(const GpuKernel& k);
void attention_forward(const GpuKernel& k);
void attention_gradient(const GpuKernel& k);
// Their parts, which calibration times one by one.
void attention_scores(const GpuKernel& k);
void attention_values(const GpuKernel& k);
/// The gradient of the scores, and the queries while their place is taken.
struct AttentionScratch {
  char *slopes = nullptr, *queries = nullptr;
};
AttentionScratch attention_scratch(const GpuKernel& k);
void set_queries_aside(const GpuKernel& k, const AttentionScratch& scratch);
void attention_value_gradients(const GpuKernel& k, const AttentionScratch& scratch);
void attention_score_gradients(const GpuKernel& k, const AttentionScratch& scratch);

}  // namespace interlock::cuda
