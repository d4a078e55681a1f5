// Mixers: what stands in the place of attention, and the kernels that its kinds have alike.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a retention of hidden_size 1,024 with 4 heads keeps 2 x 1,024^2 / 4 = 524,288 numbers
// between two tokens, which are 2 MiB in fp32.
#pragma once

#include "models/transformer/block.h"

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

/// Returns query, key, value and gate projections to the output projection.
/// Shapes: (T, h) to (T, h).
std::vector<Operator> retention(const Retention& shape, double element);

/// Returns the states of a device's heads between two tokens of one sequence, in fp32: of all heads
/// together 2 h^2 / a elements.
Bytes retention_state(const Retention& shape);

/// Adds the operators from the tokens to what is added to them. Shapes: (T, H) to (T, H).
void append_mamba(const BlockForm& shape, const StreamSizes& sizes, std::vector<Operator>& block);
void append_mamba2(const BlockForm& shape, const StreamSizes& sizes, std::vector<Operator>& block);
void append_gated_delta(const BlockForm& shape, const StreamSizes& sizes,
                        std::vector<Operator>& block);

/// Returns the bytes of one sample that a device hands on between two tokens.
Bytes mamba_state(const BlockForm& shape, const StreamSizes& sizes);
Bytes mamba2_state(const BlockForm& shape, const StreamSizes& sizes);
Bytes gated_delta_state(const BlockForm& shape, const StreamSizes& sizes);

/// Adds attention to a window of tokens and to entries, as append_attention.
void append_compressed_attention(const BlockForm& shape, const StreamSizes& sizes,
                                 std::vector<Operator>& block);

// Parts of attention whose queries are made of latents, see latent_attention.cc.

/// Adds what makes queries, of a latent or of the tokens.
void append_queries(const BlockForm& shape, const StreamSizes& sizes, std::vector<Operator>& block);
/// Returns `count` products of one shape, each by a matrix of its own, in 16 bits whatever linear
/// layers have.
Operator product_of_each(double count, const Linear& shape, double element);
/// Lets `op` hand no gradient on.
void end_gradients(Operator& op);
/// Returns a product of an indexer, which every tensor device has whole: it gathers tokens that are
/// divided, and hands no gradient on.
Operator indexer_product(const StreamSizes& sizes, std::int64_t inputs, std::int64_t outputs);
/// Choice: pairs that an indexer scores and chooses. Pairs of all tokens; elements.
struct Choice {
  double pairs = 1, seen = 1;  // scored; chosen
  double keys = 1;             // of the indexer
  double attended = 1;         // queries of all heads of attention of a token, on one device
  double read = 1;             // queries and keys of attention
};
/// Adds the scores of an indexer whose products begin at `first`, and the choice.
void append_choice(const BlockForm& shape, const StreamSizes& sizes, const Selection& selection,
                   const Choice& choice, std::size_t first, std::vector<Operator>& block);

/// A causal convolution of each channel by itself, with its activation; `bias`: a number for each.
struct CausalConvolution {
  double tokens = 1;
  std::int64_t channels = 1;  // of one device
  int width = 4;              // tokens
  bool bias = true;
};
/// Keeps its input; what it puts out is made again in front of the backward of what reads it.
/// A few products for each number that is moved: no flops are counted.
Operator causal_convolution(const CausalConvolution& shape, double element);

/// Returns the RMS norm of what a mixer made, times the activation of a gate. Keeps both.
Operator gated_norm(double elements, std::int64_t parameters, double element);

/// Returns the bytes that a device's convolution reads of the tokens before a slice.
Bytes convolution_tail(const CausalConvolution& shape, double element);

}  // namespace interlock
