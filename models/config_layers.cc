// Config layers: lists, letters and rules, read layer by layer.
// SPDX-License-Identifier: Apache-2.0
#include "models/config_layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

/// Fields that may be lists with a size for each layer, and the keys that they stand for.
constexpr std::pair<std::string_view, std::string_view> kSizes[] = {
    {"num_attention_heads", "attention_heads"},
    {"num_key_value_heads", "kv_heads"},
    {"intermediate_size", "ffn_hidden_size"}};

/// Keys of one layer's item.
using Item = std::vector<JsonMember>;

bool same(const JsonValue& a, const JsonValue& b) {
  return a.kind == b.kind && a.text == b.text && a.number == b.number && a.boolean == b.boolean &&
         std::ranges::equal(a.members, b.members, [](const JsonMember& x, const JsonMember& y) {
           return x.first == y.first && same(x.second, y.second);
         });
}

bool same_item(const Item& a, const Item& b) {
  return std::ranges::equal(a, b, [](const JsonMember& x, const JsonMember& y) {
    return x.first == y.first && same(x.second, y.second);
  });
}

void append_window(const ConfigFields& fields, Item& item) {
  if (const JsonValue* window = fields.find("sliding_window")) {
    item.push_back({"sliding_window", *window});
  }
}

constexpr std::string_view kSparse = "compressed_sparse_attention";
constexpr std::string_view kHeavy = "heavily_compressed_attention";

/// Returns the tokens between two entries in layers of `kind`; 0: they have none.
double compress_rate(const ConfigFields& fields, std::string_view kind) {
  const JsonValue* rates = fields.find("compress_rates");
  const JsonValue* rate = rates != nullptr ? rates->find(kind) : nullptr;
  return rate != nullptr ? rate->number : 0;
}

/// Reads layer by layer.
class LayerReader {
 public:
  explicit LayerReader(const ConfigFields& fields)
      : fields_(fields),
        layers_(static_cast<int>(fields.amount("num_hidden_layers").value_or(0))) {}

