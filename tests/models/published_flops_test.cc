// Flops of configurations that people have, by the formulas of those who train them.
// SPDX-License-Identifier: Apache-2.0
//
// Restated here, of the fields of the files alone:
//  - Megatron-LM's count of a step: NVIDIA/Megatron-LM d98e8a64ddf34856e74b24714e3bedb2f5a39553
//    megatron/training/training.py, num_floating_point_operations. A token goes through every
//    weight of queries, keys, values, projection, MLP (or the experts chosen for it and the shared
//    ones) and vocabulary, 2 flops each, three times; pairs of tokens are halved by the mask.
//    It leaves out routers and gates of shared experts, which are added here, and windows, which
//    no sequence here is longer than.
//  - PaLM's 6 N + 12 L H Q T a token (arXiv 2204.02311, appendix B), which is torchtitan's too:
//    pytorch/torchtitan b5bcd76c66d0acb1a08b176d9639425bc55e0b2a torchtitan/models, where N is
//    without the table that words are looked up in, and 12 L H Q T sees no mask. N has norms and
//    biases, so that it is right within a part in a thousand.
#include <cmath>
#include <map>

#include "base/file.h"
#include "tests/models/built.h"

namespace interlock::published_flops_test {
namespace {

constexpr double kTokens = 128;  // the narrowest window

/// Configurations that the formulas do not hold for, and why.
const std::map<std::string, std::string>& exceptions() {
  static const std::string mixed = "layers differ; hybrid_flops_test.cc has their formula";
  static const std::string stacks = "two stacks; cross_attention_test.cc counts by hand";
  static const std::map<std::string, std::string> all = {
      {"granite-4.0-h-micro", mixed},
      {"granite-4.0-h-tiny", mixed},
      {"glm-5", "tokens are chosen; chosen_tokens_test.cc counts by hand"},
      {"jamba-v0.1", "Megatron-LM has no Mamba 1; mixers_test.cc counts by hand"},
      {"nemotron-3-nano-30b-a3b", mixed},
      {"nemotron-3-ultra", mixed},
      {"nemotron-h-56b", mixed},
      {"qwen3-next-80b-a3b", mixed},
      {"qwen3.5-27b", mixed},
      {"qwen3.5-35b-a3b", mixed},
      {"qwen3.5-397b-a17b", mixed},
      {"flan-t5-small", stacks},
      {"mt5-small", stacks},
      {"t5-base", stacks},
      {"t5-small", stacks},
      {"t5-v1.1-xxl", stacks},
      {"llama-3.3-nemotron-super-49b", mixed}};
  return all;
}

/// The fields of a configuration, whatever their class calls them.
class Fields {
 public:
  explicit Fields(const JsonValue& config) : config_(config) {}
  double number(std::initializer_list<const char*> names, double otherwise) const {
    for (const char* name : names) {
      const JsonValue* value = config_.find(name);
      if (value != nullptr && value->kind == JsonValue::Kind::Number) return value->number;
    }
    return otherwise;
  }
  double number(const char* name, double otherwise) const { return number({name}, otherwise); }
  bool has(const char* name) const { return number(name, 0) > 0; }
  bool is(const char* name) const {
    const JsonValue* value = config_.find(name);
    return value != nullptr && value->boolean;
  }
  std::string type() const { return config_.find("model_type")->text; }

