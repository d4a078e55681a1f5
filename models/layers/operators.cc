// Operators: the work of the kernels that models are made of.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/operators.h"

namespace interlock {
namespace {

const double kLossStash = Framework().loss_stash;  // bytes of a logit

/// Returns a kernel that multiplies: `products` multiply-adds over `elements` touched elements.
Work product(OpClass op_class, double products, double elements, double element) {
  return {.op_class = op_class, .flops = Flops(2 * products), .bytes = Bytes(elements * element)};
}

Work traffic(OpClass op_class, double bytes) {
  return {.op_class = op_class, .bytes = Bytes(bytes)};
}

/// Returns an operator with weights: three products of equal size over (input, weights, output).
Operator weighted(OpClass op_class, double products, const double (&sizes)[3], double element) {
  const double touched = sizes[0] + sizes[1] + sizes[2];
  return {.forward = product(op_class, products, touched, element),
          .input_gradient = product(op_class, products, touched, element),
          .weight_gradient = product(op_class, products, touched, element),
          .stash = Bytes(sizes[0] * element),
          .gradients = Bytes((sizes[0] + sizes[2]) * element)};
}
/// The three products of y = x W, for x (rows, inputs) and W (inputs, outputs).
void set_shapes(Operator& op, double rows, double inputs, double outputs) {
  op.forward.shape = {rows, outputs, inputs};
  op.input_gradient.shape = {rows, inputs, outputs};
  op.weight_gradient.shape = {inputs, outputs, rows};
}
}  // namespace

Operator linear(const Linear& shape, double element) {
  const double inputs = static_cast<double>(shape.inputs);
  const double outputs = static_cast<double>(shape.outputs);
  Operator op = weighted(OpClass::Gemm, shape.rows * inputs * outputs,
                         {shape.rows * inputs, inputs * outputs, shape.rows * outputs}, element);
  set_shapes(op, shape.rows, inputs, outputs);
  op.parameters = shape.inputs * shape.outputs;
  op.matrices = {{.rows = inputs, .columns = outputs, .parameters = op.parameters}};
  op.outputs = {Bytes(shape.rows * outputs * element)};
  if (shape.bias) add_bias(op, shape.outputs, shape.rows * outputs, element);
  return op;
}

void add_bias(Operator& op, std::int64_t width, double outputs, double element) {
  op.parameters += width;
  op.weight_gradient.bytes += Bytes((outputs + static_cast<double>(width)) * element);
  ++op.weight_gradient.launches;
}

Operator convolution(const Convolution& shape, double element) {
  const std::int64_t weights = shape.inputs * shape.outputs * shape.kernel * shape.kernel;
  const double inputs = shape.read * static_cast<double>(shape.inputs);
  const double outputs = shape.made * static_cast<double>(shape.outputs);
  Operator op = weighted(OpClass::Convolution, shape.made * static_cast<double>(weights),
                         {inputs, static_cast<double>(weights), outputs}, element);
  // As a product of what each position of the output reads with the weights.
  const double channels = static_cast<double>(shape.outputs);
  set_shapes(op, shape.made, static_cast<double>(weights) / channels, channels);
  op.parameters = weights;
  op.matrices = {{.rows = op.forward.shape.k, .columns = channels, .parameters = weights}};
  if (shape.bias) add_bias(op, shape.outputs, outputs, element);
  return op;
}

Operator elementwise(const Elementwise& touched, double element) {
  Operator op = {.forward = traffic(OpClass::Elementwise, touched.forward * element),
                 .input_gradient = traffic(OpClass::Elementwise, touched.backward * element),
                 .stash = Bytes(touched.stash * element),
                 .gradients = Bytes(touched.gradients * element)};
  op.forward.variant = op.input_gradient.variant = touched.variant;
  return op;
}

Operator small_steps(const SmallSteps& steps) {
  Operator op = {.forward = traffic(OpClass::Elementwise, steps.forward_bytes),
                 .input_gradient = traffic(OpClass::Elementwise, steps.backward_bytes),
                 .forward_steps = steps.forward,
                 .backward_steps = steps.backward};
  op.forward.launches = op.input_gradient.launches = 0;
  return op;
}

Operator max_pool(double inputs, double outputs, double element) {
  const double indices = outputs * 8 / element;
  const double touched = inputs + outputs + indices;
  return elementwise({.forward = touched,
                      .backward = touched,
                      .stash = inputs + indices,
                      .gradients = inputs + outputs},
                     element);
}

Operator relu(double elements, double element) {
  return elementwise({.forward = 2 * elements,
                      .backward = 3 * elements,
                      .gradients = 2 * elements,
                      .variant = OpVariant::Relu},
                     element);
}

Operator residual(double elements, double element) {
  return elementwise({.forward = 3 * elements,
                      .backward = 3 * elements,
                      .gradients = 3 * elements,
                      .variant = OpVariant::Add},
                     element);
}

Operator dropout(double elements, double element) {
  const double bytes = elements * (2 * element + 1);
  Work masked = traffic(OpClass::Elementwise, bytes);
  masked.variant = OpVariant::Dropout;
  return {.forward = masked,
          .input_gradient = masked,
          .stash = Bytes(elements),
          .gradients = Bytes(2 * elements * element)};
}

Operator normalisation(double elements, std::int64_t parameters, double element) {
  return {.forward = traffic(OpClass::Normalisation, 2 * elements * element),
          .input_gradient = traffic(OpClass::Normalisation, 3 * elements * element),
          .weight_gradient = traffic(OpClass::Normalisation, 2 * elements * element),
          .parameters = parameters,
          .stash = Bytes(elements * element),
          .gradients = Bytes(2 * elements * element)};
}

Operator global_average_pool(double elements, double pooled, double element) {
  const double touched = elements + pooled;
  return elementwise(
      {.forward = touched, .backward = touched, .stash = elements, .gradients = touched}, element);
}

Operator cross_entropy(double rows, std::int64_t classes, double element) {
  const double logits = rows * static_cast<double>(classes);
  const double bytes = logits * (element + 4);
  return {.forward = traffic(OpClass::Loss, bytes),
          .input_gradient = traffic(OpClass::Loss, bytes),
          .stash = Bytes(logits * kLossStash),
          .gradients = Bytes(logits * element)};
}

void wait_beside(std::vector<Operator>& operators, std::size_t first, std::size_t end,
                 Bytes gradients) {
  for (std::size_t i = first; i < end; ++i) operators[i].waiting += gradients;
}

void mark_part(std::vector<Operator>& operators, std::size_t first, LayerPart part) {
  for (std::size_t i = first; i < operators.size(); ++i) {
    operators[i].parts |= part;
    if (i > first) operators[i].remade |= part;
  }
}

}  // namespace interlock
