// Transformer: decoder-only language models as modules: embedding, blocks, readout.
// SPDX-License-Identifier: Apache-2.0
//
// {"kind": "transformer", "layers", "hidden_size", "attention_heads", "kv_heads",
// "ffn_hidden_size",
//  "vocab_size", "sequence_length", "gated_mlp", "norm": "layernorm" | "rmsnorm", "bias",
//  "positions": "learned" | "rotary" | "none", "max_positions", "tied_embeddings", "dropout",
//  "attention": "materialised" | "fused" | "retention", "chunk_size",
//  "attention_flops": "full" | "causal", "head",
//  "experts", "experts_per_token", "shared_experts", "expert_ffn_hidden_size", "capacity_factor",
//  "dense_layers"}
// Defaults describe GPT-2's family without dropout. A block is pre-norm: norm, attention, residual,
// norm, MLP, residual. The last module is final norm, vocabulary projection and loss. With experts
// the MLP of all but the first `dense_layers` blocks is a mixture of them.
#pragma once

#include "models/head.h"

namespace interlock {

struct Transformer {
  enum class Positions { Learned, Rotary, None };
  /// Fused: one kernel; the (tokens, tokens) matrices are never stored. Retention: see retention.h.
  enum class Attention { Materialised, Fused, Retention };
  struct Experts {
    int count = 0;  // of a layer; none: every MLP is dense
    int per_token = 1;
    int shared = 0;  // further ones, that every token goes through
    int ffn_hidden_size = 1;
    std::optional<double> capacity_factor;  // buffers of fixed size: see feed_forward.cc
    int dense_layers = 0;                   // blocks before the first with experts
  };

  int layers = 1;
  int hidden_size = 1;
  int attention_heads = 1;
  int kv_heads = 1;  // fewer than attention_heads: grouped-query attention
  int ffn_hidden_size = 4;
  int vocab_size = 1;
  int sequence_length = 1;
  bool gated_mlp = false;
  bool rms_norm = false;  // else layer norm
  bool bias = true;       // of the blocks' linear layers; the vocabulary projection has none
  Positions positions = Positions::Learned;
  int max_positions = 1;  // Learned: rows of the position table
  bool tied_embeddings = true;
  double dropout = 0;  // only whether there is any matters
  Attention attention = Attention::Materialised;
  int chunk_size = 1;         // Retention: tokens
  bool causal_flops = false;  // count half of the attention matrix
  Experts experts;
  HeadSpec head;
  std::optional<TokenSlice> slice;  // this part of each sequence, alone
};

Transformer read_transformer(ObjectReader& reader);
ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options);

}  // namespace interlock
