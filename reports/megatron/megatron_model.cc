// Megatron model: maps arguments to the keys of a transformer.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/megatron_model.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "models/config_layers.h"
#include "models/layers/model_contract.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// Arguments of models that have no counterpart, each with what it is a sign of.
struct OtherModel {
  const char* name;
  const char* model;
};
constexpr OtherModel kOtherModels[] = {
    {"perform-rl-step", "reinforcement learning"},
    {"grpo-iterations", "reinforcement learning"},
    {"langrl-env-config", "reinforcement learning"},
    {"dataset-provider", "a model of images and text"},
    {"language-model-checkpoint", "a model of images and text"},
    {"vision-model-type", "a model of images and text"},
    {"img-h", "a model of images and text"},
    {"linear-attention-freq", "a model with linear attention"},
    {"experimental-attention-variant", "a model with an attention of its own"},
    {"retro-encoder-layers", "a model that retrieves (RETRO)"},
    {"heterogeneous-layers-config-path", "a model whose layers differ"},
    {"heterogeneous-layers-config-encoded-json", "a model whose layers differ"},
};

/// Returns true, with a diagnostic, if the arguments are of a model that is none of ours.
bool is_other_model(Settings& a) {
  for (const OtherModel& other : kOtherModels) {
    if (!a.flag(other.name) || a.text(other.name) == "dsa") continue;
    a.refuse(other.name, std::string("says ") + other.model +
                             ", which has no counterpart; expected a GPT or a BERT");
    return true;
  }
  return false;
}

void copy_count(Settings& from, const char* name, Json& to, const char* key) {
  if (const auto value = from.count(name)) to[key] = *value;
}

/// Returns the indexer of tokens that are chosen; what is priced is fused kernels and a loss.
Json selection_of(Settings& a) {
  if (a.count("dsa-indexer-topk-freq").value_or(1) > 1) {
    a.refuse("dsa-indexer-topk-freq", "every layer has an indexer of its own; expected 1");
  }
  const auto share = a.number("dsa-indexer-loss-coeff");
  if (!share || *share == 0) {
    a.remark(share ? "dsa-indexer-loss-coeff" : "experimental-attention-variant",
             "the indexer learns, and its loss takes time, as with a dsa-indexer-loss-coeff "
             "above 0");
  } else if (!a.flag("dsa-indexer-use-sparse-loss")) {
    a.remark("experimental-attention-variant",
             "the indexer learns from what was chosen alone (dsa-indexer-use-sparse-loss)");
  }
  const auto backend = a.text("dsa-kernel-backend");
  if (backend.value_or("none") == "none") {
    a.remark(backend ? "dsa-kernel-backend" : "experimental-attention-variant",
             "attention to what was chosen is priced as fused kernels (dsa-kernel-backend "
             "tilelang)");
  }
  return {{"tokens", a.count("dsa-indexer-topk").value_or(2048)},
          {"index_heads", a.count("dsa-indexer-n-heads").value_or(64)},
          {"index_head_size", a.count("dsa-indexer-head-dim").value_or(128)}};
}

void add_attention(Settings& a, Json& model) {
  copy_count(a, "kv-channels", model, "head_size");
  const auto groups = a.count("num-query-groups");
  if (a.flag("group-query-attention")) model["kv_heads"] = groups.value_or(1);
  if (a.flag("qk-layernorm")) model["qk_norm"] = true;
  if (a.flag("attention-output-gate")) model["attention_gate"] = true;
  if (a.text("softmax-type") == "learnable") model["attention_sinks"] = true;
  const std::string backend = a.text("attention-backend").value_or("auto");
  const bool local = a.text("transformer-impl").value_or("transformer_engine") == "local";
  const bool stored = backend == "unfused" || backend == "local" || local;
  model["attention"] = a.flag("use-flash-attn") || !stored ? "fused" : "materialised";
  const bool chosen = a.text("experimental-attention-variant") == "dsa";
  if (!a.flag("multi-latent-attention")) {
    if (chosen) {
      a.refuse("experimental-attention-variant",
               "dsa chooses among latents; expected --multi-latent-attention beside it");
    }
    return;
  }
  for (const char* key : {"head_size", "kv_heads", "qk_norm", "attention_gate"}) model.erase(key);
  Json latents;
  copy_count(a, "q-lora-rank", latents, "query_rank");
  latents["kv_rank"] = a.count("kv-lora-rank").value_or(32);
  latents["head_size"] = a.count("qk-head-dim").value_or(128);
  latents["rotary_head_size"] = a.count("qk-pos-emb-head-dim").value_or(64);
  latents["value_head_size"] = a.count("v-head-dim").value_or(128);
  if (chosen) latents["selection"] = selection_of(a);
  model["latent_attention"] = latents;
}

