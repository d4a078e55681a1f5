// Transformer: decoders and encoders of tokens or image patches: embedding, blocks, readout.
// SPDX-License-Identifier: Apache-2.0
//
// {"kind": "transformer", "layers", "hidden_size", "vocab_size", "sequence_length",
//  "norm": "layernorm" | "rmsnorm", "norm_position": "pre" | "post" | "both" | "branch",
//  "embedding_norm", "bias", "qkv_bias", "projection_bias", "mlp_bias", "parallel_residual",
//  "shared_norm", "gated_mlp", "max_positions", "token_types", "tied_embeddings", "dropout",
//  "bidirectional", "attention_flops": "full" | "causal", "patches": {"image_size", "patch_size",
//  "channels"}, "readout": "lm" | "masked-lm" | "classes", "readout_bias", "classes", "pooler",
//  "head", "multi_token_prediction": {"layers"}, "experts", "experts_per_token", "shared_experts",
//  "shared_expert_gate", "expert_ffn_hidden_size", "shared_expert_ffn_hidden_size",
//  "capacity_factor", "dense_layers", "expert_interval", "router_bias",
//  "layer_pattern": [{"repeat", and keys below}]}
// Keys of a block, which an item of the pattern may have too:
// {"attention": "materialised" | "fused" | "retention" | "mamba" | "mamba2" | "gated-delta" |
//   "none", "attention_heads", "kv_heads", "head_size", "qk_norm": true | "heads" | "whole",
//  "attention_gate", "attention_sinks", "sliding_window", "attention_chunk",
//  "positions": "learned" | "rotary" | "none", "rotary_share", "chunk_size",
//  "latent_attention": {"query_rank", "kv_rank", "head_size", "rotary_head_size",
//   "value_head_size"}, "mamba": {"state_size", "conv_width", "expand", "dt_rank", "norms"},
//  "mamba2": {"state_size", "heads", "head_size", "groups", "conv_width", "chunk_size"},
//  "gated_delta": {"key_heads", "value_heads", "key_head_size", "value_head_size", "conv_width",
//   "chunk_size"}, "ffn": "dense" | "experts" | "none", "ffn_hidden_size"}
// Defaults describe GPT-2's family without dropout. A block is pre-norm: norm, attention, residual,
// norm, MLP, residual. The last module is final norm, vocabulary projection and loss. With experts
// the MLP of every `expert_interval`th of all but the first `dense_layers` blocks is a mixture of
// them.
#pragma once

#include "models/layers/head.h"
#include "models/transformer/block_form.h"

namespace interlock {

struct Transformer {
  /// Square images instead of tokens: a patch each, and one more token for the whole.
  struct Patches {
    int image_size = 0;  // pixels on a side; 0: none
    int size = 1;
    int channels = 3;
    int tokens() const { return image_size / size * (image_size / size) + 1; }
  };
  /// Every token's successor; tokens that were hidden, behind another layer; or one class for all,
  /// read from the first token.
  enum class Readout { Lm, MaskedLm, Classes };

  ResidualStream stream;
  std::vector<BlockForm> forms;  // those that some layer has
  std::vector<int> layers;       // the form of each
  int vocab_size = 1;
  bool embedding_norm = false;
  int max_positions = 0;  // rows of a table of learned positions; 0: none
  int token_types = 0;    // rows of a table that is added to the embedding
  bool tied_embeddings = true;
  Patches patches;
  Readout readout = Readout::Lm;
  bool readout_bias = false;
  int classes = 2;       // Classes
  bool pooler = false;   // Classes: a further layer before them
  int later_tokens = 0;  // that are predicted too, see multi_token.cc
  HeadSpec head;

  const BlockForm& block_of(std::size_t layer) const {
    return forms[static_cast<std::size_t>(layers[layer])];
  }
};

/// Returns the kind of tensor that crosses from one module to the next, as heads see it.
SiteKind site_kind(const Transformer& shape);
Transformer read_transformer(ObjectReader& reader);
ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options);

}  // namespace interlock
