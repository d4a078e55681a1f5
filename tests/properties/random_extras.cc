// Draws keys of frameworks, models, machines and layouts that few scenarios have.
// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random_extras.h"

#include <string>
#include <vector>

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

class Extras {
 public:
  Extras(Json& document, Random& random)
      : random_(random),
        training_(document["training"]),
        parallel_(document["parallel"]),
        model_(document["model"]),
        cluster_(document["cluster"]),
        document_(document),
        transformer_(model_["kind"] == "transformer") {}

  void add() {
    if (parallel_["data"] > 1 && !parallel_.contains("expert") && chance(0.15)) train_apart();
    if (chance(0.25)) training_["framework"] = framework();
    if (chance(0.1)) training_["blocking_launches"] = true;
    transformer_ ? add_to_transformer() : add_to_profile();
    if (chance(0.06)) parallel_["placement"] = "v";
    if (training_["strategy"] == "global" && chance(0.06)) {
      training_["schedule"] = {{"kind", chance(0.5) ? "terapipe" : "seq1f1b"}, {"slices", 2}};
      if (chance(0.5)) trade_context();
    }
    if (may_defer() && chance(0.5)) training_["schedule"]["deferred_readout"] = 2;
    if (may_divide() && chance(0.6)) divide_vocabulary();
    add_variation();
    add_to_machine();
    if (may_go_round() && chance(0.5)) go_round();
    if (may_choose_tokens() && chance(0.15)) choose_tokens();
    if (may_part_layers() && chance(0.6)) part_layers();
    if (chance(0.25)) change_boundaries();
  }

 private:
  bool chance(double probability) { return random_.uniform() < probability; }

  /// Returns whether weight gradients of the readout may be put off.
  bool may_defer() {
    if (!transformer_ || training_["strategy"] != "global" || training_.contains("lora"))
      return false;
    const Json& schedule = training_["schedule"];
    const std::string kind = schedule["kind"];
    const bool fused = kind == "gpipe" || kind == "1f1b" || kind == "eager-1f1b" ||
                       kind == "interleaved" || kind == "breadth-first" || kind == "hanayo";
    return fused && parallel_["zero_stage"] < 2 && !model_.contains("multi_token_prediction");
  }

  /// Returns whether ranks may hold a part of the vocabulary each.
  bool may_divide() {
    if (!transformer_ || training_["strategy"] != "global") return false;
    const Json& schedule = training_["schedule"];
    const bool v = schedule["kind"] == "v-half";
    const bool ordered = v || schedule["kind"] == "1f1b" || schedule["kind"] == "slimpipe";
    const int ranks = parallel_["pipeline"], stages = (v ? 2 : 1) * ranks;
    return ordered && !schedule.contains("deferred_readout") && ranks > 1 &&
           parallel_.value("stages", stages) == stages &&
           schedule.value("backward", "fused") == "fused" &&
           schedule.value("execution", "futures") == "futures" && !training_.contains("lora") &&
           !model_.contains("multi_token_prediction") && !training_.contains("offload") &&
           !parallel_.contains("layouts") && !training_.contains("replica_micro_batches");
  }
  /// Returns whether each rank is one device, of one kind.
  bool may_go_round() const {
    return parallel_["pipeline"] > 1 && parallel_["data"] == 1 && !parallel_.contains("tensor") &&
           !parallel_.contains("context") && !cluster_.contains("machines");
  }
  /// Passes weights round the ranks. Offload and some layouts are refused.
  void go_round() {
    const int ranks = parallel_["pipeline"], micro_batches = ranks * random_.integer(1, 6);
    parallel_ = {{"pipeline", ranks}, {"data", 1}};
    training_["strategy"] = "global";
    training_["schedule"] = {{"kind", "weipipe"}, {"early_recompute", chance(0.2)}};
    training_["micro_batches"] = micro_batches;
    if (transformer_) training_["global_batch_size"] = micro_batches;
  }

