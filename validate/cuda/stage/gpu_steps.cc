// GpuSteps: which kernels a layer means on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_steps.h"

#include "base/error.h"
#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/stage/gpu_kernel.h"

namespace interlock::cuda {

namespace {

/// Writes sums beside `to`, if they shall be added to it: such kernels replace what they write.
template <class Write>
void add_or_replace(const GpuKernel& k, const Tensor& to, std::int64_t sums, Write write) {
  const std::int64_t own = (sums * static_cast<std::int64_t>(sizeof(float)) + 255) / 256 * 256;
  char* scratch = k.scratch(own + (k.step.accumulate ? to.size() * k.element() : 0));
  auto* numbers = reinterpret_cast<float*>(scratch);
  if (!k.step.accumulate) return write(k.at(to), numbers);
  write(scratch + own, numbers);
  add(k.stream(), k.at(to), k.at(to), scratch + own, to.size());
}

void loss_forward(const GpuKernel& k) {
  const Matrix shape = shape_of(k.step.x);
  float* rows = k.sums(shape.rows);
  cross_entropy(k.stream(), rows, nullptr, k.at(k.step.x), k.batch.targets, shape);
  mean_loss(k.stream(), k.batch.loss, rows, shape.rows);
}

void loss_gradient(const GpuKernel& k) {
  const Matrix shape = shape_of(k.step.x);
  cross_entropy(k.stream(), k.sums(shape.rows), k.at(k.step.dx), k.at(k.step.x), k.batch.targets,
                shape);
}

Lookup lookup_of(const GpuKernel& k) {
  return {k.batch.tokens, k.batch.order, k.layer().positions > 0 ? k.on.rows_per_sample : 0};
}

void run_forward(const GpuKernel& k) {
  const Step& s = k.step;
  const Matrix x = shape_of(s.x);
  switch (k.layer().kind) {
    case LayerKind::Scale:
      return scale_rows(k.stream(), k.at(s.y), k.at(s.x), k.weight(), x);
    case LayerKind::Embedding:
      return embed(k.stream(), k.at(s.y), k.weight(),
                   k.layer().positions > 0 ? k.weight(1) : nullptr, lookup_of(k), shape_of(s.y));
    case LayerKind::Linear:
      return linear_forward(k);
    case LayerKind::LayerNorm:
      return layer_norm(k.stream(), k.at(s.y), k.at(s.x), k.weight(), k.weight(1), x);
    case LayerKind::BatchNorm:
      return add_or_replace(k, s.y, norm_scratch(x), [&](void* y, float* sums) {
        batch_norm(k.stream(), y, k.at(s.x), k.weight(), k.weight(1), x, sums);
      });
    case LayerKind::Gelu:
      return gelu(k.stream(), k.at(s.y), k.at(s.x), s.x.size());
    case LayerKind::Relu:
      return relu(k.stream(), k.at(s.y), k.at(s.x), s.x.size());
    case LayerKind::Attention:
      return attention_forward(k);
    case LayerKind::Convolution:
      return convolution_forward(k);
    case LayerKind::AveragePool:
      return average_pool(k.stream(), k.at(s.y), k.at(s.x), shape_of(s.y),
                          k.layer().rows * k.layer().columns);
    case LayerKind::CrossEntropy:
      return loss_forward(k);
    case LayerKind::Goodness:
    case LayerKind::Residual:
    case LayerKind::Coupling:
      break;
  }
  CHECK(false, "a residual layer is planned as its parts");
}

void norm_gradient(const GpuKernel& k, const NormGradients& to, float* sums) {
  const Step& s = k.step;
  const bool rows = k.layer().kind == LayerKind::LayerNorm;
  (rows ? layer_norm_gradient : batch_norm_gradient)(k.stream(), to, k.at(s.x), k.weight(),
                                                     k.at(s.y), shape_of(s.x), sums);
}

void pool_gradient(const GpuKernel& k) {
  const Step& s = k.step;
  const int pixels = k.layer().rows * k.layer().columns;
  if (!s.rectified) {
    return average_pool_gradient(k.stream(), k.at(s.dx), k.at(s.y), shape_of(s.y), pixels);
  }
  // dx may be x, which says where the gradient passes.
  char* spread = k.scratch(s.dx.size() * k.element());
  average_pool_gradient(k.stream(), spread, k.at(s.y), shape_of(s.y), pixels);
  relu_gradient(k.stream(), k.at(s.dx), k.at(s.x), spread, s.dx.size());
}

void run_input_gradient(const GpuKernel& k) {
  const Step& s = k.step;
  switch (k.layer().kind) {
    case LayerKind::Scale:
      return scale_rows(k.stream(), k.at(s.dx), k.at(s.y), k.weight(), shape_of(s.y));
    case LayerKind::Linear:
      return linear_input_gradient(k);
    case LayerKind::LayerNorm:
    case LayerKind::BatchNorm:
      return add_or_replace(k, s.dx, norm_scratch(shape_of(s.x)),
                            [&](void* dx, float* sums) { norm_gradient(k, {.dx = dx}, sums); });
    case LayerKind::Gelu:
      return gelu_gradient(k.stream(), k.at(s.dx), k.at(s.x), k.at(s.y), s.x.size());
    case LayerKind::Attention:
      return attention_gradient(k);
    case LayerKind::Convolution:
      return convolution_input_gradient(k);
    case LayerKind::AveragePool:
      return pool_gradient(k);
    case LayerKind::CrossEntropy:
      return loss_gradient(k);
    case LayerKind::Embedding:
    case LayerKind::Relu:
    case LayerKind::Goodness:
    case LayerKind::Residual:
    case LayerKind::Coupling:
      break;
  }
  CHECK(false, "a layer that has an input gradient of its own");
}

void run_weight_gradient(const GpuKernel& k) {
  const Step& s = k.step;
  switch (k.layer().kind) {
    case LayerKind::Scale:
      return scale_gradient(k.stream(), k.gradient(), k.at(s.x), k.at(s.y), shape_of(s.x),
                            k.sums(column_scratch(shape_of(s.x), 1)));
    case LayerKind::Embedding:
      return embed_gradient(
          k.stream(), {k.gradient(), k.layer().positions > 0 ? k.gradient(1) : nullptr}, k.at(s.y),
          lookup_of(k), shape_of(s.y), k.sums(embed_scratch(shape_of(s.y))));
    case LayerKind::Linear:
      return linear_weight_gradient(k);
    case LayerKind::LayerNorm:
    case LayerKind::BatchNorm:
      return norm_gradient(k, {.dgain = k.gradient(), .dshift = k.gradient(1)},
                           k.sums(norm_scratch(shape_of(s.x))));
    case LayerKind::Convolution:
      return convolution_weight_gradient(k);
    default:
      break;
  }
  CHECK(false, "a layer that has weights");
}

void run_step(const GpuKernel& k) {
  const Step& s = k.step;
  switch (s.kind) {
    case StepKind::Forward:
      return run_forward(k);
    case StepKind::BackwardInput:
      return run_input_gradient(k);
    case StepKind::BackwardWeight:
      return run_weight_gradient(k);
    case StepKind::Add:
      return add(k.stream(), k.at(s.dx), k.at(s.dx), k.at(s.x), s.x.size());
    case StepKind::Copy:
    case StepKind::Less:
      break;
    case StepKind::Mask:
      return relu_gradient(k.stream(), k.at(s.dx), k.at(s.x), k.at(s.dx), s.x.size());
  }
  CHECK(false, "couplings are trained on CPUs");
}

}  // namespace

Scratch::~Scratch() { cudaFree(data_); }

char* Scratch::take(std::int64_t bytes, cudaStream_t stream) {
  if (bytes <= bytes_) return data_;
  require(cudaStreamSynchronize(stream), "run");
  cudaFree(data_);
  data_ = nullptr;
  bytes_ = 0;
  data_ = static_cast<char*>(allocate(bytes, "what kernels need beside their tensors"));
  bytes_ = bytes;
  return data_;
}

void run_steps(const KernelContext& context, const std::vector<Step>& steps,
               const StageTensors& tensors, const GpuBatch& batch, StepPart part) {
  for (const Step& step : steps) {
    if (part != StepPart::All && step.late != (part == StepPart::Late)) continue;
    run_step({context, step, tensors, batch});
  }
}

}  // namespace interlock::cuda