void add_positions(Settings& a, Json& model) {
  const std::string kind = a.text("position-embedding-type").value_or("learned_absolute");
  const bool known = kind == "rope" || kind == "yarn" || kind == "mrope";
  // Latents have rotary positions whatever else is said.
  const bool rotary =
      a.flag("use-rotary-position-embeddings") || known || a.flag("multi-latent-attention");
  const bool relative = kind == "relative";
  if (kind != "learned_absolute" && kind != "none" && !rotary && !relative) {
    a.refuse("position-embedding-type",
             "expected learned_absolute, rope, yarn, mrope, relative or none");
  }
  // YaRN's factor is 1 with latents, whose two scales are alike.
  if (kind == "yarn" && !a.flag("multi-latent-attention")) model["scaled_rotation"] = true;
  model["positions"] = rotary ? "rotary" : kind == "none" ? "none" : "learned";
  if (relative) {
    model["positions"] = "relative";
    copy_count(a, "relative-attention-num-buckets", model, "position_buckets");
  }
  if (const auto share = a.number("rotary-percent"); share && rotary && *share != 1)
    model["rotary_share"] = *share;
  const auto positions = a.count("max-position-embeddings");
  if (positions && model["positions"] == "learned") model["max_positions"] = *positions;
}

constexpr std::size_t kMostListed = 10'000;  // layers

/// Reads one "[0,1]" that `text` begins with, and takes it off. Nothing: another form.
std::optional<std::vector<bool>> take_list(std::string_view& text) {
  const std::size_t close = text.find(']');
  if (close == text.npos) return std::nullopt;
  std::vector<bool> items;
  for (const char c : text.substr(1, close - 1)) {
    if (c == '0' || c == '1')
      items.push_back(c == '1');
    else if (c != ',' && c != ' ')
      return std::nullopt;
  }
  text.remove_prefix(close + 1);
  return items;
}

void skip(std::string_view& text, std::string_view letters) {
  text.remove_prefix(std::min(text.find_first_not_of(letters), text.size()));
}

/// Reads the "*3" that `text` may begin with, and takes it off; 1 without one. Nothing: another
/// form.
std::optional<std::size_t> take_factor(std::string_view& text) {
  skip(text, " ");
  if (!text.starts_with('*')) return 1;
  text.remove_prefix(1);
  skip(text, " ");
  std::size_t times = 0;
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), times);
  if (failed != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return times;
}

/// Reads "([0]*3+[1]*11)": for each layer whether it has experts. Nothing: another form.
std::optional<std::vector<bool>> listed_layers(std::string_view text) {
  std::vector<bool> all;
  for (;;) {
    skip(text, "()+, ");
    if (text.empty()) break;
    if (text[0] != '[') return std::nullopt;
    const std::optional<std::vector<bool>> once = take_list(text);
    const std::optional<std::size_t> times = once ? take_factor(text) : std::nullopt;
    if (!times || *times > kMostListed / std::max<std::size_t>(once->size(), 1) ||
        all.size() > kMostListed) {
      return std::nullopt;
    }
    for (std::size_t n = 0; n < *times; ++n) all.insert(all.end(), once->begin(), once->end());
  }
  return all.empty() ? std::nullopt : std::optional(all);
}

