// References of the kernels: the same in double precision on one CPU thread, as plain as can be.
// SPDX-License-Identifier: Apache-2.0
//
// They share no code with the kernels. Arguments mean what they mean in kernels.h.
#pragma once

#include <cstdint>
#include <vector>

#include "validate/cuda/kernels/fused_attention.h"

namespace interlock::cuda::reference {

using Numbers = std::vector<double>;
using Tokens = std::vector<std::int32_t>;

double gelu(double x);
double gelu_slope(double x);

Numbers embed(const Numbers& table, const Numbers& places, const Tokens& tokens, int positions,
              int columns);
void embed_gradient(Numbers& dtable, Numbers& dplaces, const Numbers& dy, const Tokens& tokens,
                    int positions);

struct Norm {
  Numbers x, gain, shift;
  Matrix shape;
};
struct NormGradient {
  Numbers dx, dgain, dshift;
};
Numbers layer_norm(const Norm& norm);
NormGradient layer_norm_gradient(const Norm& norm, const Numbers& dy);
Numbers batch_norm(const Norm& norm);
NormGradient batch_norm_gradient(const Norm& norm, const Numbers& dy);

Numbers causal_softmax(const Numbers& scores, double factor, int tokens);
Numbers causal_softmax_gradient(const Numbers& weights, const Numbers& dweights, double factor,
                                int tokens);

/// Causal attention of (samples, tokens, 3, heads, size), and the gradient of that for `dy`.
Numbers attention(const Numbers& qkv, const Heads& shape, double factor);
Numbers attention_gradient(const Numbers& qkv, const Numbers& dy, const Heads& shape,
                           double factor);

/// Probabilities; the mean loss in `loss`.
Numbers cross_entropy(const Numbers& logits, const Tokens& targets, int classes, double& loss);
Numbers cross_entropy_gradient(const Numbers& probabilities, const Tokens& targets, int classes);

Numbers column_sums(const Numbers& x, int columns);

Numbers gather_patches(const Numbers& images, const Patches& shape);
Numbers gather_patches_gradient(const Numbers& dpatches, const Patches& shape);
Numbers average_pool(const Numbers& x, Matrix shape, int pixels);

struct Descent {
  Numbers weights, gradients, first, second;
};
void descend(Descent& state, const DescentStep& step);

}  // namespace interlock::cuda::reference
