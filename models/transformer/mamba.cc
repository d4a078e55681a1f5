// Mamba: work, weights and saved bytes of its operators.
// SPDX-License-Identifier: Apache-2.0
//
// Every channel has a state of N numbers that decays and takes in its token; how much is decided by
// the token. Mamba 1 (Gu and Dao, arXiv 2312.00752) runs along the sequence in one kernel without
// matrix products. Mamba 2 (Dao and Gu, arXiv 2405.21060, section 6) has one decay for each head of
// P channels, so that a chunk of Q tokens is four products of matrices: C B^T and its product with
// X inside the chunk, B^T X for the state behind it, and C times the state before it. Heads of a
// group have the same B and C.
//
// Heads, groups and channels are divided among tensor devices. A state is handed on from token to
// token, so that a sequence is not divided.
#include "models/transformer/mixers.h"

namespace interlock {
namespace {

/// Channels of Mamba 1 on one device.
std::int64_t inner_of(const BlockForm& b, const StreamSizes& z) {
  const std::int64_t inner = static_cast<std::int64_t>(b.mamba.expand) * b.stream.hidden_size;
  return inner / z.sharding.tensor;
}

CausalConvolution convolution_of_mamba(const BlockForm& b, const StreamSizes& z) {
  return {.tokens = z.tokens, .channels = inner_of(b, z), .width = b.mamba.conv_width};
}

/// Returns one kernel along the sequence: inputs, step sizes, gate, B and C in, gated outputs out.
/// Keeps the step sizes, the gate, what it had before the gate, B and C; its inputs are kept
/// already. It multiplies no matrices: no flops are counted. Backward reads all of that and the
/// gradient, and writes those of inputs, step sizes and gate.
Operator selective_scan(const BlockForm& b, const StreamSizes& z) {
  const double inner = z.tokens * static_cast<double>(inner_of(b, z));
  const double vectors = z.tokens * 2 * b.mamba.state_size;
  Operator op = elementwise({.forward = 4 * inner + vectors,
                             .backward = 8 * inner + 2 * vectors,
                             .stash = 3 * inner + vectors,
                             .gradients = 4 * inner + vectors},
                            z.element);
  op.parameters = inner_of(b, z) * (b.mamba.state_size + 1);
  return op;
}

/// Sizes of Mamba 2 on one device; elements of a token.
struct Heads {
  double count = 1;
  double inner = 1;    // of all heads
  double vectors = 1;  // B and C of all groups
  double groups = 1;
  CausalConvolution convolution;
};

Heads heads_of(const BlockForm& b, const StreamSizes& z) {
  const Mamba2& m = b.mamba2;
  const double tensor = z.sharding.tensor;
  Heads heads = {.count = m.heads / tensor,
                 .inner = static_cast<double>(m.heads) * m.head_size / tensor,
                 .vectors = 2.0 * m.groups * m.state_size / tensor,
                 .groups = m.groups / tensor};
  heads.convolution = {.tokens = z.tokens,
                       .channels = static_cast<std::int64_t>(heads.inner + heads.vectors),
                       .width = m.conv_width};
  return heads;
}

/// Flops of a token in the products of a chunk: see above.
struct ChunkFlops {
  double scores = 0;   // C B^T
  double mixing = 0;   // times X
  double states = 0;   // B^T X
  double reading = 0;  // C times the state
  double all() const { return scores + mixing + states + reading; }
};

/// `columns`: those of a chunk that are computed.
ChunkFlops chunk_flops(const Mamba2& m, const Heads& heads, double columns) {
  const double states = 2 * heads.inner * m.state_size;
  return {.scores = heads.groups * 2 * columns * m.state_size,
          .mixing = 2 * columns * heads.inner,
          .states = states,
          .reading = states};
}

/// Four products a chunk. Blocks of scores beyond the diagonal are skipped, as in fused attention.
/// The states of all chunks are written and read in fp32, handed on, and written and read again in
/// the model's format; the scores of a group are stored in fp32. Backward makes scores and states
/// again, then two products for each of the forward. It keeps the step sizes; inputs, B and C come
/// from the convolution, which is made again.
/// Source: state-spaces/mamba, commit 01b717a, mamba_ssm/ops/triton/ssd_combined.py.
Operator state_space_dual(const BlockForm& b, const StreamSizes& z) {
  const Mamba2& m = b.mamba2;
  const Heads heads = heads_of(b, z);
  const double chunk = m.chunk_size;
  const ChunkFlops run =
      chunk_flops(m, heads, computed_pairs(m.chunk_size, m.chunk_size, {}) / chunk);
  const ChunkFlops counted = chunk_flops(m, heads, b.stream.causal_flops ? chunk / 2 : chunk);
  const double states = z.tokens / chunk * heads.inner * m.state_size;
  const double scores = z.tokens * chunk * heads.groups;
  const double read = heads.inner + heads.vectors + heads.count;
  Operator op;
  op.forward = {.op_class = OpClass::Attention,
                .flops = Flops(z.tokens * run.all()),
                .bytes = Bytes(z.tokens * (2 * read + heads.inner) * z.element +
                               states * (2 * 4 + 2 * z.element) + scores * 2 * 4),
                .launches = 5,
                .variant = OpVariant::StateSpace,
                .counted = Flops(z.tokens * counted.all())};
  op.input_gradient = {.op_class = OpClass::Attention,
                       .flops = Flops(z.tokens * (2 * run.all() + run.scores + run.states)),
                       .bytes = op.forward.bytes * 3,
                       .launches = 12,
                       .variant = OpVariant::StateSpace,
                       .counted = *op.forward.counted * 2};
  op.parameters =
      std::int64_t{3} * (m.heads / z.sharding.tensor);  // decay, step size and skip of each head
  op.stash = Bytes(z.tokens * heads.count * z.element);
  op.gradients =
      Bytes(z.tokens * (2 * read + heads.inner) * z.element + states * 2 * 4 + scores * 2 * 4);
  return op;
}

}  // namespace

void append_mamba(const BlockForm& b, const StreamSizes& z, std::vector<Operator>& block) {
  const Mamba& m = b.mamba;
  const std::int64_t hidden = b.stream.hidden_size;
  const std::int64_t inner = m.expand * hidden, vectors = std::int64_t{2} * m.state_size;
  const double gate = z.tokens * static_cast<double>(inner_of(b, z)) * z.element;
  block.push_back(sharded_linear({z.tokens, hidden, 2 * inner, b.bias.qkv}, LinearRole::Column,
                                 z.sharding, z.element));
  block.back().linear = LinearName::Qkv;
  const std::size_t first = block.size();
  block.push_back(causal_convolution(convolution_of_mamba(b, z), z.element));
  block.push_back(sharded_linear({z.tokens, inner, m.dt_rank + vectors, false}, LinearRole::Row,
                                 z.sharding, z.element));
  if (m.norms) {
    const std::int64_t width = m.dt_rank + vectors;
    block.push_back(sharded_norm({z.tokens, width, width}, z.sharding, z.element));
  }
  // B and C go to all tensor devices with what step sizes are made of.
  Operator steps =
      sharded_linear({z.tokens, m.dt_rank, inner, true}, LinearRole::Column, z.sharding, z.element);
  const double more = static_cast<double>(m.dt_rank + vectors) / m.dt_rank;
  for (auto* exchanges :
       {&steps.forward_exchanges, &steps.input_exchanges, &steps.weight_exchanges}) {
    for (Exchange& one : *exchanges) one.bytes *= more;
  }
  block.push_back(steps);
  wait_beside(block, first + 1, block.size(), Bytes(gate));  // the gradient of the inputs
  wait_beside(block, first, block.size(), Bytes(gate));      // and of the gate
  block.push_back(selective_scan(b, z));
  block.push_back(sharded_linear({z.tokens, inner, hidden, b.bias.projection}, LinearRole::Row,
                                 z.sharding, z.element));
  block.back().linear = LinearName::Projection;
}

void append_mamba2(const BlockForm& b, const StreamSizes& z, std::vector<Operator>& block) {
  const Mamba2& m = b.mamba2;
  const Heads heads = heads_of(b, z);
  const std::int64_t inner = static_cast<std::int64_t>(m.heads) * m.head_size;
  const std::int64_t outputs =
      2 * inner + 2 * static_cast<std::int64_t>(m.groups) * m.state_size + m.heads;
  block.push_back(sharded_linear({z.tokens, b.stream.hidden_size, outputs, b.bias.qkv},
                                 LinearRole::Column, z.sharding, z.element));
  block.back().linear = LinearName::Qkv;
  const std::size_t first = block.size();
  block.push_back(causal_convolution(heads.convolution, z.element));
  block.push_back(state_space_dual(b, z));
  const double gate = z.tokens * heads.inner * z.element;
  wait_beside(block, first, block.size(), Bytes(gate));
  block.push_back(gated_norm(z.tokens * heads.inner, inner / z.sharding.tensor, z.element));
  block.push_back(sharded_linear({z.tokens, inner, b.stream.hidden_size, b.bias.projection},
                                 LinearRole::Row, z.sharding, z.element));
  block.back().linear = LinearName::Projection;
}

Bytes mamba_state(const BlockForm& b, const StreamSizes& z) {
  const double states = static_cast<double>(inner_of(b, z)) * b.mamba.state_size;
  return Bytes(states * 4) + convolution_tail(convolution_of_mamba(b, z), z.element);
}

Bytes mamba2_state(const BlockForm& b, const StreamSizes& z) {
  const Heads heads = heads_of(b, z);
  return Bytes(heads.inner * b.mamba2.state_size * 4) +
         convolution_tail(heads.convolution, z.element);
}

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
