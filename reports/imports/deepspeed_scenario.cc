// DeepSpeed scenario: maps settings to the keys of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "reports/imports/deepspeed_scenario.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "reports/imports/setting_files.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIdleDeepSpeed[] = {"steps_per_print",
                                          "wall_clock_breakdown",
                                          "dump_state",
                                          "scheduler.",
                                          "optimizer.params",
                                          "gradient_clipping",
                                          "prescale_gradients",
                                          "gradient_predivide",
                                          "tensorboard",
                                          "wandb",
                                          "csv_monitor",
                                          "flops_profiler",
                                          "comms_logger",
                                          "checkpoint",
                                          "zero_allow_untested",
                                          "bf16.",
                                          "fp16.",
                                          "data_types",
                                          "memory_breakdown",
                                          "seed",
                                          "elasticity",
                                          "comet",
                                          "monitor",
                                          "zero_optimization.stage3_gather_16bit",
                                          "zero_optimization.sub_group_size",
                                          "zero_optimization.round_robin",
                                          "zero_optimization.load_from",
                                          "zero_optimization.elastic",
                                          "zero_optimization.ignore_unused",
                                          "compute_environment",
                                          "debug",
                                          "distributed_type",
                                          "downcast_bf16",
                                          "enable_cpu_affinity",
                                          "machine_rank",
                                          "main_",
                                          "num_machines",
                                          "rdzv",
                                          "same_network",
                                          "tpu_",
                                          "use_cpu",
                                          "deepspeed_config.zero3_",
                                          "deepspeed_config.deepspeed_",
                                          "deepspeed_config.gradient_clipping",
                                          "fsdp_config.fsdp_auto",
                                          "fsdp_config.fsdp_cpu_ram",
                                          "fsdp_config.fsdp_state",
                                          "fsdp_config.fsdp_sync",
                                          "fsdp_config.fsdp_transformer",
                                          "fsdp_config.fsdp_use_orig",
                                          "fsdp_config.fsdp_version",
                                          "dispatch_batches",
                                          "split_batches",
                                          "even_batches",
                                          "mpirun_"};

NameBearing deepspeed_bearing(const std::string& name) {
  for (const char* beginning : kIdleDeepSpeed) {
    if (name.starts_with(beginning)) return {NameBearing::None};
  }
  constexpr const char* kBuckets = "weights are gathered a module at a time";
  constexpr const char* kNotHere = "is left out: the step is predicted without it";
  for (const char* part : {"stage3_", "allgather_", "fsdp_min_num_params", "fsdp_limit_all"}) {
    if (name.find(part) != name.npos) return {NameBearing::Matters, kBuckets};
  }
  if (name.find("prefetch") != name.npos) {
    return {NameBearing::Matters, "weights are gathered one module ahead, see parallel.prefetch"};
  }
  for (const char* part :
       {"zero_quantized", "zero_hpz", "compression", "sparse_attention", "aio", "autotuning", "amp",
        "communication_data_type", "torch_compile", "dynamo", "data_efficiency",
        "progressive_layer", "curriculum", "pipeline."}) {
    if (name.find(part) != name.npos) return {NameBearing::Matters, kNotHere};
  }
  if (name.starts_with("activation_checkpointing")) {
    return {NameBearing::Matters,
            "the model's code says what is computed again; "
            "set training.recompute in the scenario"};
  }
  if (name.find("pin_memory") != name.npos || name.find("buffer") != name.npos ||
      name.find("contiguous") != name.npos || name.find("nvme_path") != name.npos ||
      name.find("fast_init") != name.npos || name.find("max_in_cpu") != name.npos) {
    return {NameBearing::Matters,
            "copies and buffers are priced as the scenario's machine has them"};
  }
  return {};
}