 private:
  const JsonValue& config_;
};

/// Weights that one token goes through; those of routers Megatron-LM does not count.
struct Weights {
  double attention = 0, mlp = 0, experts = 0, routers = 0;  // of a layer
  double queries = 0;                                       // and what comes out, elements
};

Weights attention_of(const Fields& f) {
  const double h = f.number({"hidden_size", "n_embd"}, 4096);
  const double heads = f.number({"num_attention_heads", "n_head"}, 32);
  if (f.has("kv_lora_rank")) {
    const double nope = f.number("qk_nope_head_dim", 128),
                 turned = f.number("qk_rope_head_dim", 64);
    const double values = f.number("v_head_dim", 128), keys = f.number("kv_lora_rank", 512);
    const double rank = f.number("q_lora_rank", 0), queries = heads * (nope + turned);
    const double made = rank > 0 ? rank * (h + queries) : h * queries;
    return {
        .attention = made + keys * (h + heads * (nope + values)) + h * turned + heads * values * h,
        .queries = (queries + heads * values) / 2};
  }
  double groups = f.number({"num_key_value_heads"}, heads);
  if (f.is("multi_query")) groups = 1;
  const double size = f.number("head_dim", h / heads);
  return {.attention = h * size * (2 * heads + 2 * groups), .queries = heads * size};
}

bool is_plain(const std::string& type) {
  for (const char* one :
       {"gpt2", "gpt_bigcode", "gptj", "falcon", "starcoder2", "nemotron", "phi"}) {
    if (type == one) return true;
  }
  return false;
}

Weights weights_of(const Fields& f) {
  Weights w = attention_of(f);
  const double h = f.number({"hidden_size", "n_embd"}, 4096);
  const double products = is_plain(f.type()) ? 2 : 3;
  const double usual = f.type() == "llama" ? 11008 : 4 * h;  // of its class, where a file is silent
  const double width = f.number({"intermediate_size", "n_inner"}, usual);
  w.mlp = products * h * f.number("intermediate_size_mlp", width);
  const double experts =
      f.number({"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"}, 0);
  if (experts == 0) return w;
  const double expert = f.number("moe_intermediate_size", width);
  double shared = f.number({"n_shared_experts", "moe_num_shared_experts"}, 0) * expert;
  if (f.has("shared_expert_intermediate_size")) {
    shared = f.number("shared_expert_intermediate_size", 0);
  }
  if (f.has("intermediate_size_mlp")) shared = expert;  // Llama 4
  w.experts = products * h * (f.number({"num_experts_per_tok", "moe_k"}, 1) * expert + shared);
  w.routers = h * experts + (f.has("shared_expert_intermediate_size") ? h : 0);
  return w;
}

double layers_of(const Fields& f) { return f.number({"num_hidden_layers", "n_layer"}, 32); }

/// Layers with experts.
double mixtures(const Fields& f) {
  const double every = f.number("interleave_moe_layer_step", 1);
  return (layers_of(f) - f.number({"first_k_dense_replace", "moe_layer_start_index"}, 0)) / every;
}

double megatron_flops(const Fields& f) {
  const Weights w = weights_of(f);
  const double layers = layers_of(f), h = f.number({"hidden_size", "n_embd"}, 4096);
  const double with = w.experts > 0 ? mixtures(f) : 0;
  const double used = layers * w.attention + (layers - with) * w.mlp +
                      with * (w.experts + w.routers) + h * f.number("vocab_size", 50257);
  return 6 * kTokens * used + 6 * kTokens * kTokens * layers * w.queries;
}

double flops_of_step(const ModelGraph& graph) {
  Flops total;
  for (const Module& module : graph.modules) {
    for (const auto* works : {&module.forward, &module.backward_input, &module.backward_weight}) {
      total += counted_of(*works);
    }
  }
  return total.value();
}

TEST_CASE("a step of each configuration has the flops that Megatron-LM counts") {
  const std::string folder = data_folder("tests/models/configs");
  int held = 0, left = 0;
  for (const JsonValue& entry : read_json_file(folder + "/origins.json").items) {
    const std::string& name = entry.find("name")->text;
    if (exceptions().contains(name)) {
      ++left;
      continue;
    }
    ++held;
    const std::string path = folder + "/" + entry.find("file")->text;
    const JsonValue whole = read_json_file(path);
    const JsonValue* inner = whole.find("text_config");
    const Fields fields(inner != nullptr ? *inner : whole);
    const bool sees = whole.find("vision_config") != nullptr;
    const ModelGraph graph =
        built(R"({"base": ")" + path + R"(", "sequence_length": 128, "attention_flops": "causal",
            "multi_token_prediction": null)" +
              (sees ? R"(, "encoder": {"images": 0}})" : "}"));
    const double ours = flops_of_step(graph), theirs = megatron_flops(fields);
    INFO(name << ": " << ours << " here, " << theirs << " there");
    CHECK(ours == doctest::Approx(theirs).epsilon(1e-12));
  }
  CHECK(held >= 65);
  CHECK(left == static_cast<int>(exceptions().size()));
}

TEST_CASE("a token of each dense configuration has PaLM's 6 N + 12 L H Q T flops") {
  const std::string folder = data_folder("tests/models/configs");
  int held = 0;
  for (const JsonValue& entry : read_json_file(folder + "/origins.json").items) {
    const std::string& name = entry.find("name")->text;
    const std::string path = folder + "/" + entry.find("file")->text;
    const JsonValue whole = read_json_file(path);
    if (exceptions().contains(name) || whole.find("text_config") || whole.find("vision_config") ||
        !entry.find("exact")->boolean) {
      continue;  // its N has more than the decoder, or is rounded
    }
    const Fields fields(whole);
    const Weights w = weights_of(fields);
    if (w.experts > 0 || fields.has("num_nextn_predict_layers")) continue;
    ++held;
    const ModelGraph graph = built(R"({"base": ")" + path + R"(", "sequence_length": 128})");
    const JsonValue* beside = entry.find("beside");
    const double counted = entry.find("parameters")->number - (beside ? beside->number : 0);
    // Tables that are looked up, unless the readout is the same.
    const double h = fields.number({"hidden_size", "n_embd"}, 4096);
    const bool tied = graph.modules.back().tied_parameters > 0;
    const double table = tied ? 0 : h * fields.number("vocab_size", 50257);
    const bool places = fields.type() == "gpt2" || fields.type() == "gpt_bigcode";
    const double positions = places ? h * fields.number("n_positions", 1024) : 0;
    const double n = counted - table - positions;
    const double token = 6 * n + 12 * layers_of(fields) * w.queries * kTokens;
    const double ours = flops_of_step(graph) / kTokens;
    INFO(name << ": " << ours << " here, " << token << " there");
    CHECK(ours == doctest::Approx(token).epsilon(1e-3));
  }
  CHECK(held >= 20);
}

}  // namespace
}  // namespace interlock::published_flops_test
