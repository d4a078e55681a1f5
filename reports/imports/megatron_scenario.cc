// Megatron scenario: maps arguments to the keys of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "reports/imports/megatron_scenario.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/text.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

void copy_count(MegatronArguments& from, const char* name, Json& to, const char* key) {
  if (const auto value = from.count(name)) to[key] = *value;
}

void add_attention(MegatronArguments& a, Json& model) {
  copy_count(a, "kv-channels", model, "head_size");
  const auto groups = a.count("num-query-groups");
  if (a.flag("group-query-attention")) model["kv_heads"] = groups.value_or(1);
  if (a.flag("qk-layernorm")) model["qk_norm"] = true;
  const std::string backend = a.text("attention-backend").value_or("auto");
  const bool local = a.text("transformer-impl").value_or("transformer_engine") == "local";
  const bool stored = backend == "unfused" || backend == "local" || local;
  model["attention"] = a.flag("use-flash-attn") || !stored ? "fused" : "materialised";
  if (!a.flag("multi-latent-attention")) return;
  for (const char* key : {"head_size", "kv_heads", "qk_norm"}) model.erase(key);
  Json latents;
  copy_count(a, "q-lora-rank", latents, "query_rank");
  latents["kv_rank"] = a.count("kv-lora-rank").value_or(32);
  latents["head_size"] = a.count("qk-head-dim").value_or(128);
  latents["rotary_head_size"] = a.count("qk-pos-emb-head-dim").value_or(64);
  latents["value_head_size"] = a.count("v-head-dim").value_or(128);
  model["latent_attention"] = latents;
}

void add_positions(MegatronArguments& a, Json& model) {
  const std::string kind = a.text("position-embedding-type").value_or("learned_absolute");
  const bool rotary = a.flag("use-rotary-position-embeddings") || kind == "rope" || kind == "yarn";
  if (kind != "learned_absolute" && kind != "none" && !rotary) {
    a.refuse("position-embedding-type", "expected learned_absolute, rope, yarn or none");
  }
  model["positions"] = rotary ? "rotary" : kind == "none" ? "none" : "learned";
  if (const auto share = a.number("rotary-percent"); share && rotary)
    model["rotary_share"] = *share;
  const auto positions = a.count("max-position-embeddings");
  if (positions && model["positions"] == "learned") model["max_positions"] = *positions;
}

/// A number N: every Nth layer has experts; "([0]*k+[1]*n)": all but the first k have.
void add_expert_layers(MegatronArguments& a, Json& model) {
  const auto pattern = a.text("moe-layer-freq");
  if (!pattern) return;
  static const std::regex number(R"(\d+)"), lists(R"(\(?(?:\[0\](?:\*(\d+))?\+)?\[1\]\*\d+\)?)");
  std::smatch match;
  if (std::regex_match(*pattern, number)) {
    copy_count(a, "moe-layer-freq", model, "expert_interval");
  } else if (std::regex_match(*pattern, match, lists)) {
    const int first =
        match[1].matched ? std::stoi(match[1]) : pattern->find("[0]") != std::string::npos;
    if (first > 0) model["dense_layers"] = first;
  } else {
    a.refuse("moe-layer-freq",
             "expected a number, or ([0]*k+[1]*n): k layers without experts first");
  }
}

void add_experts(MegatronArguments& a, Json& model) {
  const auto experts = a.count("num-experts");
  if (!experts) return;
  model["experts"] = *experts;
  model["experts_per_token"] = a.count("moe-router-topk").value_or(2);
  const int width = a.count("moe-ffn-hidden-size").value_or(model["ffn_hidden_size"].get<int>());
  model["expert_ffn_hidden_size"] = width;
  if (const auto shared = a.count("moe-shared-expert-intermediate-size"); shared && *shared > 0) {
    if (width == 0 || *shared % width != 0) {
      a.refuse("moe-shared-expert-intermediate-size",
               "expected a multiple of the experts' " + std::to_string(width));
    } else {
      model["shared_experts"] = *shared / width;
    }
    if (a.flag("moe-shared-expert-gate")) model["shared_expert_gate"] = true;
  }
  if (const auto capacity = a.number("moe-expert-capacity-factor")) {
    model["capacity_factor"] = *capacity;
  }
  add_expert_layers(a, model);
}

Json model_of(MegatronArguments& a, const MegatronSurroundings& around) {
  Json model = {{"kind", "transformer"},
                {"name", around.name},
                {"layers", a.required("num-layers")},
                {"hidden_size", a.required("hidden-size")},
                {"attention_heads", a.required("num-attention-heads")},
                {"sequence_length", a.required("seq-length")}};
  const auto written = a.count("vocab-size");
  const auto padded = a.count("padded-vocab-size");
  const auto words = around.vocab_size ? around.vocab_size : written ? written : padded;
  if (!words) a.refuse("vocab-size", "the tokenizer has it; expected import's --vocab-size N");
  model["vocab_size"] = words.value_or(1);
  const bool gated = a.flag("swiglu");
  const int width = 4 * model["hidden_size"].get<int>();
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
  return model;
}

/// Devices of each kind.
struct Degrees {
  int tensor = 1, pipeline = 1, context = 1, expert = 1, data = 1;
};

