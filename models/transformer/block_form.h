// Block form: sizes of one block of a transformer, and what its tokens go through.
// SPDX-License-Identifier: Apache-2.0
//
// A block has a mixer, which lets tokens see each other (attention or one of its stand-ins), and a
// feed-forward behind it; either may be missing. The blocks of a model may differ: a transformer
// holds each form once and says for each layer which it has. Example: 26 layers of Gemma 2 are two
// forms, one whose `window` is 4096 tokens and one without, and 0, 1, 0, 1, ... for the layers.
#pragma once

#include <optional>

#include "models/layers/model_graph.h"
#include "models/streams/compression.h"
#include "models/streams/hyper_connections.h"

namespace interlock {

/// Before a branch; behind the sum with it; before and behind a branch, in front of the sum (Gemma
/// 2); or behind a branch alone, in front of the sum (OLMo 2).
enum class NormPosition { Pre, Post, Both, Branch };

/// The tensor that goes through all blocks, and what they do with it alike.
struct ResidualStream {
  int hidden_size = 1;
  int sequence_length = 1;
  bool rms_norm = false;  // else layer norm
  bool norm_bias = true;  // of a layer norm
  NormPosition norm_position = NormPosition::Pre;
  double dropout = 0;               // only whether there is any matters
  bool bidirectional = false;       // tokens see those behind them too
  bool causal_flops = false;        // MFU counts half of the attention matrix; no time follows
  std::optional<TokenSlice> slice;  // this part of each sequence, alone
  HyperConnections connections;     // more streams than one, see hyper_connections.h
  Documents documents;              // of a sequence, whose tokens see their own; empty: it is one
  bool operator==(const ResidualStream&) const = default;
};

/// Lets tokens see each other. Fused: attention in one kernel; the (tokens, tokens) matrices are
/// never stored. The others stand in for it: retention.cc, mamba.cc, gated_delta.cc.
enum class Mixer { Materialised, Fused, Retention, Mamba, Mamba2, GatedDelta, None };
inline bool attends(Mixer mixer) { return mixer == Mixer::Materialised || mixer == Mixer::Fused; }

enum class FeedForward { Dense, Experts, None };

/// RMS norms of queries and keys: of each head by itself, or of all heads together.
enum class QkNorm { None, Heads, Whole };

/// A mixture of experts.
struct Experts {
  int count = 0;  // of a layer; none: every MLP is dense
  int per_token = 1;
  int groups = 1, groups_per_token = 1;  // of experts, and those that hold all of a token's
  int shared = 0;                        // further ones, that every token goes through
  int ffn_hidden_size = 1;
  int shared_ffn_hidden_size = 1;         // of each shared one
  int latent_size = 0;                    // of what they read and make; 0: hidden_size
  bool shared_gate = false;               // what they add is weighed by a gate
  bool router_bias = false;               // a number for each expert, added to its score
  std::optional<double> capacity_factor;  // buffers of fixed size: see feed_forward.cc
  bool operator==(const Experts&) const = default;
};

/// Linear layers that have a bias.
struct BlockBias {
  bool qkv = true, projection = true, mlp = true;
  bool operator==(const BlockBias&) const = default;
};

/// Ranks of what queries, and keys and values, are made of: see latent_attention.cc.
struct Latents {
  int query_rank = 0;  // 0: queries are made of the tokens themselves
  int kv_rank = 0;     // 0: no latents at all
  int rotary_head_size = 1;
  Selection selection = {};
  bool operator==(const Latents&) const = default;
};

/// Selective states: sizes of Mamba 1.
struct Mamba {
  int state_size = 16;
  int conv_width = 4;
  int expand = 2;      // inner channels over hidden_size
  int dt_rank = 1;     // elements that the step sizes are made of
  bool norms = false;  // RMS norms of the step sizes' latent and of both state vectors (Jamba)
  bool operator==(const Mamba&) const = default;
};

/// Selective states with a scalar for each head: sizes of Mamba 2.
struct Mamba2 {
  int state_size = 128;
  int heads = 1;
  int head_size = 64;
  int groups = 1;  // heads of a group share what reads and writes their states
  int conv_width = 4;
  int chunk_size = 256;  // tokens
  bool operator==(const Mamba2&) const = default;
};

/// Gated delta rule: sizes. Each key head serves value_heads / key_heads value heads.
struct GatedDelta {
  int key_heads = 1, value_heads = 1;
  int key_head_size = 128, value_head_size = 128;
  int conv_width = 4;
  int chunk_size = 64;  // tokens
  bool operator==(const GatedDelta&) const = default;
};

/// One block by itself.
struct BlockForm {
  ResidualStream stream;
  Mixer mixer = Mixer::Materialised;
  int attention_heads = 1;
  int kv_heads = 1;         // fewer than attention_heads: grouped-query attention
  int head_size = 1;        // of queries and keys
  int value_head_size = 1;  // another with latents only
  QkNorm qk_norm = QkNorm::None;
  bool gate = false;      // what attention puts out is multiplied by a gate made of the tokens
  bool sinks = false;     // a number for each head joins its softmax
  bool relative = false;  // positions: a number for each pair of places and each head, see block.h
  bool rotary = false;
  double rotary_share = 1;             // of each head's elements
  bool scaled_rotation = false;        // times a factor
  std::optional<int> window;           // tokens that a token sees: itself and those before it
  std::optional<int> attention_chunk;  // tokens of a part that sees itself alone
  int source_tokens = 0;               // of a source that cross-attention reads; 0: there is none
  Latents latents;
  Compression compression;  // of keys that are values, too, see compressed_attention.cc
  int chunk_size = 1;       // Retention: tokens
  Mamba mamba;
  Mamba2 mamba2;
  GatedDelta gated_delta;
  BlockBias bias;
  bool parallel_residual = false;  // attention and MLP read the same and are added together
  bool shared_norm = false;        // behind one norm, instead of one each
  FeedForward ffn = FeedForward::Dense;
  int ffn_hidden_size = 4;
  bool gated_mlp = false;
  bool clamped_mlp = false;  // what its activation reads
  Experts experts;
  bool operator==(const BlockForm&) const = default;
};

}  // namespace interlock