  /// Casts what passes between stages, and lets gradients cross boundaries now and then. Some
  /// schedules refuse it.
  void change_boundaries() {
    Json& strategy = training_["strategy"];
    if (strategy.is_string()) strategy = {{"kind", strategy}};
    const std::string kind = strategy["kind"];
    const bool parts = kind == "interlocking" || kind == "pairwise" || kind == "chunked";
    if (parts && chance(0.7))
      strategy["gradient_every"] = chance(0.5) ? 2 : training_["micro_batches"].get<int>();
    if (kind == "forward-forward" && chance(0.5)) strategy["module_gradients"] = "computed";
    if (kind == "tree" || kind == "independent") return;
    static const std::vector<std::string> formats = {"training", "fp8", "int8", "int4"};
    const auto format = [&] { return formats[static_cast<std::size_t>(random_.integer(0, 3))]; };
    strategy["activation_format"] = format();
    if (kind != "inference") strategy["gradient_format"] = format();
  }
  /// Returns whether layers are of a kind that may be cut around its attention.
  bool may_part_layers() const {
    return transformer_ && !model_.contains("layer_pattern") && !model_.contains("encoder") &&
           parallel_["pipeline"] > 1 && !parallel_.contains("expert") &&
           !parallel_.contains("layouts") && !parallel_.contains("stage_layouts") &&
           !training_.contains("replica_micro_batches");
  }
  /// Has attention of each micro-batch on a rank of its own. Some models and machines are refused.
  void part_layers() {
    const int ranks = parallel_["pipeline"], data = parallel_["data"],
              folds = random_.integer(1, 2);
    const int micro_batches = ranks * folds * random_.integer(1, 2);
    for (const char* key :
         {"stages", "placement", "zero_stage", "shard", "outer", "gradient_reduction"}) {
      parallel_.erase(key);
    }
    if (chance(0.3)) parallel_["zero_stage"] = 1;
    for (const char* key : {"offload", "frozen_modules", "recompute_layers"}) training_.erase(key);
    document_.erase("partition");
    model_["layers"] = ranks * random_.integer(1, 2);
    model_["attention"] = chance(0.7) ? "fused" : "materialised";
    training_["strategy"] = "global";
    training_["schedule"] = {
        {"kind", "helixpipe"}, {"folds", folds}, {"transfer_weights", chance(0.6)}};
    training_["micro_batches"] = micro_batches;
    training_["global_batch_size"] = micro_batches * data;
  }

  /// Returns whether samples are one sequence, whole on its devices.
  bool may_choose_tokens() const {
    const bool documents =
        document_.contains("variation") && document_["variation"].contains("documents");
    const bool slices = training_.contains("schedule") && training_["schedule"].contains("slices");
    return transformer_ && !parallel_.contains("context") && !documents && !slices;
  }
  /// Has tokens choose those that they see. Windows and forms with heads of their own are refused.
  void choose_tokens() {
    for (const char* key : {"sliding_window", "layer_pattern", "qk_norm"}) model_.erase(key);
    model_.update({{"attention", "fused"}, {"positions", "rotary"}});
    model_["latent_attention"] = {
        {"query_rank", 96},
        {"kv_rank", 64},
        {"head_size", 32},
        {"rotary_head_size", 16},
        {"value_head_size", 32},
        {"selection",
         {{"tokens", random_.integer(1, 128)}, {"index_heads", 4}, {"index_head_size", 16}}}};
  }

  /// Has each rank one stage, or two, and trade attention of slices with others.
  void trade_context() {
    const int chunks = random_.integer(1, 2), ranks = parallel_["pipeline"];
    training_["schedule"] = {
        {"kind", "slimpipe"}, {"slices", random_.integer(ranks, 8)}, {"chunks", chunks}};
    parallel_["stages"] = ranks * chunks;
    parallel_.erase("placement");
  }

  /// Some of these are refused for another key.
  void divide_vocabulary() {
    training_["schedule"]["vocabulary"] = chance(0.5) ? "vocab-1" : "vocab-2";
    parallel_["overlap_gradients"] = parallel_["overlap_weights"] = false;
    parallel_["zero_stage"] = random_.integer(0, 1);
    parallel_.erase("tensor_layout");
  }

  Json framework() {
    Json keys = {{"divides_messages", transformer_},
                 {"gather_copies", chance(0.3)},
                 {"expert_scores", chance(0.3) ? "activations" : "outputs"},
                 {"waits_for_sends", chance(0.4)},
                 {"recompute_until", chance(0.3) ? "last_read" : "output"},
                 {"overlaps_sums", chance(0.2)}};
    if (chance(0.3)) keys["message_copies"] = "20 GB/s";
    if (chance(0.4)) keys.update({{"kernel_issue", "5 us"}, {"backward_issue", "3 us"}});
    if (chance(0.2)) keys["expert_issue"] = "2 us";
    if (chance(0.4)) keys.update({{"exchange_issue", "10 us"}, {"gradient_sweeps", 3}});
    if (chance(0.2)) keys["gradient_passes"] = 2;
    if (transformer_ && chance(0.2)) keys["softmax_group"] = 4;
    if (transformer_ && chance(0.2)) keys["vocabulary"] = "gathered";
    if (chance(0.2)) keys["gradients"] = "fp32";
    if (chance(0.1)) keys["gradients"] = chance(0.5) ? "both" : "fp32_for_updates";
    if (chance(0.2)) {
      keys.update({{"expert_library_memory", "16 MiB"}, {"dummy_weight_gradients", "all"}});
    }
    if (transformer_ && chance(0.2)) {
      keys.update({{"attention_scores_buffer", true}, {"dummy_weight_gradients", "dense"}});
    }
    if (transformer_ && chance(0.2)) keys["recompute_steps"] = 5;
    return keys;
  }