  std::vector<Item> items() {
    std::vector<Item> items;
    if (layers_ < 1 || layers_ > 100'000 || !lists_fit()) return items;
    for (int i = 0; i < layers_; ++i) {
      Item item;
      if (fields_.find("hybrid_override_pattern")) {
        put_letter(i, item);
      } else {
        put_mixer(i, item);
        put_feed_forward(i, item);
        put_sizes(i, item);
      }
      items.push_back(std::move(item));
    }
    return items;
  }

 private:
  double amount(std::string_view field, double otherwise) const {
    return fields_.amount(field).value_or(otherwise);
  }
  /// Returns true if `i` is behind as many others of a period, of which a field says the length.
  bool ends_period(int i, std::string_view field, double otherwise) const {
    const int period = static_cast<int>(amount(field, otherwise));
    return period > 0 && (i + 1) % period == 0;
  }
  /// Returns a list that has entries; null where a field has none.
  const JsonValue* list(std::string_view field) const {
    const JsonValue* value = fields_.find(field);
    return value != nullptr && !value->items.empty() ? value : nullptr;
  }
  const JsonValue* entry(std::string_view field, int i) const {
    const JsonValue* found = list(field);
    return found != nullptr ? &found->items[static_cast<std::size_t>(i)] : nullptr;
  }
  bool listed(std::string_view field, int i) const {
    const JsonValue* found = list(field);
    return found != nullptr &&
           std::ranges::any_of(found->items, [&](const JsonValue& one) { return one.number == i; });
  }

  /// Refuses the first of `ratios` that no kind of layer has.
  bool knows_ratios(const JsonValue& ratios) const {
    const double sparse = compress_rate(fields_, kSparse), heavy = compress_rate(fields_, kHeavy);
    const auto unknown = std::ranges::find_if(ratios.items, [&](const JsonValue& ratio) {
      return ratio.number != 0 && ratio.number != sparse && ratio.number != heavy;
    });
    if (unknown == ratios.items.end()) return true;
    fields_.refuse("compress_ratios", "layer " + std::to_string(unknown - ratios.items.begin()) +
                                          " has " + format_number(unknown->number) +
                                          "; expected 0 or one of \"compress_rates\", " +
                                          format_number(sparse) + " and " + format_number(heavy));
    return false;
  }

  /// Refuses what is no list, and entries that are of another kind.
  bool is_list(std::string_view field, Kind kind, const char* entries) const {
    const JsonValue* value = fields_.find(field);
    if (value == nullptr || !fields_.is_true(field)) return true;
    const auto wrong =
        std::ranges::find_if(value->items, [&](const JsonValue& one) { return one.kind != kind; });
    const bool is = value->kind == Kind::Array;
    if (is && wrong == value->items.end()) return true;
    fields_.refuse(field, described(is ? *wrong : *value) + (is ? " in the list" : "") +
                              "; expected a list of " + entries);
    return false;
  }

  /// Lists that have an entry for each layer, or numbers of layers.
  bool lists_fit() const {
    bool fit = is_list("layer_types", Kind::String, "names, one for each layer");
    fit = is_list("no_rope_layers", Kind::Number, "zeros and ones, one for each layer") && fit;
    fit = is_list("mlp_layer_types", Kind::String, "names, one for each layer") && fit;
    fit = is_list("block_configs", Kind::Object, "objects, one for each layer") && fit;
    fit = is_list("mlp_only_layers", Kind::Number, "numbers of layers") && fit;
    fit = is_list("moe_layers", Kind::Number, "numbers of layers") && fit;
    fit = is_list("ffn_multipliers", Kind::Number, "numbers, one for each layer") && fit;
    for (const char* field :
         {"layer_types", "no_rope_layers", "mlp_layer_types", "num_attention_heads",
          "num_key_value_heads", "intermediate_size", "ffn_multipliers", "block_configs"}) {
      const JsonValue* found = list(field);
      if (found == nullptr || static_cast<int>(found->items.size()) == layers_) continue;
      fields_.refuse(field, std::to_string(found->items.size()) + " entries for " +
                                std::to_string(layers_) + " layers; expected as many");
      fit = false;
    }
    if (const JsonValue* ratios = list("compress_ratios")) {
      fit = is_list("compress_ratios", Kind::Number, "numbers, one for each layer") && fit;
      if (static_cast<int>(ratios->items.size()) < layers_) {
        fields_.refuse("compress_ratios", std::to_string(ratios->items.size()) + " entries for " +
                                              std::to_string(layers_) +
                                              " layers; expected one for each");
        fit = false;
      }
      fit = fit && knows_ratios(*ratios);
    }
    const JsonValue* letters = fields_.find("hybrid_override_pattern");
    const bool used = letters != nullptr && list("layer_types") == nullptr;
    if (used && static_cast<int>(letters->text.size()) != layers_) {
      fields_.refuse("hybrid_override_pattern", std::to_string(letters->text.size()) +
                                                    " letters for " + std::to_string(layers_) +
                                                    " layers; expected as many");
      fit = false;
    }
    return fit;
  }

  /// Returns the letter of a layer, which newer files of Nemotron-H say by its name.
  char letter_of(int i) const {
    const JsonValue* type = entry("layer_types", i);
    if (type == nullptr) {
      return fields_.word("hybrid_override_pattern")[static_cast<std::size_t>(i)];
    }
    for (const auto& [name, letter] : {std::pair("mamba", 'M'), std::pair("attention", '*'),
                                       std::pair("mlp", '-'), std::pair("moe", 'E')}) {
      if (type->text == name) return letter;
    }
    return '?';
  }

  /// Nemotron-H: a layer is a mixer, or a feed-forward.
  void put_letter(int i, Item& item) const {
    const char letter = letter_of(i);
    const std::optional<HybridForm> form = hybrid_form(letter);
    if (!form && entry("layer_types", i) != nullptr) {
      return fields_.refuse("layer_types", "unknown layer " +
                                               in_quotes(entry("layer_types", i)->text) +
                                               "; expected mamba, attention, mlp or moe");
    }
    if (!form) {
      return fields_.refuse("hybrid_override_pattern",
                            "unknown letter " + in_quotes(std::string(1, letter)) +
                                "; expected M (Mamba 2), * (attention), - (MLP) or E (experts)");
    }
    if (form->attention) item.push_back({"attention", json_text(form->attention)});
    item.push_back({"ffn", json_text(form->ffn)});
  }

  std::string kind_of(int i) const {
    if (const JsonValue* type = entry("layer_types", i)) return type->text;
    if (fields_.find("full_attention_interval")) {
      return ends_period(i, "full_attention_interval", 4) ? "full_attention" : "linear_attention";
    }
    if (fields_.find("attn_layer_period")) {
      const int period = static_cast<int>(amount("attn_layer_period", 1));
      const int offset = static_cast<int>(amount("attn_layer_offset", 0));
      return period > 0 && i % period == offset ? "full_attention" : "mamba";
    }
    if (fields_.find("mamba_num_heads")) return "mamba";
    if (fields_.find("attention_chunk_size")) {
      return has_rotary(i) ? "chunked_attention" : "full_attention";
    }
    return has_window(i) ? "sliding_attention" : "full_attention";
  }

  /// Llama 4: a list of ones and zeros, or every nth layer without positions. Cohere 2, EXAONE 4:
  /// layers with windows alone.
  bool has_rotary(int i) const {
    if (fields_.is_true("rotary_in_windows") && fields_.find("sliding_window")) {
      return kind_of(i) == "sliding_attention";
    }
    if (const JsonValue* turns = entry("no_rope_layers", i)) return turns->number != 0;
    if (!fields_.find("no_rope_layer_interval")) return true;
    return !ends_period(i, "no_rope_layer_interval", 4);
  }

  bool has_window(int i) const {
    if (!fields_.find("sliding_window")) return false;
    if (fields_.find("use_sliding_window")) {  // Qwen's: layers behind the first ones, if any
      return fields_.is_true("use_sliding_window") && i >= amount("max_window_layers", 0);
    }
    const std::string letters = fields_.word("sliding_window_pattern");  // LLLG: local, global
    if (!letters.empty()) return letters[static_cast<std::size_t>(i) % letters.size()] == 'L';
    if (fields_.find("sliding_window_pattern")) return !ends_period(i, "sliding_window_pattern", 1);
    return true;
  }

  void put_mixer(int i, Item& item) const {
    if (sees_entries(fields_)) return append_entries(fields_, i, item);
    const std::string kind = kind_of(i);
    if (kind == "sliding_attention") {
      append_window(fields_, item);
    } else if (kind == "chunked_attention") {
      if (const JsonValue* chunk = fields_.find("attention_chunk_size")) {
        item.push_back({"attention_chunk", *chunk});
      }
    } else if (kind == "linear_attention") {
      item.push_back({"attention", json_text("gated-delta")});
    } else if (kind == "mamba") {
      const bool second = fields_.find("mamba_num_heads") != nullptr;
      item.push_back({"attention", json_text(second ? "mamba2" : "mamba")});
    } else if (kind != "full_attention" && kind != "attention") {
      fields_.refuse("layer_types",
                     "unknown layer " + in_quotes(kind) +
                         "; expected full_attention, sliding_attention, chunked_attention, "
                         "linear_attention or mamba");
    }
    if (!has_rotary(i)) item.push_back({"positions", json_text("none")});
  }

  /// Tells where experts are by rules that "dense_layers" and "expert_interval" cannot say.
  bool says_experts() const {
    return fields_.is_true("n_routed_experts") && !sees_entries(fields_) &&
           (fields_.is_true("mlp_only_layers") || fields_.is_true("moe_layers") ||
            fields_.is_true("mlp_layer_types") || fields_.find("expert_layer_period") ||
            fields_.find("moe_layer_start_index") || amount("decoder_sparse_step", 1) != 1 ||
            amount("interleave_moe_layer_step", 1) != 1);
  }

  bool has_experts(int i) const {
    if (const JsonValue* type = entry("mlp_layer_types", i)) return type->text != "dense";
    if (fields_.find("moe_layers")) return listed("moe_layers", i);
    if (fields_.find("interleave_moe_layer_step")) {
      return ends_period(i, "interleave_moe_layer_step", 1);
    }
    if (fields_.find("expert_layer_period")) {
      const int period = static_cast<int>(amount("expert_layer_period", 1));
      return period > 0 && i % period == static_cast<int>(amount("expert_layer_offset", 0));
    }
    if (fields_.find("moe_layer_start_index")) {
      const JsonValue* end = fields_.find("moe_layer_end_index");
      const double last = end != nullptr ? end->number : -1;  // -1: to the end
      return i >= amount("moe_layer_start_index", 0) && (last < 0 || i <= last) &&
             ends_period(i, "moe_layer_interval", 1);
    }
    return !listed("mlp_only_layers", i) && ends_period(i, "decoder_sparse_step", 1);
  }

  void put_feed_forward(int i, Item& item) const {
    if (!says_experts()) return;
    item.push_back({"ffn", json_text(has_experts(i) ? "experts" : "dense")});
  }

  /// Heads and widths of each layer, as lists or as blocks that a search has chosen.
  void put_sizes(int i, Item& item) const {
    for (const auto& [field, key] : kSizes) {
      if (const JsonValue* size = entry(field, i)) item.push_back({std::string(key), *size});
    }
    if (const JsonValue* multiple = entry("ffn_multipliers", i)) {
      put_multiple(multiple->number, item);
    }
    if (const JsonValue* block = entry("block_configs", i)) put_block(*block, item);
  }

  /// OpenELM: widths are rounded to a multiple of the divisor, but by no more than a tenth down.
  /// Source: make_divisible of apple/corenet (recalled; the published count holds it).
  void put_multiple(double multiple, Item& item) const {
    const double width = multiple * amount("hidden_size", 1);
    const double unit = std::max(amount("ffn_dim_divisor", 256), 1.0);
    double rounded = std::max(unit, std::floor((width + unit / 2) / unit) * unit);
    if (rounded < 0.9 * width) rounded += unit;
    item.push_back({"ffn_hidden_size", json_number(rounded)});
  }

  /// DeciLM, Llama-Nemotron: either half may be missing; heads share keys by groups, and the width
  /// of an MLP is 2/3 of a multiple of hidden_size, rounded up. Source: modeling_decilm.py of
  /// nvidia/Llama-3_3-Nemotron-Super-49B-v1 (recalled; its published count holds it).
  void put_block(const JsonValue& block, Item& item) const {
    constexpr double kWidths = 256;
    const auto find = [&](std::string_view half, std::string_view key) -> const JsonValue* {
      const JsonValue* found = block.find(half);
      return found != nullptr ? found->find(key) : nullptr;
    };
    const auto says = [&](std::string_view half, std::string_view key) {
      const JsonValue* value = find(half, key);
      return value != nullptr && value->kind != Kind::Null &&
             (value->kind != Kind::Boolean || value->boolean);
    };
    for (const auto& [half, key] :
         {std::pair("attention", "replace_with_linear"), std::pair("attention", "num_sink_tokens"),
          std::pair("attention", "window_length"), std::pair("ffn", "replace_with_linear"),
          std::pair("attention", "sparsify"), std::pair("ffn", "sparsify")}) {
      if (!says(half, key)) continue;
      fields_.refuse("block_configs", "a block with " + in_quotes(key) +
                                          " is not known here; expected blocks with \"no_op\", "
                                          "\"n_heads_in_group\" and \"ffn_mult\" alone");
      return;
    }
    const JsonValue* group = find("attention", "n_heads_in_group");
    if (says("attention", "no_op")) {
      item.push_back({"attention", json_text("none")});
    } else if (group != nullptr && group->number >= 1) {
      item.push_back(
          {"kv_heads", json_number(std::max(
                           std::floor(amount("num_attention_heads", 1) / group->number), 1.0))});
    }
    const JsonValue* multiple = find("ffn", "ffn_mult");
    if (says("ffn", "no_op")) {
      item.push_back({"ffn", json_text("none")});
    } else if (multiple != nullptr) {
      const double width = std::floor(2 * multiple->number * amount("hidden_size", 1) / 3);
      item.push_back({"ffn_hidden_size", json_number(std::ceil(width / kWidths) * kWidths)});
    }
  }

  const ConfigFields& fields_;
  int layers_ = 0;
};

/// Returns how many of the first items give all of them when they are repeated.
std::size_t period_of(const std::vector<Item>& items) {
  for (std::size_t period = 1; period < items.size(); ++period) {
    bool repeats = true;
    for (std::size_t i = period; repeats && i < items.size(); ++i) {
      repeats = same_item(items[i], items[i - period]);
    }
    if (repeats) return period;
  }
  return items.size();
}

/// Returns the keys of attention of layer `i` to entries; nothing after a mistake. Source:
/// modeling_deepseek_v4.py of huggingface/transformers 0197608; lists of ratios are those
/// of the published files, which go on with the layers for later tokens.
std::optional<JsonValue> entries_of_layer(const ConfigFields& fields, int i) {
  const auto at = static_cast<std::size_t>(i);
  const auto rate_of = [&](std::string_view kind) { return compress_rate(fields, kind); };
  const bool last = i >= fields.amount("num_hidden_layers").value_or(0);
  double ratio = 0;
  if (const JsonValue* ratios = fields.find("compress_ratios")) {
    ratio = at < ratios->items.size() ? ratios->items[at].number : 0;
  } else if (const JsonValue* kinds = fields.find("layer_types")) {
    const std::string kind = at < kinds->items.size() ? kinds->items[at].text : "sliding_attention";
    ratio = rate_of(kind);
    if (ratio == 0 && kind != "sliding_attention") {
      fields.refuse("layer_types", "unknown layer " + in_quotes(kind) +
                                       "; expected sliding_attention, compressed_sparse_attention "
                                       "or heavily_compressed_attention");
      return std::nullopt;
    }
  } else if (!last) {
    ratio = rate_of(i > 1 && i % 2 == 1 ? kSparse : kHeavy);  // the default of the class
  }
  JsonValue entries = json_object({});
  const auto copy = [&](std::string_view field, std::string_view key, JsonValue& object) {
    if (const JsonValue* value = fields.find(field)) {
      object.members.push_back({std::string(key), *value});
    }
  };
  copy("q_lora_rank", "query_rank", entries);
  copy("qk_rope_head_dim", "rotary_head_size", entries);
  copy("o_groups", "output_groups", entries);
  copy("o_lora_rank", "output_rank", entries);
  if (ratio > 0) entries.members.push_back({"ratio", json_number(ratio)});
  if (ratio > 0 && ratio == rate_of(kSparse)) {
    JsonValue selection = json_object({});
    copy("index_topk", "entries", selection);
    copy("index_n_heads", "index_heads", selection);
    copy("index_head_dim", "index_head_size", selection);
    entries.members.push_back({"overlap", json_boolean(true)});
    entries.members.push_back({"selection", std::move(selection)});
  }
  place_at(*fields.config().value, entries);
  return entries;
}

}  // namespace