/// A number N: every Nth layer has experts. A list: a form for each run of layers that are alike.
void add_expert_layers(Settings& a, Json& model) {
  const auto pattern = a.text("moe-layer-freq");
  if (!pattern) return;
  const bool number = pattern->find_first_not_of("0123456789") == pattern->npos;
  if (number) {
    const int every = a.count("moe-layer-freq").value_or(1);
    if (every > 1) model["expert_interval"] = every;
    return;
  }
  const auto layers = listed_layers(*pattern);
  const int count = model["layers"].get<int>();
  if (!layers || static_cast<int>(layers->size()) != count ||
      std::ranges::find(*layers, true) == layers->end()) {
    a.refuse("moe-layer-freq", "expected a number, or a list for all " + std::to_string(count) +
                                   " layers with experts in one, e.g. ([0]*1+[1]*" +
                                   std::to_string(count - 1) + ")");
    return;
  }
  Json forms = Json::array();
  for (std::size_t i = 0; i < layers->size(); ++i) {
    if (i == 0 || (*layers)[i] != (*layers)[i - 1]) {
      forms.push_back({{"ffn", (*layers)[i] ? "experts" : "dense"}, {"repeat", 0}});
    }
    forms.back()["repeat"] = forms.back()["repeat"].get<int>() + 1;
  }
  if (forms.size() == 2 && !layers->front()) {
    model["dense_layers"] = forms[0]["repeat"];
  } else if (forms.size() > 1) {
    model["layer_pattern"] = forms;
  }
}

/// Returns for each layer whether it has a window: all but every Nth, or as a list says. Source:
/// is_layer_window_attention in megatron/core/transformer/utils.py (NVIDIA/Megatron-LM d98e8a6).
std::optional<std::vector<bool>> layers_with_windows(const std::string& skip, std::size_t layers) {
  if (skip.find_first_not_of("0123456789") != skip.npos) return listed_layers(skip);
  std::size_t every = 0;
  std::from_chars(skip.data(), skip.data() + skip.size(), every);
  if (every == 0) return std::nullopt;
  std::vector<bool> windows(layers);
  for (std::size_t i = 0; i < layers; ++i) windows[i] = (i + 1) % every != 0;
  return windows;
}

/// Windows of all layers, or of some: then the shortest run of forms that gives all in turn.
void add_windows(Settings& a, Json& model) {
  const char* const name = "window-attn-skip-freq";
  const std::vector<std::string> window = a.words("window-size");
  const auto skip = a.text(name);
  if (window.empty()) return;
  int before = 0;
  std::from_chars(window[0].data() + (window[0][0] == '('), &*window[0].end(), before);
  if (!skip || skip->empty()) {
    model["sliding_window"] = before + 1;
    return;
  }
  const auto layers = static_cast<std::size_t>(std::max(model["layers"].get<int>(), 0));
  const auto windows = layers_with_windows(*skip, layers);
  if (!windows || windows->size() != layers || layers == 0) {
    return a.refuse(name, "expected a number N, or a list for all " + std::to_string(layers) +
                              " layers with 1 for those that have a window");
  }
  if (std::ranges::find(*windows, true) == windows->end()) return;
  if (model.contains("layer_pattern")) {
    return a.remark(name, "layers differ in more; every token sees all before it");
  }
  model["sliding_window"] = before + 1;
  std::size_t period = 1;
  const auto repeats = [&] {
    for (std::size_t i = period; i < layers; ++i) {
      if ((*windows)[i] != (*windows)[i - period]) return false;
    }
    return true;
  };
  while (!repeats()) ++period;
  if (period == 1) return;
  Json forms = Json::array();
  for (std::size_t i = 0; i < period; ++i) {
    if (i == 0 || (*windows)[i] != (*windows)[i - 1]) {
      forms.push_back({{"repeat", 0}});
      if (!(*windows)[i]) forms.back()["sliding_window"] = nullptr;
    }
    forms.back()["repeat"] = forms.back()["repeat"].get<int>() + 1;
  }
  model["layer_pattern"] = forms;
}

