// Scenarios that have, between them and the good ones, every object of the contract but "workload".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/scenarios/schema/good_scenarios.h"

namespace interlock {

inline std::vector<std::string> network_documents() {
  return {
      R"({"model": {"kind": "vgg", "layers": 11, "image_size": 32},
  "cluster": {"machine": "dgx-h100", "nodes": 2, "executor": {"kind": "cpu"},
              "device": {"base": "h100", "memory": "96 GiB"},
              "power": {"pue": 1.1}, "price": "2 USD/h",
              "network": {"kind": "fat-tree", "nodes_per_leaf": 1}},
  "parallel": {"pipeline": 4},
  "training": {"strategy": {"kind": "chunked", "chunks": 2, "gradient_every": 2,
                            "activation_format": "fp8", "gradient_format": "int4"},
               "micro_batches": 2, "schedule": "eager", "global_batch_size": 8}})",
      R"({"model": {"kind": "residual-mlp", "input_size": 8, "layers": 6, "hidden_size": 8,
            "classes": 4, "head": {"kind": "mlp"}},
  "cluster": {"kind": "uniform", "devices": 4, "link": {"bandwidth": "9 GB/s"},
              "host": {"bandwidth": "5 GB/s"}, "executor": {"kind": "virtual"},
              "device": {"memory": "8 GiB", "memory_bandwidth": "1 TB/s",
                         "peak": {"bf16": "9 TFLOP/s"},
                         "efficiency": {"gemm": {"compute": 0.5}},
                         "power": {"busy": "40 W", "idle": "9 W"}, "origin": {"memory": "mine"}}},
  "training": {"strategy": {"kind": "overlapping"}, "global_batch_size": 8}})",
      R"({"model": {"kind": "sparse-mlp", "input_size": 16,
            "layers": [{"size": 16, "density": 0.5}]},
  "cluster": {"kind": "machine", "device": "t4", "devices_per_node": 2, "nodes": 4,
              "port": {"bandwidth": "9 GB/s"}, "cards": {"bandwidth": "3 GB/s"},
              "pcie": {"sockets": 1, "switches": 2, "uplink": {"bandwidth": "9 GB/s"}},
              "executor": {"kind": "cuda"}, "collectives": "links", "origin": {"device": "made up"},
              "network": {"kind": "dragonfly", "groups": 2, "routers_per_group": 2,
                          "nodes_per_router": 1, "local": {"bandwidth": "9 GB/s"},
                          "global": {"bandwidth": "9 GB/s"}}},
  "parallel": {"pipeline": 1, "tensor": 8},
  "training": {"strategy": {"kind": "inference"}, "global_batch_size": 8, "precision": "fp16"}})",
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 16, "attention_heads": 2,
            "patches": {"image_size": 32, "patch_size": 16}, "head": "linear"},
  "cluster": {"kind": "machine", "device": "a100-80g", "nodes": 4,
              "network": {"kind": "torus", "dimensions": [2, 2], "of": "devices",
                          "link": {"bandwidth": "9 GB/s"}}},
  "training": {"strategy": {"kind": "local",
                            "head": {"kind": "later-layers", "weights": "shared-frozen"}},
               "global_batch_size": 8}})",
      R"({"model": {"kind": "profile", "modules": [
    {"forward": "1 ms", "output": "1 MB", "skips": [{"to": 2, "bytes": "1 MB"}]},
    {"forward": "1 ms", "output": "1 MB"}, {"forward": "1 ms"}]},
  "cluster": {"machines": ["dgx-a100-80g", {"machine": "dgx-h100", "devices": 3}], "devices": 3,
              "network": {"kind": "switch"}},
  "training": {"strategy": "global", "micro_batches": 2, "schedule": "dualpipe-v"},
  "parallel": {"pipeline": 1},
  "sweep": {"training.schedule": ["gpipe"], "grid": {"training.steps": [4, 5]},
            "zip": {"parallel.pipeline": [3], "training.micro_batches": {"from": 4, "to": 4}},
            "exclude": [{"training.steps": 5}], "sample": {"count": 1}}})"};
}

