// Mixer parts: work, weights and saved bytes.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/mixers.h"

namespace interlock {

Operator causal_convolution(const CausalConvolution& shape, double element) {
  const double elements = shape.tokens * static_cast<double>(shape.channels);
  Operator op = elementwise({.forward = 2 * elements,
                             .backward = 5 * elements,  // again, and the three of its backward
                             .stash = elements,
                             .gradients = 2 * elements},
                            element);
  op.parameters = shape.channels * (shape.width + (shape.bias ? 1 : 0));
  return op;
}

Operator gated_norm(double elements, std::int64_t parameters, double element) {
  Operator op = elementwise({.forward = 3 * elements,
                             .backward = 5 * elements,
                             .stash = 2 * elements,
                             .gradients = 3 * elements},
                            element);
  op.forward.op_class = op.input_gradient.op_class = OpClass::Normalisation;
  op.parameters = parameters;
  return op;
}

Bytes convolution_tail(const CausalConvolution& shape, double element) {
  return Bytes(static_cast<double>(shape.channels) * (shape.width - 1) * element);
}

}  // namespace interlock