/// accelerate's names of what DeepSpeed says otherwise.
struct Accelerated {
  const char* theirs;
  const char* deepspeeds;
};
constexpr Accelerated kAccelerated[] = {
    {"deepspeed_config.zero_stage", "zero_optimization.stage"},
    {"deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"deepspeed_config.offload_optimizer_device", "zero_optimization.offload_optimizer.device"},
    {"deepspeed_config.offload_param_device", "zero_optimization.offload_param.device"},
    {"parallelism_config.parallelism_config_tp_size", "tensor_parallel.autotp_size"},
    {"parallelism_config_tp_size", "tensor_parallel.autotp_size"},
    {"parallelism_config.parallelism_config_cp_size", "parallelism_config_cp_size"},
    {"parallelism_config.parallelism_config_dp_replicate_size",
     "parallelism_config_dp_replicate_size"},
    {"parallelism_config.parallelism_config_dp_shard_size", "parallelism_config_dp_shard_size"}};

/// Returns nothing for "auto", too.
std::optional<std::string> written(Settings& s, const std::string& name) {
  const auto text = s.text(name);
  return text == "auto" || text == "none" ? std::nullopt : text;
}
std::optional<int> written_count(Settings& s, const std::string& name) {
  return written(s, name) ? s.count(name) : std::nullopt;
}

bool is_fsdp(Settings& s) {
  const std::string kind = s.text("distributed_type").value_or("");
  return kind.find("FSDP") != kind.npos || s.text("fsdp_config.fsdp_sharding_strategy") ||
         s.text("fsdp_config.fsdp_reshard_after_forward");
}

/// Says what FSDP shards by its strategy, a name or PyTorch's number of it. The first version says
/// it under either name, the second as a flag: true, as by default, frees weights between uses.
std::string fsdp_strategy(Settings& s) {
  constexpr const char* kNumbered[] = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                       "HYBRID_SHARD_ZERO2"};
  const auto reshards = s.text("fsdp_config.fsdp_reshard_after_forward");
  const bool second = s.text("fsdp_config.fsdp_version").value_or("1") == "2";
  std::string strategy = s.text("fsdp_config.fsdp_sharding_strategy").value_or("");
  if (reshards && (second || strategy.empty())) {
    const bool named = reshards->find("SHARD") != reshards->npos;
    const bool frees = named || s.flag("fsdp_config.fsdp_reshard_after_forward");
    return named ? *reshards : frees ? "FULL_SHARD" : "SHARD_GRAD_OP";
  }
  for (std::size_t i = 0; i < std::size(kNumbered); ++i) {
    if (strategy == std::to_string(i + 1)) strategy = kNumbered[i];
  }
  return strategy.empty() ? "FULL_SHARD" : strategy;
}

int zero_stage(Settings& s) {
  if (!is_fsdp(s)) return std::min(written_count(s, "zero_optimization.stage").value_or(0), 3);
  const std::string strategy = fsdp_strategy(s);
  if (strategy == "FULL_SHARD" || strategy == "HYBRID_SHARD") return 3;
  if (strategy == "SHARD_GRAD_OP" || strategy == "HYBRID_SHARD_ZERO2") return 2;
  if (strategy != "NO_SHARD") {
    s.refuse("fsdp_config.fsdp_sharding_strategy",
             "expected FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2");
  }
  return 0;
}

/// Returns how many of `sharding` devices (data x context) hold one copy of the states; nothing:
/// all of them. Hybrid sharding stays in a node, unless replicas are counted.
std::optional<int> shard_of(Settings& s, int devices, int sharding) {
  const int replicas = written_count(s, "parallelism_config_dp_replicate_size").value_or(1);
  if (replicas > 1) {
    if (sharding % replicas == 0) return sharding / replicas;
    s.refuse("parallelism_config_dp_replicate_size",
             std::to_string(replicas) + " does not divide the " + std::to_string(sharding) +
                 " devices that tensor ranks leave; expected a divisor");
  }
  if (!is_fsdp(s) || !fsdp_strategy(s).starts_with("HYBRID")) return std::nullopt;
  const int nodes = std::max(written_count(s, "num_machines").value_or(1), 1);
  const int inside = std::max(devices / nodes, 1);
  return std::max(static_cast<int>(std::int64_t{inside} * sharding / devices), 1);
}

