// Good scenarios for tests that do them harm.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace interlock {

inline std::vector<std::string> good_small_scenarios() {
  return {
      R"({
  "name": "four stages", // measured
  "model": {"kind": "profile", "modules": [
    {"repeat": 3, "forward": "1 ms", "backward_input": "1.5 ms", "backward_weight": "1 ms",
     "update": "10 us", "head": "0.5 ms", "output": "1 MiB", "stash": "8 MiB",
     "parameters": "2 MB"},
    {"forward": "2 ms", "backward_input": "2 ms", "backward_weight": "1 ms"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
              "link": {"latency": "3 us", "bandwidth": "100 GB/s"}},
  "parallel": {"pipeline": 2, "stages": 4, "placement": "v"}, "partition": [1, 1, 1, 1],
  "training": {"strategy": {"kind": "interlocking", "n_wise": 3, "gradient": "sum",
                            "heads": "all", "unneeded_input_gradients": "skipped"},
               "schedule": {"kind": "eager", "queue": {"buffered": 2}, "in_flight": 2,
                            "update_every": 2, "optimizer_sync": "barrier"},
               "micro_batches": 4, "steps": 3, "optimizer": "adam"},
  "simulate": {"engine": "native", "seed": 3},
  "run": {"steps": 90, "on_failure": "restart", "spares": 1, "seeds": 2, "detection": "1 ms",
          "checkpoint": {"interval": 9, "write": "2 ms", "asynchronous": true, "stall": "1 ms"},
          "failures": {"device_mtbf": "9 s", "node_mtbf": "7 s", "distribution": "weibull",
                       "shape": 0.7, "replacement": "1 s"}},
  "quality": {"measure": "perplexity", "value": 20.5, "source": "nowhere"}
})",
      R"({
  "model": {"kind": "mlp", "input_size": 64, "hidden_sizes": [64, 32, 32, 16], "classes": 10},
  "cluster": {"machine": "dgx-a100-80g", "nodes": 1, "devices": 4},
  "partition": "balanced",
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 32,
               "micro_batch_size": 4, "precision": "tf32", "recompute": "full"},
  "sweep": {"training": [{"strategy": "local", "schedule": "eager"}, {"name": "g"}],
            "parallel.pipeline": [2, 3]}
})",
      R"({
  "model": {"kind": "transformer", "layers": 2, "hidden_size": 64, "attention_heads": 4,
            "kv_heads": 2, "vocab_size": 100, "sequence_length": 16, "norm": "rmsnorm",
            "gated_mlp": true, "positions": "rotary", "experts": 4, "experts_per_token": 2,
            "shared_experts": 1, "expert_ffn_hidden_size": 32, "capacity_factor": 1.5,
            "dense_layers": 1},
  "cluster": "dgx-h100",
  "parallel": {"pipeline": 2},
  "training": {"strategy": {"kind": "greedy",
                            "head": {"kind": "mlp", "hidden_size": 8,
                                     "weights": {"stale_every": 2}}},
               "global_batch_size": 8, "micro_batches": 2, "precision": "bf16"}
})"};
}

