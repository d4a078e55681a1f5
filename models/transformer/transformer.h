// Transformer: decoders and encoders of tokens or image patches: embedding, blocks, readout.
// SPDX-License-Identifier: Apache-2.0
//
// Its keys are the rows of transformer_contract.cc, whose defaults describe GPT-2's family without
// dropout. A block is pre-norm: norm, attention, residual, norm, MLP, residual. The last module is
// final norm, vocabulary projection and loss. With experts the MLP of every `expert_interval`th of
// all but the first `dense_layers` blocks is a mixture of them.
//
// Example: images of 224 pixels in patches of 16 have a side of 14 patches: 197 tokens with that of
// the class.
#pragma once

#include "models/layers/head.h"
#include "models/transformer/block_form.h"

namespace interlock {

struct Transformer {
  /// Square images instead of tokens: a patch each, and perhaps one more token for the whole.
  struct Patches {
    int image_size = 0;  // pixels on a side; 0: none
    int size = 1;
    int channels = 3;
    bool class_token = true;
    bool bias = true;
    int side() const { return image_size / size; }
    int tokens() const { return side() * side() + (class_token ? 1 : 0); }
  };
  /// The way from an encoder's tokens to the decoder's: see encoder.cc.
  struct Connector {
    enum class Norm { None, Layer, Rms };
    enum class MergeBy { Concatenation, Mean, Product };
    int merge = 1;  // patches on a side of the square that one token is made of
    MergeBy merge_by = MergeBy::Concatenation;
    Norm norm = Norm::None;
    bool norm_of_square = false;  // of all numbers of a square; else of each patch, or of a mean
    std::vector<int> widths;      // between products; none: there is one
    bool bias = true;
    std::vector<int> deepstack;  // layers of the encoder with a connector of their own
  };
  /// Every token's successor; tokens that were hidden, behind another layer; or one class for all,
  /// read from the first token.
  enum class Readout { Lm, MaskedLm, Classes };

  ResidualStream stream;
  std::vector<BlockForm> forms;  // those that some layer has
  std::vector<int> layers;       // the form of each
  int hash_layers = 0;           // first ones, whose tokens' experts a table says
  int vocab_size = 1;
  bool embedding_norm = false;
  int max_positions = 0;     // rows of a table of learned positions; 0: none
  int position_buckets = 0;  // of relative positions; 0: none
  int token_types = 0;       // rows of a table that is added to the embedding
  bool tied_embeddings = true;
  Patches patches;
  Readout readout = Readout::Lm;
  bool readout_bias = false;
  int classes = 2;                      // Classes
  bool pooler = false;                  // Classes: a further layer before them
  int later_tokens = 0;                 // that are predicted too, see multi_token.cc
  std::optional<BlockForm> later_form;  // of the blocks for them; nothing: the last layer's
  HeadSpec head;
  // At most one. Its images' tokens stand in the sequence, or its words are a source that every
  // block reads.
  std::vector<Transformer> encoder;
  int images = 1;          // of an encoder: of each sample
  bool final_norm = true;  // of an encoder, behind its last block
  Connector connector;     // of an encoder

  /// Returns the tokens that an encoder makes of the images of a sample.
  int image_tokens() const {
    const int side = patches.side() / connector.merge;
    return images * side * side;
  }
  bool reads_source() const { return !encoder.empty() && encoder.front().patches.image_size == 0; }
  const BlockForm& block_of(std::size_t layer) const {
    return forms[static_cast<std::size_t>(layers[layer])];
  }
};

/// Returns the kind of tensor that crosses from one module to the next, as heads see it.
SiteKind site_kind(const Transformer& shape);
/// Returns the rows of its keys: of the model, and of the objects in it.
const std::vector<ContractObject>& transformer_contract();
Transformer read_transformer(Section& reader);
ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options);

}  // namespace interlock