Json deepspeed_parallel(Settings& s, int devices) {
  const int tensor = std::max(written_count(s, "tensor_parallel.autotp_size").value_or(1), 1);
  const int ulysses = std::max(written_count(s, "sequence_parallel_size").value_or(1), 1);
  const int ring = std::max(written_count(s, "parallelism_config_cp_size").value_or(1), 1);
  if (ulysses > 1 && ring > 1) {
    s.refuse("sequence_parallel_size", "expected it alone, or parallelism_config_cp_size alone");
  }
  const int context = std::max(ulysses, ring);
  if (devices % (static_cast<long long>(tensor) * context) != 0) {
    s.refuse(ring > 1 ? "parallelism_config_cp_size" : "sequence_parallel_size",
             std::to_string(devices) + " devices are no multiple of " +
                 std::to_string(static_cast<long long>(tensor) * context));
  }
  const int data = std::max(devices / tensor / context, 1);
  Json parallel = {{"pipeline", 1}, {"data", data}};
  if (tensor > 1) parallel["tensor"] = tensor;
  if (context > 1) parallel["context"] = context;
  if (ulysses > 1) parallel["context_layout"] = "all_to_all";
  const int stage = zero_stage(s);
  parallel["zero_stage"] = stage;
  const int sharding = data * context;
  const auto shard = stage > 0 ? shard_of(s, devices, sharding) : std::nullopt;
  if (shard && *shard < sharding) parallel["shard"] = *shard;
  s.count("parallelism_config_dp_shard_size");  // what the other sizes leave
  const bool own = is_fsdp(s);
  if (stage >= 2 && !own) parallel["gradient_reduction"] = "micro_batch";
  const auto overlap = written(s, "zero_optimization.overlap_comm");
  parallel["overlap_gradients"] =
      overlap ? s.flag("zero_optimization.overlap_comm") : stage == 3 || stage == 0 || own;
  if (stage > 0) {
    const double elements = written(s, "zero_optimization.reduce_bucket_size")
                                ? s.number("zero_optimization.reduce_bucket_size").value_or(5e8)
                                : 5e8;
    if (!own)
      parallel["bucket"] =
          std::to_string(std::max(static_cast<long long>(elements * 2), 2LL)) + " B";
  }
  return parallel;
}

/// Any two of the three numbers of a batch give the third.
void add_batch(Settings& s, const Surroundings& around, int replicas, Json& training) {
  const auto all = written_count(s, "train_batch_size");
  auto micro = written_count(s, "train_micro_batch_size_per_gpu");
  if (around.micro_batch_size) micro = around.micro_batch_size;
  const auto steps = written_count(s, "gradient_accumulation_steps");
  if (!micro && all) micro = *all / std::max(replicas * steps.value_or(1), 1);
  if (!micro || *micro < 1) {
    s.refuse("train_micro_batch_size_per_gpu",
             "is not written; expected a number, or import's --micro-batch-size N");
    return;
  }
  const int global = all ? *all : *micro * replicas * std::max(steps.value_or(1), 1);
  if (global % (*micro * replicas) != 0) {
    s.refuse("train_batch_size", std::to_string(global) + " is no multiple of " +
                                     std::to_string(*micro) + " samples on " +
                                     std::to_string(replicas) + " replicas");
  }
  training["global_batch_size"] = global;
  training["micro_batch_size"] = *micro;
}

void add_deepspeed_optimizer(Settings& s, Json& training) {
  std::string name = s.text("optimizer.type").value_or("adamw");
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const bool known = name == "adam" || name == "adamw" || name == "sgd";
  training["optimizer"] = name == "sgd" ? "sgd-momentum" : name == "adam" ? "adam" : "adamw";
  if (!known) s.remark("optimizer.type", name + ": taken as adamw");
}

