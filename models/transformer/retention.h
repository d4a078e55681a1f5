// Retention: the operators that stand in for attention in a retentive network.
// SPDX-License-Identifier: Apache-2.0
//
// In the parallel form each token attends to all before it, as in attention without a softmax. In
// the chunkwise form each token attends to its own chunk, and to all before it through a state
// of (key width, value width) a head that is handed on. Work and bytes of a token do not depend on
// where in the sequence it stands. Values are twice as wide as queries and keys and gated, which
// makes 8 h^2 weights.
// Source: Sun et al., Retentive Network, arXiv 2307.08621, sections 2.2, 2.3 and 3.1.
#pragma once

#include <vector>

#include "models/layers/tensor_layout.h"

namespace interlock {

/// Letters: T tokens, h hidden_size, a heads, c chunk.
struct Retention {
  double tokens = 1;  // of all tensor devices together
  std::int64_t hidden_size = 1;
  int heads = 1;              // divides hidden_size
  int chunk = 1;              // tokens
  bool parallel = false;      // one chunk for all tokens
  bool causal_flops = false;  // MFU counts half of the scores inside a chunk
  bool rotary = false;
  bool bias = true;
  Sharding sharding;
};

/// Query, key, value and gate projections to the output projection. Shapes: (T, h) to (T, h).
std::vector<Operator> retention(const Retention& shape, double element);

/// The states of a device's heads between two tokens of one sequence, in fp32: of all heads
/// together 2 h^2 / a elements.
Bytes retention_state(const Retention& shape);

}  // namespace interlock