inline std::vector<std::string> good_cluster_scenarios() {
  return {
      R"({"model": {"kind": "mlp", "input_size": 8, "layers": 3, "hidden_size": 8, "classes": 4},
  "cluster": {"machines": ["pcie-rtx-3090", {"machine": "pcie-rtx-4090", "nodes": 2}],
              "devices": 20, "network": {"kind": "wan", "nodes": [1, 2],
                "delay": [["0 s", "9 ms"], ["8 ms", "0 s"]], "bandwidth": [["9 GB/s", "1 GB/s"],
                ["2 GB/s", "9 GB/s"]]}}, "parallel": {"pipeline": 4, "data": 5},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 20}})",
      R"({
  "model": {"kind": "profile", "modules": [
    {"repeat": 6, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
     "output": "4 MB"}]},
  "cluster": {"kind": "machine", "device": "rtx-3090", "devices_per_node": 2, "nodes": 4,
              "port": {"latency": "5 us", "bandwidth": "20 GB/s"}, "host": {"bandwidth": "9 GB/s"},
              "pcie": {"sockets": 2, "socket_link": {"bandwidth": "15 GB/s"}},
              "cards": {"bandwidth": "25 Gb/s"}, "network": {"kind": "wan",
                "delay": [[null, "9 ms"], ["8 ms", null]],
                "bandwidth": [[null, "1 GB/s"], ["2 GB/s", null]]}},
  "parallel": {"pipeline": 6},
  "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": 3},
  "variation": {"stragglers": [{"rank": 2, "slowdown": 1.5},
                               {"device": 5, "slowdown": 2, "from_step": 2, "to_step": 4}],
                "slow_links": [{"from": 1, "to": 4, "slowdown": 3}],
                "speeds": [1, 1, 2, 1, 0.5, 1], "seeds": 2,
                "jitter": {"distribution": "uniform", "per": "step", "spread": 0.2},
                "link_jitter": {"distribution": "gamma", "per": "message", "spread": 0.9}}
})",
      R"({
  "model": {"kind": "transformer", "layers": 3, "hidden_size": 64, "attention_heads": 8,
            "vocab_size": 128, "sequence_length": 32, "experts": 4},
  "cluster": {"machine": "dgx-h100", "nodes": 4},
  "parallel": {"tensor": 2, "context": 2, "data": 4, "expert": 2, "expert_imbalance": 1.5,
               "expert_dispatch": "deepep",
               "sequence_parallel": true, "context_layout": "all_to_all", "zero_stage": 3,
               "shard": 4, "overlap_weights": true, "bucket": "1 MiB", "prefetch": 2,
               "order": ["tensor", "data", "context", "pipeline"]},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 16,
               "micro_batches": 2, "steps": 2},
  "simulate": {"fold": ["data", "tensor", "context"]}
})",
      R"({
  "model": {"kind": "mlp", "input_size": 64, "layers": 4, "hidden_size": 64, "classes": 64},
  "cluster": {"machine": "dgx-a100-80g", "nodes": 2}, "simulate": {"fold": "none"},
  "parallel": {"pipeline": 1, "tensor": 8, "tensor_layout": "2.5d", "tensor_depth": 2, "data": 2,
               "zero_stage": 1, "overlap_gradients": false, "gradient_density": 0.5,
               "outer": {"every": 9}},
  "training": {"strategy": "local", "global_batch_size": 32, "micro_batches": 2, "steps": 2}
})",
      R"({
  "model": {"kind": "resnet", "block": "basic", "blocks": [1, 1], "image_size": 16},
  "cluster": {"machine": "dgx-a100-80g"},
  "parallel": {"pipeline": 2, "spatial": [2, 2]},
  "training": {"strategy": "local", "global_batch_size": 8, "micro_batches": 2, "steps": 2}
})"};
}

inline std::string good_swarm_scenario() {
  return R"({
  "model": {"kind": "transformer", "layers": 4, "hidden_size": 64, "attention_heads": 4,
            "vocab_size": 100, "sequence_length": 16},
  "cluster": {"kind": "machine", "device": "t4", "devices_per_node": 2, "nodes": 2,
              "port": {"latency": "5 us", "bandwidth": "12 GB/s"}, "host": {"bandwidth": "9 GB/s"},
              "cards": {"bandwidth": "25 Gb/s"}},
  "parallel": {"pipeline": 4},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 8,
               "micro_batches": 4, "precision": "fp16",
               "optimizer": {"kind": "adamw", "masters": "fp16", "first_moment": "bf16"},
               "lora": {"rank": 2, "modules": ["linear_qkv", "linear_fc1"], "base": "nf4"},
               "recompute": {"modules": ["core_attn"], "full_layers": 2},
               "offload": {"activations": 0.5, "optimizer": 1}},
  "swarm": {"peers": [2, 1, 2, 2], "speed": [1, 0.5], "up": "1 Gb/s", "down": ["2 Gb/s"],
            "latency": "1 ms", "routing": "random", "rebalance_every": "1 s",
            "compression": "int8", "in_flight": 6, "delayed_update": false,
            "lost_gradients": "dropped", "detection": "10 ms", "duration": "2 s",
            "warm_up": "0.1 s", "seeds": 2,
            "failures": {"device_mtbf": "9 s", "distribution": "weibull", "shape": 0.7,
                         "replacement": "1 s"}}
})";
}

/// Small scenarios that between them use every section.
inline const std::vector<std::string>& good_scenarios() {
  static const std::vector<std::string> scenarios = [] {
    std::vector<std::string> all = good_small_scenarios();
    for (std::string& one : good_cluster_scenarios()) all.push_back(std::move(one));
    all.push_back(good_swarm_scenario());
    return all;
  }();
  return scenarios;
}

}  // namespace interlock