void add_deepspeed_offload(Settings& s, Json& training) {
  const auto optimizer = written(s, "zero_optimization.offload_optimizer.device");
  if (optimizer) {
    training["offload"]["optimizer"] =
        s.number("zero_optimization.offload_optimizer.ratio").value_or(1);
  } else if (s.flag("zero_optimization.cpu_offload") || s.flag("fsdp_config.fsdp_offload_params")) {
    training["offload"]["optimizer"] = 1;
  }
  if (optimizer == "nvme") {
    s.remark("zero_optimization.offload_optimizer.device", "nvme: taken as the host's memory");
  }
  if (written(s, "zero_optimization.offload_param.device") ||
      s.flag("fsdp_config.fsdp_offload_params")) {
    s.remark("zero_optimization.offload_param.device", "weights stay on the devices");
  }
}

Json deepspeed_training(Settings& s, const Surroundings& around, int replicas) {
  Json training = {{"strategy", "global"}, {"schedule", "1f1b"}};
  add_batch(s, around, replicas, training);
  const auto on = [&](const char* section) {
    return written(s, std::string(section) + ".enabled") &&
           s.flag(std::string(section) + ".enabled");
  };
  const std::string mixed = s.text("mixed_precision").value_or("");
  const bool automatic = s.text("bf16.enabled") == "auto" || s.text("fp16.enabled") == "auto";
  training["precision"] = mixed == "fp8"                                    ? "fp8"
                          : on("bf16") || on("bfloat16") || mixed == "bf16" ? "bf16"
                          : on("fp16") || mixed == "fp16"                   ? "fp16"
                          : automatic                                       ? "bf16"
                                                                            : "fp32";
  if (automatic && mixed.empty() && !on("bf16") && !on("fp16")) {
    s.remark("bf16.enabled", "auto: taken as bf16");
  }
  add_deepspeed_optimizer(s, training);
  add_deepspeed_offload(s, training);
  if (s.text("fsdp_config.fsdp_activation_checkpointing") &&
      s.flag("fsdp_config.fsdp_activation_checkpointing")) {
    training["recompute"] = "full";
  }
  return training;
}

}  // namespace

Settings read_deepspeed_settings(const std::string& path) {
  Settings own(path, deepspeed_bearing);
  const JsonValue file = read_settings_file(path);
  say_all(own, file, "");
  for (const Accelerated& name : kAccelerated) {
    if (!own.has(name.theirs) || std::string(name.theirs) == name.deepspeeds) continue;
    own.say(name.deepspeeds, own.text(name.theirs).value_or("null"), 1, name.theirs);
  }
  return own;
}

std::string deepspeed_scenario(Settings& s, const Surroundings& around) {
  if (s.text("deepspeed_config.deepspeed_config_file")) {
    s.refuse("deepspeed_config.deepspeed_config_file",
             "the settings are in another file; expected import deepspeed of that one");
  }
  if (around.model.empty()) {
    throw Error(s.file() +
                ": says no model; expected import's --model: a name of interlock list "
                "models, or its config.json");
  }
  const NamedModel model = named_model(around.model, around.sequence_length, around.vocab_size);
  const int devices = around.devices.value_or(written_count(s, "num_processes").value_or(0));
  if (devices == 0) throw Error(s.file() + ": says no devices; expected import's --devices N");
  Json scenario = {{"name", around.name}, {"model", model.json}};
  scenario["cluster"] = cluster_json(around, devices);
  scenario["parallel"] = deepspeed_parallel(s, devices);
  s.diagnostics().throw_if_any();
  scenario["training"] = deepspeed_training(s, around, scenario["parallel"]["data"].get<int>());
  name_framework(scenario["training"], around, "");
  scenario["training"]["steps"] = 2;
  s.diagnostics().throw_if_any();
  return scenario.dump(2) + "\n";
}

}  // namespace interlock