void add_experts(Settings& a, Json& model) {
  const auto experts = a.count("num-experts");
  if (!experts || *experts == 0) return;
  model["experts"] = *experts;
  model["experts_per_token"] = a.count("moe-router-topk").value_or(2);
  if (const int groups = a.count("moe-router-num-groups").value_or(1); groups > 1) {
    model["expert_groups"] = groups;
    model["expert_groups_per_token"] = a.count("moe-router-group-topk").value_or(groups);
  }
  const int width = a.count("moe-ffn-hidden-size").value_or(model["ffn_hidden_size"].get<int>());
  model["expert_ffn_hidden_size"] = width;
  if (const auto shared = a.count("moe-shared-expert-intermediate-size"); shared && *shared > 0) {
    const bool equal = width > 0 && *shared % width == 0;
    model["shared_experts"] = equal ? *shared / width : 1;
    if (!equal) model["shared_expert_ffn_hidden_size"] = *shared;
    if (a.flag("moe-shared-expert-gate")) model["shared_expert_gate"] = true;
  }
  if (const auto latent = a.count("moe-latent-size"); latent && *latent > 0) {
    model["expert_latent_size"] = *latent;
  }
  if (a.flag("moe-router-enable-expert-bias")) model["router_bias"] = true;
  if (const auto capacity = a.number("moe-expert-capacity-factor"); capacity && *capacity > 0) {
    model["capacity_factor"] = *capacity;
  }
  add_expert_layers(a, model);
}

/// Returns the letters of a hybrid's layers; nothing if the model is none, or with a diagnostic.
std::optional<std::string> hybrid_letters(Settings& a) {
  const auto type = a.text("model-type");
  const bool hybrid = a.flag("is-hybrid-model") || type == "mamba" || type == "hybrid";
  for (const char* name : {"hybrid-layer-pattern", "hybrid-override-pattern"}) {
    auto pattern = a.text(name);
    if (!pattern) continue;
    if (const std::size_t later = pattern->find('/'); later != pattern->npos) {
      a.remark(name, "modules of multi-token prediction have the form of the last layer");
      pattern->resize(later);
    }
    const std::size_t wrong = pattern->find_first_not_of("M*-E");
    if (wrong == pattern->npos && !pattern->empty()) return pattern;
    a.refuse(name, "expected letters M (Mamba 2), * (attention), - (MLP) and E (experts), got " +
                       in_quotes(pattern->substr(std::min(wrong, pattern->size()), 1)));
    return std::nullopt;
  }
  if (hybrid) {
    a.refuse("hybrid-layer-pattern",
             "missing, and ratios do not say which layer is which; expected "
             "a letter for each layer, e.g. M-M-M*-");
  }
  return std::nullopt;
}

/// Each layer of a hybrid is a mixer, or a feed-forward. Sizes that nothing says are those of
/// Megatron-Core: twice the width in heads of 64, states of 128, 8 groups, and
/// chunks of 128 tokens.
void add_hybrid(Settings& a, const std::string& letters, Json& model) {
  const int layers = static_cast<int>(letters.size());
  if (const auto written = a.count("num-layers"); written && *written != layers) {
    a.refuse("num-layers", "the pattern of the hybrid has " + std::to_string(layers) +
                               " letters; expected as many layers, got " +
                               std::to_string(*written));
  }
  const int head = a.count("mamba-head-dim").value_or(64);
  model["mamba2"] = {
      {"heads", a.count("mamba-num-heads")
                    .value_or(2 * model["hidden_size"].get<int>() / std::max(head, 1))},
      {"head_size", head},
      {"state_size", a.count("mamba-state-dim").value_or(128)},
      {"groups", a.count("mamba-num-groups").value_or(8)},
      {"chunk_size", 128}};
  Json forms = Json::array();
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (i > 0 && letters[i] == letters[i - 1]) {
      forms.back()["repeat"] = forms.back().value("repeat", 1) + 1;
      continue;
    }
    const HybridForm form = hybrid_form(letters[i]).value_or(HybridForm());
    forms.push_back({{"ffn", form.ffn}});
    if (form.attention) forms.back()["attention"] = form.attention;
  }
  model["layer_pattern"] = forms;
}

/// Returns true for an encoder with a decoder (T5).
bool reads_source(Settings& a) {
  return a.text("script").value_or("").ends_with("pretrain_t5.py") || a.flag("decoder-num-layers");
}