  /// Draws workers that exchange weights every few steps.
  void train_apart() {
    static const std::vector<std::string> formats = {"fp32", "bf16", "fp4"};
    parallel_.erase("shard");
    const int every = random_.integer(1, 20);
    Json outer = {{"every", every},
                  {"format", formats[static_cast<std::size_t>(random_.integer(0, 2))]}};
    if (parallel_["data"].get<int>() % 2 == 0 && chance(0.6)) outer["workers"] = 2;
    if (chance(0.5)) outer["fragments"] = random_.integer(1, every);
    if (chance(0.5)) outer["overlap"] = random_.integer(0, every);
    if (outer.value("overlap", 0) > 0) {
      if (chance(0.3)) outer["network_share"] = 0.1 * random_.integer(1, 10);
      outer["delay_compensation"] = chance(0.3);
    }
    parallel_["outer"] = outer;
  }

  void add_to_transformer() {
    if (chance(0.05)) parallel_["tensor_layout"] = chance(0.5) ? "2d" : "3d";
    if (chance(0.05)) parallel_["gradient_density"] = 0.25;
    if (model_.contains("experts")) {
      if (chance(0.3)) model_.erase("capacity_factor");
      if (chance(0.2)) parallel_["expert_imbalance"] = 1.7;
      if (chance(0.1)) parallel_["expert_load"] = {1, 2, 3, 4, 5, 1, 1, 2};
      if (chance(0.2)) parallel_["combine_format"] = "fp8";
      if (chance(0.3)) model_["expert_latent_size"] = 64 * random_.integer(1, 3);
    }
    if (chance(0.05)) training_["precision"] = "fp32";
    if (chance(0.1)) {
      const bool four = chance(0.5);
      training_["precision"] = four ? "fp4" : "fp8";
      if (!four || chance(0.6)) training_["weights"] = four ? "nvfp4" : "mxfp8";
      if (chance(0.7)) {
        training_["bf16_layers"] = {{"first", random_.integer(0, 1)}, {"last", 1}};
      }
      for_machines([&](Json& machine) {
        machine["device"]["peak"][four ? "fp4" : "fp8"] = four ? "300 TFLOP/s" : "160 TFLOP/s";
      });
    }
  }

  /// Has a module read what the one two before it made.
  void add_to_profile() {
    Json& modules = model_["modules"];
    if (modules.size() < 3 || !chance(0.2)) return;
    const int first = random_.integer(0, static_cast<int>(modules.size()) - 3);
    modules[static_cast<std::size_t>(first)]["skips"] = {{{"to", first + 2}, {"bytes", "2 MiB"}}};
  }

  void add_variation() {
    if (chance(0.05)) {
      Json speeds = Json::array();
      for (int rank = 0; rank < parallel_["pipeline"]; ++rank)
        speeds.push_back(chance(0.5) ? 1 : 2);
      document_["variation"]["speeds"] = speeds;
    }
    if (chance(0.05)) {
      document_["variation"]["slow_links"] = {
          {{"from", 0}, {"to", random_.integer(1, 3)}, {"slowdown", 1.5}}};
    }
    if (transformer_ && chance(0.05)) {
      document_["variation"]["documents"] = {{"lengths", {16, 32, 64}}};
    }
  }

  void add_to_machine() {
    if (cluster_.contains("kind") && chance(0.15)) {
      cluster_["host"] = {{"bandwidth", "20 GB/s"}, {"latency", "5 us"}};
      const double share = chance(0.5) ? 1 : 0.5;
      const bool divided =
          training_.contains("schedule") && training_["schedule"].contains("vocabulary");
      if (transformer_ && !divided)
        training_["offload"] = {{chance(0.5) ? "optimizer" : "activations", share}};
    }
    if (!cluster_.contains("kind") || cluster_["kind"] != "machine") return;
    if (chance(0.1)) {
      cluster_["pcie"] = {{"switches", 1}, {"sockets", 1}};
    } else if (chance(0.2)) {
      cluster_["node_topology"] = "pairs";
    }
    if (chance(0.1)) cluster_["network"] = network();
  }

  Json network() {
    const Json link = {{"bandwidth", "5 GB/s"}, {"latency", "2 us"}};
    if (chance(0.4)) {
      return {{"kind", "torus"}, {"link", link}, {"dimensions", {cluster_["nodes"], 1}}};
    }
    if (chance(0.5)) {
      return {{"kind", "dragonfly"},
              {"nodes_per_router", 1},
              {"routers_per_group", 2},
              {"local", link},
              {"global", link}};
    }
    return {{"kind", "fat-tree"}, {"nodes_per_leaf", 2}, {"rail_optimised", true}};
  }

  template <class Visit>
  void for_machines(Visit visit) {
    if (cluster_.contains("device")) visit(cluster_);
    if (!cluster_.contains("machines")) return;
    for (Json& machine : cluster_["machines"]) visit(machine);
  }

  Random& random_;
  Json &training_, &parallel_, &model_, &cluster_, &document_;
  bool transformer_;
};

}  // namespace

void add_extras(Json& document, Random& random) { Extras(document, random).add(); }

}  // namespace interlock
