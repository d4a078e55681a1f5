// Block reader: the keys of one block, written in an item of a layer pattern or in the model.
// SPDX-License-Identifier: Apache-2.0
//
// An item's key takes the place of the model's; null takes it away. Example: in
// {"attention": "fused", "sliding_window": 4096, ...,
//  "layer_pattern": [{}, {"sliding_window": null, "kv_heads": 2}]}
// the second of every two layers reads its `attention` from the model, its `kv_heads` from the
// item, and has no window.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/transformer/transformer.h"

namespace interlock {

/// Reads a block's keys as a Section of the item put over that of the model. A key counts as asked
/// for in both. Ranges and names are those of the rows; a reader gives the default.
class BlockReader {
 public:
  /// Without `item`, every key is the model's.
  BlockReader(Section& model, Section* item) : model_(&model), item_(item) {}

  std::optional<JsonNode> get(std::string_view key);
  /// Returns the value's node, or the place where a value would be expected.
  JsonNode place_of(std::string_view key);
  bool boolean(std::string_view key, bool otherwise);
  double number(std::string_view key, double otherwise);
  int count(std::string_view key, int otherwise);
  std::optional<int> written_count(std::string_view key);
  /// Reports an absent key. Returns 1 after any mistake.
  int required_count(std::string_view key, std::string_view expected);
  /// Returns the index among the names of the key's row in an item.
  int choice(std::string_view key, int otherwise);

  /// Returns true if the item has the key itself.
  bool in_item(std::string_view key);
  Section& model() { return *model_; }
  Diagnostics& diagnostics() { return model_->diagnostics(); }

 private:
  std::optional<JsonNode> own(std::string_view key);

  Section* model_;
  Section* item_;
};

/// A key that is written, and why the block has no use for it.
struct UnusedKey {
  std::string key;
  std::string reason;  // a whole message
};

/// Reads the forms of all layers, with `common` for what no item can change.
/// Adds a diagnostic for each key that does not go with the others, and for each key that no layer
/// uses. REQUIRES: the stream of `shape` is read.
void read_layers(Section& reader, const BlockForm& common, Transformer& shape);

/// Reads the form of the blocks that predict later tokens, an item of a layer pattern.
void read_later_form(Section& reader, const JsonNode& node, const BlockForm& common,
                     Transformer& shape);

// Parts of a block, of which read_layers is made.
void read_attention(BlockReader& reader, BlockForm& block);
void read_mixer(BlockReader& reader, BlockForm& block);
/// Adds a diagnostic for each size that does not fit another. REQUIRES: each is right by itself.
void check_attention(BlockReader& reader, const BlockForm& block);
void append_unused_attention_keys(BlockReader& reader, const BlockForm& block,
                                  std::vector<UnusedKey>& unused);
void append_unused_mixer_keys(BlockReader& reader, const BlockForm& block,
                              std::vector<UnusedKey>& unused);
/// Adds each of `keys` that is written to `unused`.
void append_unused(BlockReader& reader, const std::vector<std::string_view>& keys,
                   const std::string& reason, std::vector<UnusedKey>& unused);

}  // namespace interlock
