// Block: the operators of a transformer block, as one device of its mesh runs them.
// SPDX-License-Identifier: Apache-2.0
//
// What a block keeps for its backward, in 16-bit elements with dropout, is the list of Korthikanti
// et al., arXiv 2205.05198, section 4.1 (letters: s sequence, b micro-batch, h hidden, a heads):
// inputs of both norms 4sbh, of the query-key-value product 2sbh, queries and keys 4sbh, values
// 2sbh, softmax 2as^2b with its mask as^2b and dropped output 2as^2b, input of the projection 2sbh
// and its mask sbh, inputs of the MLP's two products 2sbh and 8sbh, of the activation 8sbh, and the
// last mask sbh: sbh(34 + 5as/h). Without dropout the masks and the dropped softmax are not there.
// With t tensor devices everything between the two layers of a pair is divided, which is 24 of the
// 34 and all scores; sequence parallelism divides the other 10 too (equations 2 and 4).
//
// A slice of a sequence: l tokens that attend to themselves and to the c before them. The s^2
// scores of a whole sequence hold every pair of tokens twice, one of the two masked; a slice has
// its tokens' pairs, (c + l)^2 - c^2 of them, so that the slices of a sequence add up to the whole.
//
// Context parallelism gives each device an equal part of the tokens, chosen so that a causal mask
// leaves them equal work. In a ring (arXiv 2310.01889) keys and values visit all devices while
// attention runs; backward, their gradients travel with them. With all-to-all (DeepSpeed Ulysses,
// arXiv 2309.14509) attention sees whole sequences of a part of the heads.
//
// A window of w tokens leaves a token at place i (from 0) min(2 i + 1, 2 w - 1) of these pairs, if
// attention is one kernel; scores that are stored are computed whole, and masked.
//
// Relative positions add a number to each score, that of its head and of the distance, by buckets:
// a table in the embedding's module (T5, arXiv 1910.10683, section 2.1). Every stage that has
// blocks makes the sums for its own; that kernel is small and is not counted.
//
// Cross-attention: the tokens of a block see those of a source, whose keys and values it makes of
// the encoder's output. That travels with every module's output to the last block; of the blocks of
// a stage only one keeps it (Module::carried), and gradients of all of them are added up on the way
// back.
//
// These pairs are what the convention behind MFU counts, all or half of them. Kernels that store
// the scores execute, and keep, the rectangle of l rows and c + l columns of a slice, which is the
// whole square of a whole sequence. A fused kernel executes less: see computed_pairs.
#pragma once

#include "models/transformer/transformer.h"

