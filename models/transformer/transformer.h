// Transformer: decoders and encoders of tokens or image patches: embedding, blocks, readout.
// SPDX-License-Identifier: Apache-2.0
//
// Defaults describe GPT-2's family without dropout. A block is pre-norm: norm, attention, residual,
// norm, MLP, residual. The last module is final norm, vocabulary projection and loss. With experts
// the MLP of every `expert_interval`th of all but the first `dense_layers` blocks is a mixture of
// them.
#pragma once

#include "base/contract/section.h"
#include "models/layers/head.h"

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
    bool shared_gate = false;               // what they add is weighed by a gate
    bool router_bias = false;               // a number for each expert, added to its score
    std::optional<double> capacity_factor;  // buffers of fixed size: see feed_forward.cc
    int dense_layers = 0;                   // blocks before the first that may have experts
    int interval = 1;                       // of these, those whose number it divides have some
    bool in_layer(int layer) const {
      return count > 0 && layer >= dense_layers && layer % interval == 0;
    }
  };
  /// Linear layers that have a bias.
  struct Bias {
    bool qkv = true, projection = true, mlp = true;
  };
  /// Ranks of what queries, and keys and values, are made of: see latent_attention.cc.
  struct Latents {
    int query_rank = 0;  // 0: queries are made of the tokens themselves
    int kv_rank = 0;     // 0: no latents at all
    int rotary_head_size = 1;
  };
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

  int layers = 1;
  int hidden_size = 1;
  int attention_heads = 1;
  int kv_heads = 1;         // fewer than attention_heads: grouped-query attention
  int head_size = 1;        // of queries and keys
  int value_head_size = 1;  // another with latents only
  int ffn_hidden_size = 4;
  int vocab_size = 1;
  int sequence_length = 1;
  bool gated_mlp = false;
  bool rms_norm = false;   // else layer norm
  bool post_norm = false;  // norms stand behind the sums, and none before the readout
  bool embedding_norm = false;
  Bias bias;                       // of the blocks; the vocabulary projection has none
  bool qk_norm = false;            // RMS norms of each head's queries and keys
  bool parallel_residual = false;  // attention and MLP read the same and are added together
  Positions positions = Positions::Learned;
  int max_positions = 1;    // Learned: rows of the position table
  double rotary_share = 1;  // Rotary: of each head's elements
  int token_types = 0;      // rows of a table that is added to the embedding
  bool tied_embeddings = true;
  double dropout = 0;  // only whether there is any matters
  Attention attention = Attention::Materialised;
  int chunk_size = 1;          // Retention: tokens
  std::optional<int> window;   // tokens that a token sees: itself and those before it
  bool bidirectional = false;  // tokens see those behind them too
  Latents latents;
  Patches patches;
  Readout readout = Readout::Lm;
  int classes = 2;            // Classes
  bool pooler = false;        // Classes: a further layer before them
  bool causal_flops = false;  // MFU counts half of the attention matrix; no time follows
  Experts experts;
  HeadSpec head;
  std::optional<TokenSlice> slice;  // this part of each sequence, alone
};

/// Returns the kind of tensor that crosses from one module to the next, as heads see it.
SiteKind site_kind(const Transformer& shape);
/// Returns the rows of its keys: of the model, of its latents, and of its patches.
const std::vector<ContractObject>& transformer_contract();
Transformer read_transformer(Section& reader);
ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options);

}  // namespace interlock