inline std::vector<std::string> training_documents() {
  return {
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 16, "attention_heads": 2,
            "vocab_size": 64, "sequence_length": 16, "positions": "rotary",
            "latent_attention": {"kv_rank": 8, "head_size": 4, "rotary_head_size": 4,
                                 "value_head_size": 4, "selection": {"tokens": 8,
                                 "index_heads": 2, "index_head_size": 4}}},
  "cluster": "dgx-h100", "parallel": {"pipeline": 4},
  "training": {"strategy": {"kind": "local", "head": {"kind": "lm", "weights": {"stale_every": 2}}},
               "schedule": {"kind": "eager", "queue": {"buffered": 2}}, "global_batch_size": 8,
               "micro_batches": 4,
               "precision": "fp8", "bf16_layers": {"first": 1},
               "offload": {"activations": 0.5},
               "framework": {"base": {"kernel_issue": "1 us"}, "product_speed": 0.9,
                             "wide_product_speed": 0.5,
                             "attention_speeds": {"NVIDIA Hopper": 0.5}}},
  "goal": {"steps": 9, "strategies": {"local": {"samples": 99}}},
  "search": {"tensor": [1], "limits": {"memory": "9 GiB"}}})",
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 16, "attention_heads": 2,
            "vocab_size": 64, "sequence_length": 16, "attention": "retention", "experts": 2},
  "cluster": {"machine": "dgx-a100-80g", "devices": 4},
  "parallel": {"stage_layouts": [{"tensor": 2}, {"data": 2}]},
  "training": {"strategy": {"kind": "global"}, "schedule": {"kind": "eager-1f1b"},
               "global_batch_size": 8, "micro_batches": 2, "precision": "fp16"}})",
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 16, "attention_heads": 2,
            "vocab_size": 64, "sequence_length": 16}, "cluster": {"machine": "dgx-a100-80g"},
  "parallel": {"data": 2, "layer_layouts": [{"modules": [1, 3], "tensor": 2, "data": 1}]},
  "training": {"strategy": "global", "global_batch_size": 4, "micro_batches": 2}})",
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 16, "attention_heads": 2,
            "vocab_size": 64, "sequence_length": 16, "layer_pattern": [
              {"sliding_window": 4}, {"attention": "mamba", "mamba": {}, "ffn": "none"},
              {"attention": "mamba2", "mamba2": {"heads": 2}},
              {"attention": "gated-delta", "gated_delta": {"value_heads": 2}}],
            "encoder": {"layers": 1, "hidden_size": 8, "attention_heads": 2, "connector": {},
                        "patches": {"image_size": 32, "patch_size": 16}},
            "multi_token_prediction": {}},
  "cluster": {"machine": "dgx-a100-80g", "devices": 1}, "training": {"strategy": "global",
               "framework": {"kernel_issue": "1 us"}, "global_batch_size": 4,
               "micro_batches": 2}})",
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 16, "attention_heads": 2,
            "head_size": 8, "vocab_size": 64, "sequence_length": 16, "positions": "rotary",
            "sliding_window": 4, "hyper_connections": {"streams": 2}, "experts": 4,
            "hash_layers": 1, "compressed_attention": {"query_rank": 8, "rotary_head_size": 4,
              "output_groups": 2, "output_rank": 8, "ratio": 4, "overlap": true,
              "selection": {"entries": 2, "index_heads": 2, "index_head_size": 4}},
            "multi_token_prediction": {"form": {"compressed_attention": {"query_rank": 8,
              "rotary_head_size": 4, "output_rank": 8}}}},
  "cluster": {"machine": "dgx-a100-80g", "devices": 2},
  "training": {"strategy": "global", "global_batch_size": 4}})",
      R"({"model": {"base": {"kind": "transformer", "layers": 4, "hidden_size": 16,
            "attention_heads": 2, "vocab_size": 64, "sequence_length": 16}},
  "cluster": {"machine": "dgx-a100-80g", "devices": 2},
  "training": {"strategy": "global", "schedule": {"kind": "terapipe"}, "global_batch_size": 4,
               "micro_batches": 2}})",
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 16, "attention_heads": 2,
            "vocab_size": 64, "sequence_length": 16},
  "cluster": {"machine": "dgx-a100-80g", "devices": 2},
  "training": {"strategy": "global", "global_batch_size": 4, "steps": 2},
  "variation": {"documents": {"mean": 6, "spread": 0.5}, "seeds": 2}})",
      R"({"model": {"kind": "mlp", "input_size": 8, "hidden_sizes": [8], "classes": 4},
  "cluster": {"machine": "dgx-a100-80g", "kinds": [{"device": "a100-80g"}, {"device": "h100"}]},
  "parallel": {"pipeline": 2}, "training": {"strategy": "global", "global_batch_size": 4}})",
      R"({"model": {"kind": "resnet", "block": "basic", "blocks": [1, 1]},
  "cluster": {"machine": "dgx-a100-80g", "devices": 4}, "parallel": {"zero_stage": 1},
  "training": {"strategy": {"kind": "backlink", "modules": 1}, "schedule": {"kind": "eager"},
               "global_batch_size": 4}})",
      R"({"model": {"model_type": "gpt2", "n_layer": 2, "n_embd": 48},
  "cluster": {"machine": "dgx-a100-80g", "devices": 2},
  "training": {"strategy": "global", "schedule": {"kind": "auto", "evaluations": 9},
               "global_batch_size": 4, "micro_batches": 4}})"};
}

inline const std::vector<std::string>& contract_documents() {
  static const std::vector<std::string> documents = [] {
    std::vector<std::string> all = good_scenarios();
    for (const auto& more : {network_documents(), training_documents()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return documents;
}

}  // namespace interlock
