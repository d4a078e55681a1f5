// Layer pattern: the forms of a model's blocks, and which layer has which.
// SPDX-License-Identifier: Apache-2.0
//
// The items of "layer_pattern" follow one another, each as often as its "repeat" says, and then
// from the first again until all layers have one. Without a pattern all layers are of one item that
// says nothing. A layer whose item says nothing of "ffn" has experts where "dense_layers" and
// "expert_interval" let it.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "models/transformer/block_reader.h"

namespace interlock {
namespace {

constexpr std::string_view kNoWindow =
    "states are handed on to later tokens; expected no \"bidirectional\"";

/// One item of the pattern.
struct Item {
  BlockForm block;
  int repeat = 1;
  bool says_ffn = false;
  std::vector<UnusedKey> unused;
};

void read_feed_forward(BlockReader& reader, Item& item) {
  BlockForm& b = item.block;
  const auto written = reader.get("ffn");
  item.says_ffn = written.has_value();
  const int otherwise = b.experts.count > 0 ? 1 : 0;
  b.ffn = static_cast<FeedForward>(reader.choice("ffn", otherwise));
  b.ffn_hidden_size = reader.count("ffn_hidden_size", 4 * b.stream.hidden_size);
  if (written && b.ffn == FeedForward::Experts && b.experts.count == 0) {
    report(reader.diagnostics(), *written, "no experts; expected \"experts\" with their number");
  }
}

void append_unused_keys(BlockReader& reader, Item& item) {
  const BlockForm& b = item.block;
  append_unused_mixer_keys(reader, b, item.unused);
  if (b.ffn == FeedForward::None) {
    append_unused(reader, {"ffn_hidden_size", "gated_mlp", "mlp_bias", "clamped_mlp"},
                  "no MLP in these layers; expected it with an \"ffn\" that is not \"none\"",
                  item.unused);
  }
  if (item.says_ffn) {
    append_unused(reader, {"dense_layers", "expert_interval"},
                  "\"ffn\" says which layers have experts; expected one of the two", item.unused);
  }
  if (item.says_ffn && b.ffn != FeedForward::Experts) {
    append_unused(reader, {"experts"}, "no layer has them; expected an \"ffn\" of \"experts\"",
                  item.unused);
  }
}

void check_block(BlockReader& reader, const BlockForm& b) {
  const auto refuse = [&](bool wrong, std::string_view key, std::string_view message) {
    if (wrong) report(reader.diagnostics(), reader.place_of(key), message);
  };
  const bool attention = attends(b.mixer) || b.mixer == Mixer::Retention;
  if (attention) check_attention(reader, b);
  const bool empty = b.mixer == Mixer::None && b.ffn == FeedForward::None;
  refuse(empty, "ffn", "a layer of nothing; expected another \"attention\" or \"ffn\"");
  refuse(!attention && b.mixer != Mixer::None && b.stream.bidirectional, "bidirectional",
         kNoWindow);
  if (!b.parallel_residual) return;
  refuse(b.stream.norm_position != NormPosition::Pre, "parallel_residual",
         "attention and MLP side by side have norms before them; expected \"norm_position\": "
         "\"pre\"");
  refuse(b.mixer == Mixer::None || b.ffn == FeedForward::None, "parallel_residual",
         "attention and MLP side by side are both there; expected no \"none\" of the two");
}

Item read_item(Section& model, Section* own, const BlockForm& common) {
  Item item = {.block = common};
  BlockReader reader(model, own);
  if (own != nullptr) item.repeat = own->count("repeat");
  read_mixer(reader, item.block);
  read_feed_forward(reader, item);
  append_unused_keys(reader, item);
  if (own != nullptr) own->finish();
  if (!reader.diagnostics().empty()) return item;
  check_block(reader, item.block);
  for (const UnusedKey& one : item.unused) {
    if (reader.in_item(one.key)) report(reader.diagnostics(), *reader.get(one.key), one.reason);
  }
  return item;
}

/// Stops at the first item that is wrong: what the model says wrongly, each item would repeat.
std::vector<Item> read_items(Section& reader, const BlockForm& common) {
  const auto pattern = reader.get("layer_pattern");
  const bool list =
      pattern && pattern->value->kind == JsonValue::Kind::Array && !pattern->value->items.empty();
  if (pattern && !list) {
    report(reader.diagnostics(), *pattern,
           "expected a list of the forms that layers have in turn, e.g. [{\"repeat\": 5, "
           "\"sliding_window\": 1024}, {}]");
  }
  if (!list) return {read_item(reader, nullptr, common)};
  std::vector<Item> items;
  for (std::size_t i = 0; i < pattern->value->items.size(); ++i) {
    Section own(contract_object(transformer_contract(), "model.transformer.layer_pattern"),
                pattern->item(i), reader.diagnostics());
    items.push_back(read_item(reader, &own, common));
    if (!reader.diagnostics().empty()) break;
  }
  return items;
}

/// Reports keys of the model that no item has a use for.
void refuse_unused(Section& reader, const std::vector<Item>& items) {
  for (const UnusedKey& one : items.front().unused) {
    const auto useless = [&](const Item& item) {
      return std::ranges::any_of(item.unused,
                                 [&](const UnusedKey& other) { return other.key == one.key; });
    };
    const auto node = reader.get(one.key);
    if (node && std::ranges::all_of(items, useless)) {
      report(reader.diagnostics(), *node, one.reason);
    }
  }
}

}  // namespace

void read_layers(Section& reader, const BlockForm& common, Transformer& t) {
  const int layers = reader.required_count("layers", "a number of blocks");
  const int dense_layers = reader.count("dense_layers");
  const int interval = reader.count("expert_interval");
  const std::vector<Item> items = read_items(reader, common);
  if (!reader.diagnostics().empty()) return;
  refuse_unused(reader, items);
  std::map<std::tuple<std::size_t, FeedForward, bool>, int> known;
  std::size_t item = 0;
  int left = items.front().repeat;
  for (int i = 0; i < layers; ++i, --left) {
    if (left == 0) {
      item = (item + 1) % items.size();
      left = items[item].repeat;
    }
    BlockForm block = items[item].block;
    const bool dense = i < dense_layers || i % interval != 0;
    if (!items[item].says_ffn && dense) block.ffn = FeedForward::Dense;
    if (i < t.hash_layers) block.experts.router_bias = false;
    const auto [found, added] = known.insert({{item, block.ffn, block.experts.router_bias}, 0});
    if (added) {
      // Items of long patterns are often alike.
      const auto same = std::ranges::find(t.forms, block);
      found->second = static_cast<int>(same - t.forms.begin());
      if (same == t.forms.end()) t.forms.push_back(block);
    }
    t.layers.push_back(found->second);
  }
}

void read_later_form(Section& reader, const JsonNode& node, const BlockForm& common,
                     Transformer& t) {
  Section own(contract_object(transformer_contract(), "model.transformer.layer_pattern"), node,
              reader.diagnostics());
  const Item item = read_item(reader, &own, common);
  if (item.repeat > 1) {
    report(reader.diagnostics(), *own.get("repeat"),
           "all blocks for later tokens are of this form; expected \"layers\" beside it");
  }
  t.later_form = item.block;
}

}  // namespace interlock
