// Draws scenarios as JSON, section by section.
// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random_scenario.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/properties/random_extras.h"
#include "tests/properties/scaled_scenario.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDevices = 16;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, 11) {}

  Json scenario() {
    transformer_ = chance(0.3);
    pipeline_ = one_of<int>({1, 2, 2, 3, 4});
    do {
      data_ = one_of<int>({1, 2, 2, 3, 4});
      tensor_ = transformer_ ? one_of<int>({1, 1, 2, 4}) : 1;
      context_ = transformer_ ? one_of<int>({1, 1, 1, 2}) : 1;
    } while (pipeline_ * devices_a_rank() > kMostDevices);
    micro_batches_ = one_of<int>({1, 2, 3, 4, 6, 8, pipeline_, 2 * pipeline_, 4 * pipeline_});
    Json document;
    document["name"] = "random";
    document["training"] = training();
    document["model"] = transformer_ ? transformer() : profile();
    document["cluster"] = cluster();
    document["parallel"] = parallel();
    if (chance(0.3)) document["partition"] = "uniform";
    if (chance(0.25)) document["variation"] = variation();
    if (transformer_ && chance(0.1)) document["simulate"] = {{"memory_contention", true}};
    add_extras(document, random_);
    return document;
  }

 private:
  bool chance(double probability) { return random_.uniform() < probability; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(
        random_.integer(0, static_cast<int>(values.size()) - 1))];
  }
  int devices_a_rank() const { return data_ * tensor_ * context_; }

  Json module() {
    Json made = {{"forward", with_unit(one_of<double>({0.25, 1, 1, 2, 3.7}), "ms")},
                 {"backward_input", with_unit(one_of<double>({0.5, 1, 1, 2.3}), "ms")},
                 {"backward_weight", with_unit(one_of<double>({0.5, 1, 1, 1.9}), "ms")}};
    if (chance(0.3)) made["update"] = with_unit(one_of<double>({0.1, 0.5}), "ms");
    if (chance(0.6)) made["head"] = with_unit(one_of<double>({0.1, 0.6}), "ms");
    if (chance(0.8)) made["output"] = with_unit(random_.integer(1, 16), "MiB");
    if (chance(0.8)) made["stash"] = with_unit(random_.integer(1, 40), "MiB");
    if (chance(0.9)) made["parameters"] = with_unit(random_.integer(1, 60), "MiB");
    return made;
  }

  Json profile() {
    Json modules = Json::array();
    const int count = stages_ + random_.integer(0, 3);
    if (chance(0.4)) {
      modules.push_back(module());
      modules.back()["repeat"] = count;
    } else {
      for (int i = 0; i < count; ++i) modules.push_back(module());
    }
    return {{"kind", "profile"}, {"modules", modules}};
  }

  Json transformer() {
    Json model = {{"kind", "transformer"},
                  {"layers", stages_ + random_.integer(0, 2)},
                  {"hidden_size", 256},
                  {"attention_heads", 8},
                  {"vocab_size", 512},
                  {"sequence_length", one_of<int>({64, 128, 1024})},
                  {"attention", chance(0.6) ? "fused" : "materialised"},
                  {"tied_embeddings", chance(0.5)}};
    if (chance(0.2)) model["sliding_window"] = 32;
    if (chance(0.2)) model["gated_mlp"] = true;
    if (chance(0.2)) model["attention_flops"] = "causal";
    if (chance(0.35)) {
      model.update({{"experts", 8}, {"experts_per_token", 2}, {"capacity_factor", 1.25}});
      if (chance(0.5)) model.update({{"shared_experts", 1}, {"expert_groups", 4}});
      experts_ = true;
    }
    if (chance(0.3)) model["layer_pattern"] = pattern();
    if (chance(0.1)) model["multi_token_prediction"] = {{"layers", 1}};
    return model;
  }

  /// Returns forms of layers; context devices share no states.
  Json pattern() {
    std::vector<Json> forms = {{{"sliding_window", 16}},
                               {{"ffn", "none"}},
                               {{"kv_heads", 4}, {"attention_gate", true}},
                               {{"ffn_hidden_size", 512}, {"qk_norm", "whole"}}};
    if (context_ == 1) {
      forms.push_back({{"attention", "mamba"}, {"mamba", Json::object()}, {"ffn", "none"}});
      forms.push_back({{"attention", "mamba2"}, {"mamba2", {{"heads", 8}, {"groups", 4}}}});
      forms.push_back({{"attention", "gated-delta"}, {"gated_delta", {{"value_heads", 8}}}});
    }
    Json pattern = Json::array({Json::object()});
    for (int i = random_.integer(1, 3); i > 0; --i) {
      pattern.push_back(one_of(forms));
      if (chance(0.3)) pattern.back()["repeat"] = 2;
    }
    return pattern;
  }

  Json cluster() {
    const int devices = pipeline_ * devices_a_rank();
    const double gigabytes = one_of<double>({0.5, 2, 10, 10, 60});
    if (chance(0.6)) {
      Json mesh = {{"kind", "uniform"},
                   {"devices", devices},
                   {"link",
                    {{"latency", with_unit(one_of<double>({0, 2, 50}), "us")},
                     {"bandwidth", with_unit(gigabytes, "GB/s")}}}};
      transformer_ ? mesh["device"] = device() : mesh["memory"] = "80 GiB";
      return mesh;
    }
    const int per_node = one_of<int>({1, 2, 4, 8});
    Json machine = {{"kind", "machine"},
                    {"name", "drawn"},
                    {"device", device()},
                    {"devices_per_node", per_node},
                    {"nodes", (devices + per_node - 1) / per_node},
                    {"port", {{"latency", "2 us"}, {"bandwidth", "60 GB/s"}}},
                    {"cards",
                     {{"per_node", one_of<int>({1, per_node})},
                      {"latency", "4 us"},
                      {"bandwidth", with_unit(gigabytes, "GB/s")}}}};
    if (devices > 1 && chance(0.5)) return mixed(machine, devices);
    if (chance(0.3)) {
      machine["network"] = {{"kind", "fat-tree"}, {"nodes_per_leaf", 2}, {"oversubscription", 2}};
    }
    return machine;
  }

  /// Returns a cluster with devices of `machine`, and others of one that differs from it in all.
  Json mixed(Json machine, int devices) {
    const int first = random_.integer(1, devices - 1), per_node = one_of<int>({1, 2, 4});
    Json other = machine;
    other["name"] = "other";
    Json& faster = other["device"];
    faster["name"] = "fast";
    faster["memory_bandwidth"] = "900 GB/s";
    for (Json& peak : faster["peak"]) peak = times(peak.get<std::string>(), 2.5);
    other["devices_per_node"] = per_node;
    other["port"] = {{"latency", "1 us"}, {"bandwidth", "90 GB/s"}};
    other["cards"]["per_node"] = per_node;
    const auto nodes = [](const Json& of, int used) {
      const int each = of["devices_per_node"].get<int>();
      return (used + each - 1) / each;
    };
    machine["nodes"] = nodes(machine, first);
    machine["devices"] = first;
    other["nodes"] = nodes(other, devices - first);
    other["devices"] = devices - first;
    Json cluster = {{"machines", {machine, other}}};
    if (chance(0.3)) {
      cluster["network"] = {{"kind", "wan"},
                            {"delay", {{nullptr, "1 ms"}, {"2 ms", nullptr}}},
                            {"bandwidth", {{nullptr, "3 GB/s"}, {"2 GB/s", nullptr}}},
                            {"nodes", {machine["nodes"], other["nodes"]}}};
    }
    return cluster;
  }

  Json device() {
    Json made = {{"name", "small"},
                 {"memory", "80 GiB"},
                 {"memory_bandwidth", "400 GB/s"},
                 {"launch_overhead", "2 us"},
                 {"peak", {{"fp32", "10 TFLOP/s"}, {"bf16", "80 TFLOP/s"}}},
                 {"efficiency", {{"gemm", {{"compute", 0.7}, {"memory", 0.8}}}}}};
    if (chance(0.15)) made["collective_sms"] = 0.1;
    if (chance(0.1)) made["message_sms"] = 0.05;
    return made;
  }

  Json parallel() {
    Json keys = {{"pipeline", pipeline_}, {"data", data_}};
    if (stages_ != pipeline_ && !laid_) keys["stages"] = stages_;
    if (tensor_ > 1) keys["tensor"] = tensor_;
    if (context_ > 1) keys["context"] = context_;
    if (tensor_ > 1 && chance(0.4)) keys["sequence_parallel"] = true;
    if (context_ > 1 && chance(0.5)) keys["context_layout"] = "all_to_all";
    const int replicas = data_ * context_, zero = random_.integer(0, whole_matrices_ ? 2 : 3);
    if (experts_) share_experts(keys);
    keys["zero_stage"] = zero;
    if (zero > 0 && replicas % 2 == 0 && chance(0.3)) keys["shard"] = replicas / 2;
    if (chance(0.3)) keys["overlap_gradients"] = false;
    if (zero > 0 && zero < 3 && chance(0.4)) keys["overlap_weights"] = true;
    if (chance(0.4)) keys["gradient_reduction"] = chance(0.7) ? "micro_batch" : "step";
    if (chance(0.4)) keys["bucket"] = with_unit(one_of<double>({1, 8, 100}), "MiB");
    if (zero == 3 && chance(0.5)) keys["prefetch"] = random_.integer(0, 3);
    if (chance(0.2)) keys["order"] = {"data", "tensor", "context", "pipeline"};
    if (chance(0.1)) keys["order"] = {"pipeline", "data", "tensor", "context"};
    return keys;
  }

  /// Draws ways to experts, and their mesh: that of attention, or its own where tokens are divided.
  void share_experts(Json& keys) {
    const bool pairs = pairs_ && chance(0.7);
    if (pairs || chance(0.4)) keys["expert_overlap"] = pairs ? "micro_batches" : "shared_experts";
    if (pairs && chance(0.5)) keys["delay_weight_gradients"] = true;
    if (chance(0.4)) keys.update({{"expert_dispatch", "deepep"}, {"dispatch_format", "fp8"}});
    keys["dispatch_sms"] = chance(0.9) ? 0 : 0.15;
    const int replicas = data_ * context_, devices = devices_a_rank();
    const bool own_tokens = tensor_ == 1 || keys.contains("sequence_parallel");
    if (!own_tokens || chance(0.4)) {
      if (8 % replicas == 0 && chance(0.7)) keys["expert"] = replicas;
      return;
    }
    std::vector<int> parts;
    for (const int one : {1, 2, 4, 8}) {
      if (devices % one == 0) parts.push_back(one);
    }
    const int tensor = one_of(parts);
    std::vector<int> degrees;
    for (const int one : {1, 2, 4, 8}) {
      if (devices / tensor % one == 0) degrees.push_back(one);
    }
    keys["expert_tensor"] = tensor;
    keys["expert"] = one_of(degrees);
  }

  Json training() {
    stages_ = pipeline_;
    Json keys;
    chance(0.55) ? train_globally(keys) : train_by_parts(keys);
    if (transformer_) {
      keys["global_batch_size"] = micro_batches_ * data_ * context_;
      keys["optimizer"] = one_of<std::string>(
          {"sgd", "adam", "adam-8bit", "lion", "adafactor", "muon", "basis-rotation"});
      if (chance(0.2)) {
        keys["optimizer"] = {{"kind", "adamw"}, {"masters", "none"}, {"first_moment", "bf16"}};
      }
      whole_matrices_ = keys["optimizer"] == "muon" || keys["optimizer"] == "basis-rotation";
    }
    keys["micro_batches"] = micro_batches_;
    keys["steps"] = random_.integer(1, 4);
    const bool global = keys["strategy"] == "global";
    if (global || chance(0.5)) {
      keys["recompute"] = one_of<std::string>({"none", "none", "selective", "full"});
    }
    if (chance(0.2)) recompute_some(keys);
    if (global && chance(0.2)) freeze_some(keys);
    return keys;
  }

  /// Trains adapters alone, or all but the first modules. Readouts may be tied to these.
  void freeze_some(Json& keys) {
    if (transformer_) {
      keys["lora"] = {{"rank", 4}, {"base", one_of<std::string>({"training", "nf4"})}};
    } else if (pipeline_ > 1) {
      keys["frozen_modules"] = 1;
    }
  }

  /// Recomputes parts of layers, or layers that stages count.
  void recompute_some(Json& keys) {
    const std::string feed_forward = experts_ ? "moe" : "mlp";
    const int layers = random_.integer(1, 2);
    if (keys["strategy"] == "global" && chance(0.6)) {
      keys["recompute"] = {{chance(0.5) ? "group" : "stage_layers", layers}};
    } else if (transformer_) {
      keys["recompute"] = {
          {"modules", {one_of<std::string>({"core_attn", "layernorm"}), feed_forward}}};
      if (chance(0.3)) keys["recompute"]["full_layers"] = layers;
    }
  }

  void train_globally(Json& keys) {
    static const std::vector<std::string> in_any_layout = {"naive",         "naive-split",
                                                           "gpipe",         "1f1b",
                                                           "eager-1f1b",    "zb-h1",
                                                           "zb-h2",         "pipedream",
                                                           "pipedream-2bw", "pipelined-backprop",
                                                           "ddg",           "petra",
                                                           "1f1b",          "gpipe",
                                                           "zb-h1",         "features-replay"};
    static const std::vector<std::string> laid = {
        "interleaved", "breadth-first", "interleaved-zb", "zb-v",   "dualpipe", "dualpipe-v",
        "chimera",     "bitpipe",       "hanayo",         "v-half", "v-min",    "pipeoffload"};
    keys["strategy"] = "global";
    laid_ = chance(0.35);
    const std::string name = one_of(laid_ ? laid : in_any_layout);
    if (laid_ && chance(0.8)) micro_batches_ = pipeline_ * one_of<int>({1, 2, 4});
    Json schedule = {{"kind", name}, {"early_recompute", chance(0.2)}};
    if (laid_) stages_ = 2 * pipeline_;
    if (name.rfind("dualpipe", 0) == 0 && chance(0.5)) schedule["overlap"] = 0.4;
    if (name.rfind("interleaved", 0) == 0 && chance(0.5)) {
      schedule["round"] = random_.integer(pipeline_, std::max(pipeline_, micro_batches_));
    }
    const bool bounded = !laid_ && chance(0.2);
    if (bounded) schedule["queue"] = queue();
    if (!bounded && !laid_ && chance(0.1)) schedule["copies"] = "compute_stream";
    if (chance(0.15)) {  // some are refused
      schedule.update(Json{{"message_order", "rank"}, {"batched_messages", chance(0.5)}});
    }
    if (name == "pipedream" && chance(0.3)) schedule["update_every"] = 1;
    pairs_ = (laid_ ? name[0] == 'd' || name == "interleaved" : name == "1f1b" && stages_ == 1) &&
             !schedule.contains("overlap");
    keys["schedule"] = schedule;
  }

  Json queue() {
    return chance(0.4) ? Json("rendezvous") : Json{{"buffered", random_.integer(1, 3)}};
  }

  void train_by_parts(Json& keys) {
    static const std::vector<Json> strategies = {
        "local",
        "local",
        "pairwise",
        "pairwise",
        "greedy",
        "forward-forward",
        "inference",
        {{"kind", "interlocking"}, {"n_wise", 3}},
        {{"kind", "interlocking"}, {"n_wise", 3}, {"gradient", "sum"}},
        {{"kind", "interlocking"}, {"n_wise", 2}, {"gradient", "mean"}},
        {{"kind", "pairwise"}, {"heads", "all"}, {"unneeded_input_gradients", "skipped"}},
        {{"kind", "chunked"}, {"chunks", 2}},
        {{"kind", "overlapping"}},
        {{"kind", "overlapping"}, {"gradient", "sum"}},
        {{"kind", "overlapping"}, {"forward", "recomputed"}},
        {{"kind", "backlink"}, {"modules", 1}},
        {{"kind", "backlink"}, {"modules", 2}},
        {{"kind", "tree"}},
        "independent"};
    const Json strategy = one_of(strategies);
    keys["strategy"] = strategy;
    const std::string kind =
        strategy.is_string() ? strategy.get<std::string>() : strategy["kind"].get<std::string>();
    if (kind != "greedy" && chance(0.3)) stages_ = 2 * pipeline_;
    if (kind == "interlocking" && chance(0.5)) {
      Json n_of_losses = Json::array();
      for (int stage = 0; stage < stages_; ++stage) {
        n_of_losses.push_back(random_.integer(1, stages_));
      }
      keys["strategy"]["n_wise"] = n_of_losses;
    }
    if (kind == "inference") return;
    const bool alone = kind == "local" || kind == "greedy" || kind == "tree";
    const double drawn = random_.uniform();
    if (drawn < 0.4) {
      Json eager = {{"kind", "eager"}};
      if (chance(0.5)) eager["in_flight"] = random_.integer(1, 3);
      if (chance(0.5)) eager["update_every"] = 1;
      if (chance(0.3)) eager["backward"] = "fused";
      if (chance(0.2)) eager["optimizer_sync"] = "barrier";
      if (chance(0.4)) eager["queue"] = chance(0.3) ? Json("unlimited") : queue();
      keys["schedule"] = eager;
    } else if (drawn < 0.5 && alone) {
      keys["schedule"] = one_of<std::string>({"ppll", "dgl"});
    } else if (drawn < 0.55) {
      keys["schedule"] = "list";
    }
  }

  Json variation() {
    Json keys;
    if (chance(0.4)) {
      keys["stragglers"] = {{{"rank", random_.integer(0, pipeline_ - 1)}, {"slowdown", 1.5}}};
    }
    if (chance(0.4)) {
      const int device = random_.integer(0, pipeline_ * devices_a_rank() - 1);
      keys["stragglers"] = {{{"device", device}, {"slowdown", one_of<double>({1.5, 3})}}};
    }
    if (chance(0.4)) keys["jitter"] = {{"spread", 0.05}};
    if (chance(0.2)) keys["link_jitter"] = {{"spread", 0.1}};
    if (keys.contains("jitter") || keys.contains("link_jitter")) keys["seeds"] = 2;
    if (keys.empty()) keys["stragglers"] = {{{"rank", 0}, {"slowdown", 2}}};
    return keys;
  }

  Random random_;
  bool transformer_ = false, experts_ = false, laid_ = false, whole_matrices_ = false,
       pairs_ = false;
  int pipeline_ = 1, data_ = 1, tensor_ = 1, context_ = 1, micro_batches_ = 1, stages_ = 1;
};

}  // namespace

Json random_scenario(std::uint64_t seed) { return Draw(seed).scenario(); }

}  // namespace interlock