Degrees degrees_of(MegatronArguments& a, const MegatronSurroundings& around) {
  const auto degree = [&](const char* name) { return std::max(a.count(name).value_or(1), 1); };
  Degrees d = {.tensor = degree("tensor-model-parallel-size"),
               .pipeline = degree("pipeline-model-parallel-size"),
               .context = degree("context-parallel-size"),
               .expert = degree("expert-model-parallel-size")};
  const int started = degree("nnodes") * degree("nproc-per-node");
  const int each = d.tensor * d.pipeline * d.context;
  const int devices = around.devices.value_or(std::max(started, each));
  if (devices % each != 0) {
    a.refuse("tensor-model-parallel-size",
             std::to_string(devices) +
                 " devices cannot be shared out among tensor x pipeline x "
                 "context = " +
                 std::to_string(each) + "; expected a multiple (import's --devices)");
  }
  d.data = std::max(devices / each, 1);
  return d;
}

Json parallel_of(MegatronArguments& a, const Degrees& d) {
  Json parallel = {{"pipeline", d.pipeline}};
  if (d.data > 1) parallel["data"] = d.data;
  if (d.tensor > 1) parallel["tensor"] = d.tensor;
  if (d.context > 1) parallel["context"] = d.context;
  if (d.expert > 1) parallel["expert"] = d.expert;
  if (a.flag("sequence-parallel") && d.tensor > 1) parallel["sequence_parallel"] = true;
  if (a.flag("use-distributed-optimizer")) parallel["zero_stage"] = 1;
  parallel["overlap_gradients"] = a.flag("overlap-grad-reduce");
  if (a.flag("overlap-param-gather")) parallel["overlap_weights"] = true;
  return parallel;
}

/// Layers of each stage, in order; the embedding lies in the first, the readout in the last.
std::vector<int> layers_of_stages(MegatronArguments& a, int layers, int pipeline) {
  const auto each = a.count("num-layers-per-virtual-pipeline-stage");
  const auto chunks = a.count("num-virtual-stages-per-pipeline-rank");
  const auto first = a.count("decoder-first-pipeline-num-layers");
  const auto last = a.count("decoder-last-pipeline-num-layers");
  int stages = chunks ? pipeline * *chunks : pipeline;
  if (each && *each > 0) stages = layers / *each;
  const int ends = (first ? 1 : 0) + (last ? 1 : 0);
  const int rest = layers - first.value_or(0) - last.value_or(0), others = stages - ends;
  if (stages < 1 || stages % pipeline != 0 || rest < 0 || (others > 0 && rest % others != 0) ||
      (ends > 0 && stages != pipeline) || (each && *each * stages != layers) || others < 0) {
    a.refuse("num-layers", std::to_string(layers) + " layers cannot be shared out evenly among " +
                               std::to_string(stages) + " stages on " + std::to_string(pipeline) +
                               " ranks");
    return {};
  }
  std::vector<int> stage(static_cast<std::size_t>(stages), others > 0 ? rest / others : 0);
  if (first) stage.front() = *first;
  if (last) stage.back() = *last;
  return stage;
}

/// Whole layers that are computed again; megatron counts them in each stage.
void add_recompute(MegatronArguments& a, const std::vector<int>& stages, Json& training) {
  const std::string kind = a.flag("recompute-activations")
                               ? "selective"
                               : a.text("recompute-granularity").value_or("none");
  const std::string method = a.text("recompute-method").value_or("uniform");
  const int layers = a.count("recompute-num-layers").value_or(1);
  if (kind != "full" || stages.empty()) {
    training["recompute"] = kind;
    return;
  }
  const int most = *std::max_element(stages.begin(), stages.end());
  if (method == "uniform" && layers > 1) {
    training["recompute"] = {{"group", layers}};
  } else if (method == "block" && layers < most) {
    training["recompute"] = {{"stage_layers", layers}};
  } else {
    training["recompute"] = "full";
  }
}

Json training_of(MegatronArguments& a, const Degrees& d, const std::vector<int>& stages) {
  const int chunks = static_cast<int>(stages.size()) / d.pipeline;
  Json training = {{"strategy", "global"}, {"schedule", "1f1b"}};
  if (chunks > 1) training["schedule"] = {{"kind", "interleaved"}, {"chunks", chunks}};
  const int micro = a.required("micro-batch-size");
  training["global_batch_size"] = a.count("global-batch-size").value_or(micro * d.data);
  training["micro_batch_size"] = micro;
  const bool eight = a.text("fp8-format").has_value() || a.flag("fp8-hybrid");
  training["precision"] = eight            ? "fp8"
                          : a.flag("bf16") ? "bf16"
                          : a.flag("fp16") ? "fp16"
                                           : "fp32";
  const std::string optimizer = a.text("optimizer").value_or("adam");
  if (optimizer != "adam" && optimizer != "sgd") a.refuse("optimizer", "expected adam or sgd");
  training["optimizer"] = optimizer == "sgd" ? "sgd-momentum" : "adam";
  add_recompute(a, stages, training);
  training["steps"] = 2;
  return training;
}

}  // namespace

std::string megatron_scenario(MegatronArguments& a, const MegatronSurroundings& around) {
  const Json model = model_of(a, around);
  const Degrees d = degrees_of(a, around);
  const std::vector<int> stages = layers_of_stages(a, model["layers"].get<int>(), d.pipeline);
  Json scenario = {{"name", around.name}, {"model", model}};
  const int devices = d.data * d.tensor * d.pipeline * d.context;
  scenario["cluster"] = {
      {"machine", around.cluster},
      {"nodes", (devices + around.devices_per_node - 1) / around.devices_per_node},
      {"devices", devices}};
  scenario["parallel"] = parallel_of(a, d);
  if (stages.size() > 1) {
    std::vector<int> modules = stages;
    ++modules.front();
    ++modules.back();
    scenario["partition"] = modules;
    scenario["parallel"]["stages"] = modules.size();
  }
  scenario["training"] = training_of(a, d, stages);
  a.diagnostics().throw_if_any();
  return scenario.dump(2) + "\n";
}

}  // namespace interlock