bool sees_entries(const ConfigFields& fields) { return fields.find("o_lora_rank") != nullptr; }

void append_entries(const ConfigFields& fields, int i, std::vector<JsonMember>& form) {
  append_window(fields, form);
  if (auto entries = entries_of_layer(fields, i)) {
    form.push_back({"compressed_attention", *std::move(entries)});
  }
}

std::optional<HybridForm> hybrid_form(char letter) {
  switch (letter) {
    case 'M':
      return HybridForm{"mamba2", "none"};
    case '*':
      return HybridForm{nullptr, "none"};
    case '-':
      return HybridForm{"none", "dense"};
    case 'E':
      return HybridForm{"none", "experts"};
    default:
      return std::nullopt;
  }
}

void put_layers(const ConfigFields& fields, JsonValue& model) {
  const std::vector<Item> items = LayerReader(fields).items();
  if (items.empty()) return;
  for (const JsonMember& size : items.front()) {
    std::erase_if(model.members, [&](const JsonMember& one) {
      return one.first == size.first && one.second.kind == Kind::Array;
    });
  }
  const std::size_t period = period_of(items);
  if (period == 1) {
    for (const JsonMember& member : items.front()) {
      if (member.first == "attention" || member.first == "positions") {
        std::erase_if(model.members, [&](const JsonMember& m) { return m.first == member.first; });
      }
      model.members.push_back(member);
    }
    return;
  }
  JsonValue pattern = {.kind = Kind::Array};
  for (std::size_t i = 0; i < period; ++i) {
    if (i > 0 && same_item(items[i], items[i - 1])) {
      pattern.items.back().members.front().second.number += 1;
      continue;
    }
    JsonValue item = json_object({{"repeat", json_number(1)}});
    item.members.insert(item.members.end(), items[i].begin(), items[i].end());
    pattern.items.push_back(std::move(item));
  }
  place_at(*fields.config().value, pattern);
  model.members.push_back({"layer_pattern", std::move(pattern)});
}

}  // namespace interlock
