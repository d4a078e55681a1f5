// The interpreter of steps: which kernel a layer means.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_steps.h"

#include "base/error.h"
#include "validate/cpu/layers/attention_kernels.h"
#include "validate/cpu/layers/dense_kernels.h"
#include "validate/cpu/layers/goodness_kernels.h"
#include "validate/cpu/layers/norm_kernels.h"
#include "validate/cpu/layers/spatial_kernels.h"

namespace interlock {
namespace {

/// One step and what it works on.
template <class T>
struct LayerKernel {
  const Step& step;
  const StageTensors& on;
  const std::int32_t* targets;

  T* at(const Tensor& tensor) const {
    char* const begin = on.places[static_cast<std::size_t>(tensor.place)];
    CHECK(begin != nullptr, "a step works on blocks that are there");
    return reinterpret_cast<T*>(begin + tensor.offset) + tensor.first_column;
  }
  static Eigen::OuterStride<> stride(const Tensor& tensor) {
    return Eigen::OuterStride<>(tensor.stride > 0 ? tensor.stride : tensor.columns);
  }
  StridedView<T> columns(const Tensor& tensor) const {
    return {at(tensor), tensor.rows, tensor.columns, stride(tensor)};
  }
  ConstStridedView<T> read_columns(const Tensor& tensor) const {
    return {at(tensor), tensor.rows, tensor.columns, stride(tensor)};
  }
  MatrixView<T> view(const Tensor& tensor) const {
    return {at(tensor), tensor.rows, tensor.columns};
  }
  ConstMatrixView<T> read(const Tensor& tensor) const {
    return {at(tensor), tensor.rows, tensor.columns};
  }
  const std::int64_t* tokens() const {
    return reinterpret_cast<const std::int64_t*>(at(step.x));  // what the block was filled with
  }
  const Layer& layer() const { return *step.layer; }
  std::size_t number(std::size_t which) const {
    return static_cast<std::size_t>(step.parameter) + which;
  }
  const T* weight(std::size_t which = 0) const {
    return reinterpret_cast<const T*>((*on.weights)[number(which)]);
  }
  T* gradient(std::size_t which = 0) const {
    return reinterpret_cast<T*>((*on.gradients)[number(which)]);
  }
  ConstMatrixView<T> matrix() const { return {weight(), layer().inputs, layer().outputs}; }
  MatrixView<T> matrix_gradient() const { return {gradient(), layer().inputs, layer().outputs}; }
  AttentionShape attention() const {
    return {layer().positions, layer().heads, layer().outputs / layer().heads};
  }
  ConvolutionSizes convolution() const {
    return {on.samples,      layer().rows,   layer().columns, layer().inputs,
            layer().outputs, layer().kernel, layer().stride};
  }
  int pixels() const { return layer().rows * layer().columns; }
};

template <class T>
void product_forward(const LayerKernel<T>& k) {
  const Step& s = k.step;
  const T* bias = k.layer().bias ? k.weight(1) : nullptr;
  if (s.y.stride > 0) return linear_forward<T>(k.read(s.x), k.matrix(), bias, k.columns(s.y));
  linear_forward<T>(k.read(s.x), k.matrix(), bias, k.view(s.y));
}

template <class T>
void product_backward_input(const LayerKernel<T>& k) {
  const Step& s = k.step;
  if (s.y.stride > 0) {
    return linear_backward_input<T>(k.read_columns(s.y), k.matrix(), k.view(s.dx), s.accumulate);
  }
  linear_backward_input<T>(k.read(s.y), k.matrix(), k.view(s.dx), s.accumulate);
}

template <class T>
void product_backward_weight(const LayerKernel<T>& k) {
  const Step& s = k.step;
  T* bias = k.layer().bias ? k.gradient(1) : nullptr;
  if (s.y.stride > 0) {
    return linear_backward_weight<T>(k.read(s.x), k.read_columns(s.y), k.matrix_gradient(), bias);
  }
  linear_backward_weight<T>(k.read(s.x), k.read(s.y), k.matrix_gradient(), bias);
}

template <class T>
double run_forward(const LayerKernel<T>& k) {
  const Step& s = k.step;
  switch (k.layer().kind) {
    case LayerKind::Scale:
      scale_forward<T>(k.read(s.x), k.weight(), k.view(s.y));
      return 0;
    case LayerKind::Embedding:
      embedding_forward<T>(k.tokens(), k.matrix(), k.layer().positions > 0 ? k.weight(1) : nullptr,
                           k.on.rows_per_sample, k.view(s.y));
      return 0;
    case LayerKind::Linear:
      product_forward(k);
      return 0;
    case LayerKind::LayerNorm:
      layer_norm_forward<T>(k.read_columns(s.x), k.weight(), k.weight(1), k.view(s.y));
      return 0;
    case LayerKind::BatchNorm:
      batch_norm_forward<T>(k.read(s.x), {k.weight(), k.weight(1)}, k.view(s.y), s.accumulate);
      return 0;
    case LayerKind::Gelu:
      gelu_forward<T>(k.read(s.x), k.view(s.y));
      return 0;
    case LayerKind::Relu:
      relu_forward<T>(k.view(s.y));
      return 0;
    case LayerKind::Attention:
      if (k.layer().fused) {
        fused_attention_forward<T>(k.attention(), k.read(s.x), k.at(s.statistics), k.view(s.y));
      } else {
        attention_forward<T>(k.attention(), k.read(s.x), k.view(s.probabilities), k.view(s.y));
      }
      return 0;
    case LayerKind::Convolution:
      convolution_forward<T>(k.convolution(), k.at(s.x), k.weight(),
                             k.layer().bias ? k.weight(1) : nullptr, k.at(s.y));
      return 0;
    case LayerKind::AveragePool:
      average_pool_forward<T>(k.read(s.x), k.pixels(), k.view(s.y));
      return 0;
    case LayerKind::Goodness:
      return goodness_forward<T>(k.read(s.x), k.view(s.y));
    case LayerKind::CrossEntropy:
      return cross_entropy_forward<T>(k.read(s.x), k.targets);
    case LayerKind::Residual:
    case LayerKind::Coupling:
      break;
  }
  CHECK(false, "a residual layer, or a coupling, is planned as its parts");
}

template <class T>
void run_backward_input(const LayerKernel<T>& k) {
  const Step& s = k.step;
  switch (k.layer().kind) {
    case LayerKind::Scale:
      return scale_backward_input<T>(k.read(s.y), k.weight(), k.view(s.dx));
    case LayerKind::Linear:
      return product_backward_input(k);
    case LayerKind::LayerNorm:
      return layer_norm_backward_input<T>(k.read_columns(s.x), k.weight(), k.read(s.y),
                                          k.columns(s.dx), s.accumulate);
    case LayerKind::BatchNorm:
      return batch_norm_backward_input<T>(k.read(s.x), k.weight(), k.read(s.y), k.view(s.dx));
    case LayerKind::Gelu:
      return gelu_backward_input<T>(k.read(s.x), k.read(s.y), k.view(s.dx));
    case LayerKind::Attention:
      if (k.layer().fused) {
        return fused_attention_backward_input<T>(
            k.attention(), {k.read(s.x), k.read(s.y), k.at(s.statistics), k.view(s.dx)});
      }
      return attention_backward_input<T>(
          k.attention(),
          {k.read(s.x), k.read(s.probabilities), k.read(s.y), k.view(s.dx), k.at(s.scratch)});
    case LayerKind::Convolution:
      return convolution_backward_input<T>(k.convolution(), k.at(s.y), k.weight(), k.at(s.dx),
                                           s.accumulate);
    case LayerKind::AveragePool:
      return average_pool_backward_input<T>(k.read(s.x), k.read(s.y), k.pixels(), s.rectified,
                                            k.view(s.dx));
    case LayerKind::Goodness:
      return goodness_backward<T>(k.read(s.x), k.view(s.dx));
    case LayerKind::CrossEntropy:
      return cross_entropy_backward<T>(k.read(s.x), k.targets, k.view(s.dx));
    case LayerKind::Embedding:
    case LayerKind::Relu:
    case LayerKind::Residual:
    case LayerKind::Coupling:
      break;
  }
  CHECK(false, "a layer that has an input gradient of its own");
}

template <class T>
void run_backward_weight(const LayerKernel<T>& k) {
  const Step& s = k.step;
  switch (k.layer().kind) {
    case LayerKind::Scale:
      return scale_backward_weight<T>(k.read(s.x), k.read(s.y), k.gradient());
    case LayerKind::Embedding:
      return embedding_backward_weight<T>(k.tokens(), k.read(s.y), k.matrix_gradient(),
                                          k.layer().positions > 0 ? k.gradient(1) : nullptr,
                                          k.on.rows_per_sample);
    case LayerKind::Linear:
      return product_backward_weight(k);
    case LayerKind::LayerNorm:
      return layer_norm_backward_weight<T>(k.read_columns(s.x), k.read(s.y), k.gradient(),
                                           k.gradient(1));
    case LayerKind::BatchNorm:
      return batch_norm_backward_weight<T>(k.read(s.x), k.read(s.y), k.gradient(), k.gradient(1));
    case LayerKind::Convolution:
      convolution_backward_weight<T>(k.convolution(), k.at(s.x), k.at(s.y), k.gradient());
      if (k.layer().bias) add_rows<T>(k.read(s.y), k.gradient(1));
      return;
    default:
      break;
  }
  CHECK(false, "a layer that has weights");
}

template <class T>
void add(const LayerKernel<T>& k) {
  if (k.step.dx.stride > 0) return add_columns<T>(k.read_columns(k.step.x), k.columns(k.step.dx));
  add_to(k.at(k.step.x), k.step.x.size(), k.at(k.step.dx));
}

}  // namespace

template <class T>
double run_steps(const std::vector<Step>& steps, const StageTensors& tensors,
                 const std::int32_t* targets, StepPart part) {
  double loss = 0;
  for (const Step& step : steps) {
    if (part != StepPart::All && step.late != (part == StepPart::Late)) continue;
    const LayerKernel<T> kernel = {step, tensors, targets};
    switch (step.kind) {
      case StepKind::Forward: {
        const double own = run_forward(kernel);
        if (has_loss(step.layer->kind)) loss = own;
        break;
      }
      case StepKind::BackwardInput:
        run_backward_input(kernel);
        break;
      case StepKind::BackwardWeight:
        run_backward_weight(kernel);
        break;
      case StepKind::Add:
        add(kernel);
        break;
      case StepKind::Copy:
        copy_columns<T>(kernel.read_columns(step.x), kernel.columns(step.dx));
        break;
      case StepKind::Less:
        take_columns_from<T>(kernel.read_columns(step.x), kernel.columns(step.dx));
        break;
      case StepKind::Mask:
        relu_mask<T>(kernel.read(step.x), kernel.view(step.dx));
        break;
    }
  }
  return loss;
}

template double run_steps<float>(const std::vector<Step>&, const StageTensors&, const std::int32_t*,
                                 StepPart);
template double run_steps<double>(const std::vector<Step>&, const StageTensors&,
                                  const std::int32_t*, StepPart);

}  // namespace interlock