namespace interlock {

/// Sizes of one micro-batch that all operators share; elements are those of one device.
/// Example: two samples of 1,024 tokens in bf16 through a hidden_size of 4,096 on two context
/// devices: element 2, samples 2, tokens 1,024, residual 4,194,304; boundary() is 8 MiB.
struct StreamSizes {
  Sharding sharding;
  double element = 1;  // bytes
  double samples = 1;
  double tokens = 1;    // of one part of the sequence, of all tensor devices together
  double residual = 1;  // elements of (tokens, hidden_size) where norms and residuals are
  int streams = 1;      // of these
  CudaGraphs graphs = {};
  FusedRouting fused_routing = {};
  bool narrow = false;  // products of layers are in 8 or 4 bits
};

/// Rows and columns of the blocks that a fused kernel computes or skips as a whole.
/// Source: FlashAttention-2, arXiv 2307.08691, section 3.3: blocks of 64 or 128 rows and columns.
inline constexpr int kAttentionBlock = 128;

/// Returns the pairs of tokens that a fused causal kernel computes scores of, for the first
/// `tokens` of a sequence of `of`: whole blocks up to the one on the diagonal, from the first that
/// the window reaches. Without a window, b (b + 1) / 2 blocks of b rows of blocks: half of the
/// square, and half of the diagonal blocks. A slice computes those of its last token less those
/// before its first, so that slices add up; what a block has beyond a slice's last token is
/// computed and masked.
double computed_pairs(int tokens, int of, std::optional<int> window);

/// Returns the tokens of a sample that the operators work on, and those before and after them.
TokenSlice part_of(const ResidualStream& stream);
StreamSizes stream_sizes(const ResidualStream& stream, const BuildOptions& options);
std::int64_t norm_parameters(const ResidualStream& stream);

Operator norm_of(const ResidualStream& stream, const StreamSizes& sizes);
/// Returns one residual stream; all of them, which cross from one module to the next.
Bytes boundary(const StreamSizes& sizes);
Bytes crossing(const StreamSizes& sizes);
StreamRows stream_rows(const ResidualStream& stream, const StreamSizes& sizes);

/// Returns the key heads of all tensor devices together: each has at least one, a copy if need be.
int held_key_heads(const BlockForm& shape, const Sharding& sharding);

/// Adds attention, from the query-key-value product to the projection.
void append_attention(const BlockForm& shape, const StreamSizes& sizes,
                      std::vector<Operator>& block);
/// Adds attention to the source likewise. REQUIRES: there is one.
void append_cross_attention(const BlockForm& shape, const StreamSizes& sizes,
                            std::vector<Operator>& block);
/// Returns the encoder's output for a source, which cross-attention reads.
Bytes source_boundary(const BlockForm& shape, const StreamSizes& sizes);
/// Adds queries, keys and values made of latents; the first operator reads the block's tokens.
void append_latents(const BlockForm& shape, const StreamSizes& sizes, std::vector<Operator>& block);
/// Adds attention to tokens that are chosen, as append_attention. REQUIRES: a selection.
void append_chosen_attention(const BlockForm& shape, const StreamSizes& sizes,
                             std::vector<Operator>& block);
/// Returns the bytes of a slice that later slices read, whatever is recomputed: keys and values, or
/// the states.
Bytes kept_for_later(const BlockForm& shape, const StreamSizes& sizes);
/// Returns the bytes of keys and values of attention that later slices read.
Bytes kept_keys(const BlockForm& shape, const StreamSizes& sizes);
/// Returns what attention of a slice to all tokens before it reads and makes; nothing where it sees
/// fewer, or where there is no slice.
SliceContext slice_context(const BlockForm& shape, const StreamSizes& sizes);

/// Adds the feed-forward of a block. REQUIRES: it has one.
void append_feed_forward(const BlockForm& shape, const StreamSizes& sizes,
                         std::vector<Operator>& block);

/// Returns queries, keys and values of a micro-batch; what attention makes of them.
Bytes attention_input(const BlockForm& shape, const StreamSizes& sizes);
Bytes attention_output(const BlockForm& shape, const StreamSizes& sizes);

/// Returns the operators of a block, in order.
std::vector<Operator> block_operators(const BlockForm& shape, const StreamSizes& sizes);
/// Lets all kernels of `module` be of 16 bits.
void widen(Module& module);
/// Returns a block as a module without a name.
Module block_module(const BlockForm& shape, const BuildOptions& options);

/// Returns the sizes of an encoder's tokens, whose micro-batches are those of its images.
StreamSizes encoder_sizes(const Transformer& encoder, const BuildOptions& options);
/// Adds the modules of the model's encoder; of images, its connector is the last.
void append_encoder(const Transformer& shape, const BuildOptions& options,
                    std::vector<Module>& modules);
/// Adds the connectors of single layers, and to the decoder's blocks the sums with their tokens.
/// REQUIRES: `modules` are those of the encoder, the embedding and the decoder's blocks.
void append_deepstack(const Transformer& shape, const BuildOptions& options,
                      std::vector<Module>& modules);
/// Adds the blocks of a model as modules `name`0, 1, ..., with `before` others that may recompute.
void append_blocks(const Transformer& shape, const BuildOptions& options, const std::string& name,
                   std::size_t before, std::vector<Module>& modules);

/// Returns the module from tokens or patches to vectors, with all that is added to them.
Module embedding_module(const Transformer& shape, const StreamSizes& sizes,
                        const BuildOptions& options);
/// Returns what the readout and the auxiliary heads predict.
HeadSite site_of(const Transformer& shape, const BuildOptions& options);
/// Returns the module from the last block's output to the loss.
Module readout_module(const Transformer& shape, const StreamSizes& sizes,
                      const BuildOptions& options);
/// Adds what predicts the tokens behind the next one to the readout, in one module.
void append_later_tokens(const Transformer& shape, const StreamSizes& sizes,
                         const BuildOptions& options, Module& readout);

}  // namespace interlock
