// Flops of hybrids, whose layers differ, by the formula of those who train them.
// SPDX-License-Identifier: Apache-2.0
//
// Restated here, of the fields of the files alone: Megatron-LM's count of a hybrid's step,
// NVIDIA/Megatron-LM 001b00c2734d8f0fad096fe48a382fedf755d321 megatron/training/training.py,
// hybrid_flops with mamba_layer_flops and gdn_layer_flops. Products with weights are equal to the
// last digit, but for what it leaves out, which is added here (routers, gates of shared experts and
// of attention), and for the width of Mamba's inner layer, which it takes to be twice the hidden
// size and which is the heads' here. What runs along the sequence it only estimates ("should be
// updated based on new SSD kernels"): there the whole step is held to two parts in a hundred.
#include <cmath>

#include "base/file.h"
#include "tests/models/built.h"

namespace interlock::hybrid_flops_test {
namespace {

constexpr double kTokens = 128;

/// The numbers of a configuration.
struct Fields {
  const JsonValue& config;
  double operator()(const char* name, double otherwise = 0) const {
    const JsonValue* value = config.find(name);
    return value != nullptr && value->kind == JsonValue::Kind::Number ? value->number : otherwise;
  }
};

/// Multiplications of a token: with weights, and of what runs along the sequence.
struct Count {
  double weights = 0, along = 0;
  void operator+=(const Count& other) {
    weights += other.weights;
    along += other.along;
  }
};

/// `gated`: a gate of the outputs is made beside the queries.
Count attention(const Fields& f, bool gated) {
  const double size = f("head_dim", f("attention_head_dim")), heads = f("num_attention_heads");
  const double all = heads * (gated ? 3 : 2) + 2 * f("num_key_value_heads");
  return {f("hidden_size") * size * all, heads * size * kTokens};  // half of the pairs, twice
}

Count experts(const Fields& f, double products, double shared) {
  const double h = f("hidden_size"), each = f("moe_intermediate_size");
  const double read = f("moe_latent_size", h), latents = read < h ? 2 * h * read : 0;
  const double router = h * f("n_routed_experts", f("num_experts"));
  const double chosen = f("num_experts_per_tok") * each;
  return {products * (read * chosen + h * shared) + latents + router, 0};
}

Count mamba(const Fields& f) {
  const double inner = f("mamba_num_heads") * f("mamba_head_dim"), h = f("hidden_size");
  const double vectors = 2 * f("n_groups") * f("ssm_state_size");
  return {h * (2 * inner + vectors + f("mamba_num_heads")) + inner * h,
          3.5 * inner * f("ssm_state_size")};
}

Count delta(const Fields& f) {
  const double keys = f("linear_num_key_heads") * f("linear_key_head_dim");
  const double heads = f("linear_num_value_heads"), size = f("linear_value_head_dim");
  return {f("hidden_size") * (2 * keys + 3 * heads * size + 2 * heads),
          f("linear_conv_kernel_dim") * (2 * keys + heads * size) + 4 * heads * size * size};
}

/// The letters of the layers, which newer files say in words.
std::string letters(const JsonValue& config) {
  const JsonValue* words = config.find("layers_block_type");
  if (words == nullptr) return config.find("hybrid_override_pattern")->text;
  std::string all;
  for (const JsonValue& word : words->items) {
    all += word.text == "mamba" ? 'M' : word.text == "attention" ? '*' : 'E';
  }
  return all;
}

Count nemotron(const Fields& f) {
  Count all;
  for (const char layer : letters(f.config)) {
    if (layer == 'M') all += mamba(f);
    if (layer == '*') all += attention(f, false);
    if (layer == '-') all += {2 * f("hidden_size") * f("intermediate_size"), 0};
    if (layer == 'E') all += experts(f, 2, f("moe_shared_expert_intermediate_size"));
  }
  return all;
}

Count qwen(const Fields& f) {
  Count all;
  const double h = f("hidden_size"), shared = f("shared_expert_intermediate_size");
  for (int layer = 1; layer <= f("num_hidden_layers"); ++layer) {
    const bool attends = layer % static_cast<int>(f("full_attention_interval")) == 0;
    all += attends ? attention(f, true) : delta(f);
    all += shared > 0 ? experts(f, 3, shared) : Count{3 * h * f("intermediate_size"), 0};
    if (shared > 0) all += {h, 0};  // its gate
  }
  return all;
}

/// Granite 4: Mamba 2 or attention, and what all tokens share with or without experts behind
/// either.
Count granite(const Fields& f) {
  Count all;
  const double h = f("hidden_size"), shared = 3 * h * f("shared_intermediate_size");
  const double inner = f("mamba_n_heads") * f("mamba_d_head"), state = f("mamba_d_state");
  const double made = 2 * inner + 2 * f("mamba_n_groups") * state + f("mamba_n_heads");
  const double size = h / f("num_attention_heads"), keys = 2 * f("num_key_value_heads") * size;
  const double chosen = f("num_experts_per_tok") * f("intermediate_size");
  for (const JsonValue& layer : f.config.find("layer_types")->items) {
    const bool mixes = layer.text == "mamba";
    all += mixes ? Count{h * (made + inner), 3.5 * inner * state}
                 : Count{h * (2 * h + keys), h * kTokens};
    all += {shared + 3 * h * chosen + h * f("num_local_experts"), 0};
  }
  return all;
}

/// Llama-Nemotron: the width and the key heads of each layer, some without attention.
Count searched(const Fields& f) {
  Count all;
  const double h = f("hidden_size"), heads = f("num_attention_heads"), size = h / heads;
  for (const JsonValue& layer : f.config.find("block_configs")->items) {
    const JsonValue& part = *layer.find("attention");
    if (!part.find("no_op")->boolean) {
      const double groups = heads / part.find("n_heads_in_group")->number;
      all += {h * size * (2 * heads + 2 * groups), heads * size * kTokens};
    }
    // The class takes two thirds of the multiple, in steps of 256.
    const double wide = std::floor(2 * layer.find("ffn")->find("ffn_mult")->number * h / 3);
    all += {3 * h * std::ceil(wide / 256) * 256, 0};
  }
  return all;
}

struct Hybrid {
  const char* name;
  Count (*count)(const Fields&);
};

double flops_of(const ModelGraph& graph, bool weights_alone) {
  Flops total;
  for (const Module& module : graph.modules) {
    for (const auto* works : {&module.forward, &module.backward_input, &module.backward_weight}) {
      for (const Work& work : *works) {
        if (!weights_alone || work.op_class == OpClass::Gemm) total += counted_flops(work);
      }
    }
  }
  return total.value();
}

TEST_CASE("a step of each hybrid has the flops that Megatron-LM counts") {
  for (const Hybrid& hybrid : {Hybrid{"nemotron-h-56b", nemotron},
                               {"nemotron-3-nano-30b-a3b", nemotron},
                               {"nemotron-3-ultra", nemotron},
                               {"granite-4.0-h-micro", granite},
                               {"granite-4.0-h-tiny", granite},
                               {"qwen3-next-80b-a3b", qwen},
                               {"qwen3.5-27b", qwen},
                               {"qwen3.5-35b-a3b", qwen},
                               {"qwen3.5-397b-a17b", qwen},
                               {"llama-3.3-nemotron-super-49b", searched}}) {
    const std::string path = data_folder("tests/models/configs") + "/" + hybrid.name + ".json";
    const JsonValue whole = read_json_file(path);
    const JsonValue* inner = whole.find("text_config");
    const Fields fields{inner != nullptr ? *inner : whole};
    const bool sees = whole.find("vision_config") != nullptr;
    const ModelGraph graph =
        built(R"({"base": ")" + path + R"(", "sequence_length": 128, "attention_flops": "causal",
            "multi_token_prediction": null)" +
              (sees ? R"(, "encoder": {"images": 0}})" : "}"));
    Count count = hybrid.count(fields);
    count.weights += fields("hidden_size") * fields("vocab_size");
    const double weights = 6 * kTokens * count.weights, all = weights + 6 * kTokens * count.along;
    INFO(hybrid.name << ": weights " << flops_of(graph, true) << " here, " << weights
                     << " there; all " << flops_of(graph, false) << " here, " << all << " there");
    CHECK(flops_of(graph, true) == doctest::Approx(weights).epsilon(1e-12));
    CHECK(flops_of(graph, false) == doctest::Approx(all).epsilon(0.02));
  }
}

}  // namespace
}  // namespace interlock::hybrid_flops_test