/// Encoder and decoder are alike but for their layers and tokens. Source: Megatron-LM's
/// pretrain_t5.py; the readout has a bias (T5LMHead, recalled).
void add_source(Settings& a, Json& model) {
  if (a.count("pipeline-model-parallel-size").value_or(1) > 1) {
    a.refuse("pipeline-model-parallel-size",
             "an encoder with a decoder is cut as its script says; expected 1");
  }
  Json encoder;
  const auto layers = a.count("encoder-num-layers"), tokens = a.count("encoder-seq-length");
  encoder["layers"] = layers ? *layers : a.required("num-layers");
  encoder["sequence_length"] = tokens ? *tokens : a.required("seq-length");
  for (const char* key : {"attention_heads", "head_size", "ffn_hidden_size", "gated_mlp", "norm",
                          "bias", "dropout", "positions", "position_buckets", "attention"}) {
    if (model.contains(key)) encoder[key] = model[key];
  }
  model["layers"] = a.count("decoder-num-layers").value_or(encoder["layers"].get<int>());
  model["sequence_length"] = a.required("decoder-seq-length");
  model["encoder"] = encoder;
  model["readout_bias"] = true;
}

/// Encoders that predict hidden tokens. Source: Megatron-LM's pretrain_bert.py.
void add_bert(Settings& a, Json& model) {
  const bool words = a.text("tokenizer-type").value_or("").starts_with("BertWordPiece");
  const bool script = a.text("script").value_or("").ends_with("pretrain_bert.py");
  if (!words && !script && !a.flag("bert-no-binary-head")) return;
  model["bidirectional"] = true;
  model["readout"] = "masked-lm";
  model["token_types"] = 2;
}

/// Source: the padding of vocabularies in megatron/training/arguments.py and tokenizers: up to a
/// multiple of 128 for each tensor rank unless told otherwise.
int vocabulary(Settings& a, std::optional<int> of_tokenizer) {
  const auto written = a.count("vocab-size"), padded = a.count("padded-vocab-size");
  if (padded && !of_tokenizer) return *padded;
  const auto words = of_tokenizer ? of_tokenizer : written;
  if (!words) a.refuse("vocab-size", "the tokenizer has it; expected import's --vocab-size N");
  const int multiple = a.count("make-vocab-size-divisible-by").value_or(128);
  if (multiple < 1 || !words) return words.value_or(1);
  const int unit = multiple * std::max(a.count("tensor-model-parallel-size").value_or(1), 1);
  return (*words + unit - 1) / unit * unit;
}

}  // namespace

Json megatron_model(Settings& a, const std::string& name, std::optional<int> vocab_size) {
  if (is_other_model(a)) return {};
  const std::optional<std::string> letters = hybrid_letters(a);
  const bool source = reads_source(a);
  Json model = {{"kind", "transformer"},
                {"name", name},
                {"layers", letters  ? static_cast<int>(letters->size())
                           : source ? 1
                                    : a.required("num-layers")},
                {"hidden_size", a.required("hidden-size")},
                {"attention_heads", a.required("num-attention-heads")},
                {"sequence_length", source ? 1 : a.required("seq-length")}};
  model["vocab_size"] = vocabulary(a, vocab_size);
  const bool gated = a.flag("swiglu") || a.flag("quick-geglu");
  if (gated && a.number("activation-func-clamp-value")) model["clamped_mlp"] = true;
  const int hidden = model["hidden_size"].get<int>();
  if (hidden > kMostWidth) {
    a.refuse("hidden-size", "expected at most " + std::to_string(kMostWidth));
    return {};
  }
  const int width = 4 * hidden;
  model["ffn_hidden_size"] =
      a.count("ffn-hidden-size").value_or(gated ? width * 2 / 3 / 64 * 64 : width);
  model["gated_mlp"] = gated;
  const bool rms = a.text("normalization").value_or("LayerNorm") == "RMSNorm";
  model["norm"] = rms ? "rmsnorm" : "layernorm";
  model["bias"] = !a.flag("disable-bias-linear");
  if (a.flag("add-qkv-bias")) model["qkv_bias"] = true;
  model["tied_embeddings"] = !a.flag("untie-embeddings-and-output-weights");
  model["dropout"] = std::max(a.number("attention-dropout").value_or(0.1),
                              a.number("hidden-dropout").value_or(0.1));
  add_positions(a, model);
  add_attention(a, model);
  add_experts(a, model);
  if (letters) add_hybrid(a, *letters, model);
  add_windows(a, model);
  if (source) add_source(a, model);
  if (const auto later = a.count("mtp-num-layers"); later && *later > 0) {
    model["multi_token_prediction"] = {{"layers", *later}};
  }
  add_bert(a, model);
  return model;
}

}  // namespace interlock
