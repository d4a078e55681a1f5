// Titan scenario: maps torchtitan's settings to the keys of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "reports/imports/titan_scenario.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/imports/setting_files.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIdleTitan[] = {"job.",
                                      "profiling.",
                                      "metrics.",
                                      "lr_scheduler.",
                                      "checkpoint.",
                                      "validation.",
                                      "debug.",
                                      "comm.",
                                      "fault_tolerance.",
                                      "experimental.",
                                      "optimizer.",
                                      "model.hf",
                                      "model.tokenizer",
                                      "training.dataset",
                                      "training.steps",
                                      "training.max_norm",
                                      "training.seed",
                                      "training.deterministic",
                                      "training.gc",
                                      "training.warmup_steps",
                                      "memory_estimation.",
                                      "model.print",
                                      "training.debug",
                                      "parallelism.context_parallel_load",
                                      "activation_checkpoint.early_stop",
                                      "activation_checkpoint.preserve",
                                      "quantize.linear.float8.filter",
                                      "quantize.linear.float8.prec",
                                      "quantize.linear.float8.recipe",
                                      "quantize.grouped_mm",
                                      "quantize.linear.mx.filter",
                                      "float8.filter",
                                      "float8.prec"};

NameBearing titan_bearing(const std::string& name) {
  for (const char* beginning : kIdleTitan) {
    if (name.starts_with(beginning)) return {NameBearing::None};
  }
  if (name.starts_with("compile.") || name == "training.compile") {
    return {NameBearing::Matters, "kernels are those of the scenario's framework, fused or not"};
  }
  if (name.ends_with("enable_async_tensor_parallel")) {
    return {NameBearing::Matters, "collectives of tensor devices do not run beside products"};
  }
  if (name.ends_with("float8_all_gather")) {
    return {NameBearing::Matters, "weights are gathered in 16 bits"};
  }
  if (name.starts_with("quantize.")) {
    return {NameBearing::Matters, "all products have the one format of model.converters"};
  }
  return {};
}

struct TitanDegrees {
  int tensor = 1, pipeline = 1, context = 1, expert = 1, replicas = 1, shard = 1;
};

/// A shard degree of -1 is whatever is left of the devices.
TitanDegrees titan_degrees(Settings& s, const Surroundings& around) {
  const auto degree = [&](const char* name) {
    return std::max(s.count(std::string("parallelism.") + name).value_or(1), 1);
  };
  TitanDegrees d = {.tensor = degree("tensor_parallel_degree"),
                    .pipeline = degree("pipeline_parallel_degree"),
                    .context = degree("context_parallel_degree"),
                    .expert = degree("expert_parallel_degree"),
                    .replicas = degree("data_parallel_replicate_degree")};
  const char* const shard_key = "parallelism.data_parallel_shard_degree";
  const int each = d.tensor * d.pipeline * d.context * d.replicas;
  if (s.text(shard_key).value_or("-1") != "-1") {
    d.shard = std::max(s.count(shard_key).value_or(1), 1);
    if (around.devices && *around.devices != each * d.shard) {
      s.refuse(shard_key, "all degrees make " + std::to_string(each * d.shard) +
                              " devices; import's --devices says " +
                              std::to_string(*around.devices));
    }
  } else if (!around.devices || *around.devices % each != 0) {
    s.refuse(shard_key, "is what the devices leave; expected import's --devices, a multiple of " +
                            std::to_string(each));
  } else {
    d.shard = *around.devices / each;
  }
  return d;
}

NamedModel titan_model(Settings& s, const Surroundings& around) {
  const std::string name = s.text("model.name").value_or(""),
                    flavor = s.text("model.flavor").value_or("");
  const int length = s.count("training.seq_len").value_or(2048);
  std::string ours = around.model;
  for (const TitanModel& known : kTitanModels) {
    if (ours.empty() && name == known.name && flavor == known.flavor) ours = known.ours;
  }
  if (ours.empty()) {
    s.refuse("model.flavor", in_quotes(name + " " + flavor) +
                                 " is no model of our zoo; expected import's --model: a name of "
                                 "interlock list models, or its config.json");
    return {};
  }
  return named_model(ours, around.sequence_length.value_or(length), around.vocab_size);
}

Json titan_parallel(Settings& s, const TitanDegrees& d) {
  Json parallel = {{"pipeline", d.pipeline}};
  if (d.replicas * d.shard > 1) parallel["data"] = d.replicas * d.shard;
  if (d.tensor > 1) parallel["tensor"] = d.tensor;
  if (d.tensor > 1) parallel["sequence_parallel"] = true;
  if (d.context > 1) parallel["context"] = d.context;
  if (d.expert > 1) parallel["expert"] = d.expert;
  const int experts_tensor =
      std::max(s.count("parallelism.expert_tensor_parallel_degree").value_or(1), 1);
  if (d.expert > 1 && experts_tensor != d.tensor) parallel["expert_tensor"] = experts_tensor;
  if (s.text("parallelism.context_parallel_rotate_method").value_or("allgather") == "allgather" &&
      d.context > 1) {
    s.remark("parallelism.context_parallel_rotate_method",
             "allgather: keys and values go round one ring");
  }
  // "default": weights stay gathered between forward and backward where there is a pipeline.
  const std::string reshard = s.text("parallelism.fsdp_reshard_after_forward").value_or("default");
  const bool again = reshard == "always" || (reshard == "default" && d.pipeline == 1);
  if (d.shard * d.context > 1) parallel["zero_stage"] = again ? 3 : 2;
  if (d.shard * d.context > 1 && d.replicas > 1) parallel["shard"] = d.shard * d.context;
  return parallel;
}

/// Micro-batches that a stage of a rank takes before the next: those of a step, shared out among as
/// many rounds as there would be of one for each rank. Source: the constructor of
/// ScheduleInterleaved1F1B in PyTorch's torch/distributed/pipelining/schedules.py.
void add_titan_round(Settings& s, const TitanDegrees& d, Json& training) {
  const int each = training["micro_batch_size"].get<int>() * d.replicas * d.shard;
  const int all = std::max(training["global_batch_size"].get<int>() / each, 1);
  const int rounds = titan_rounds(all, d.pipeline);
  if (all < d.pipeline || all % rounds != 0) {
    s.refuse("parallelism.pipeline_parallel_schedule",
             "shares " + std::to_string(all) + " micro-batches out among " +
                 std::to_string(rounds) +
                 " rounds; expected a multiple of them, and at least the " +
                 std::to_string(d.pipeline) + " pipeline ranks");
  } else if (all / rounds != d.pipeline) {
    training["schedule"]["round"] = all / rounds;
  }
}

void add_titan_schedule(Settings& s, const TitanDegrees& d, int layers, Json& scenario) {
  const std::string theirs = s.text("parallelism.pipeline_parallel_schedule").value_or("1F1B");
  const auto each = s.count("parallelism.pipeline_parallel_layers_per_stage");
  for (const char* end : {"first", "last"}) {
    s.text(std::string("parallelism.pipeline_parallel_") + end + "_stage_less_layers");
  }
  if (d.pipeline == 1) return;
  const auto* found = std::find_if(std::begin(kTitanSchedules), std::end(kTitanSchedules),
                                   [&](const TitanSchedule& one) { return one.theirs == theirs; });
  if (found == std::end(kTitanSchedules)) {
    s.refuse(
        "parallelism.pipeline_parallel_schedule",
        "no schedule of ours is " + in_quotes(theirs) + "; expected 1F1B, Interleaved1F1B, ...");
    return;
  }
  const std::string ours = found->ours;
  const bool several = ours != "1f1b" && ours != "gpipe";
  int chunks = several ? 2 : 1;
  if (each && *each > 0) {
    // The embedding and the readout count as a layer each.
    const int stages = (layers + 2 + *each - 1) / *each;
    chunks = std::max(stages / d.pipeline, 1);
    if (stages % d.pipeline != 0) {
      s.refuse("parallelism.pipeline_parallel_layers_per_stage",
               "makes " + std::to_string(stages) + " stages of " + std::to_string(layers) +
                   " layers and both ends; expected a multiple of the " +
                   std::to_string(d.pipeline) + " pipeline ranks");
    }
  }
  scenario["training"]["schedule"] = ours;
  const bool loops = ours == "interleaved" || ours == "interleaved-zb" || ours == "breadth-first";
  if (loops) scenario["training"]["schedule"] = {{"kind", ours}, {"chunks", chunks}};
  if (loops && ours != "breadth-first" && chunks > 1) add_titan_round(s, d, scenario["training"]);
  scenario["parallel"]["stages"] = d.pipeline * chunks;
  // On where a job does not say (torchtitan/config/job_config.py); DualPipeV alone has it.
  const std::string overlap = "parallelism.pipeline_parallel_expert_parallel_overlap";
  const bool overlaps = !s.text(overlap) || s.flag(overlap);
  if (ours == "dualpipe-v" && d.expert > 1 && overlaps) {
    scenario["parallel"]["expert_overlap"] = "micro_batches";
  }
  scenario["partition"] = "uniform";
}

/// Micro-batches: parts of the local batch in a pipeline, else whole local batches.
Json titan_training(Settings& s, const TitanDegrees& d) {
  const int replicas = d.replicas * d.shard;
  const auto newer = s.count("training.local_batch_size"), older = s.count("training.batch_size");
  const int local = newer ? *newer : older.value_or(8);
  const std::string all = s.text("training.global_batch_size").value_or("-1");
  const int global =
      all == "-1" ? local * replicas : s.count("training.global_batch_size").value_or(1);
  const int part =
      std::max(s.count("parallelism.pipeline_parallel_microbatch_size").value_or(1), 1);
  Json training = {{"strategy", "global"}, {"schedule", "1f1b"}};
  training["global_batch_size"] = global;
  training["micro_batch_size"] = d.pipeline > 1 ? part : local;
  if (d.pipeline > 1 && global > local * replicas) {
    s.remark("training.global_batch_size",
             "the pipeline is not emptied between the local batches of a step");
  }
  const std::string stored = s.text("training.dtype").value_or("float32");
  const bool half = s.text("training.mixed_precision_param").value_or("bfloat16") == "bfloat16" ||
                    stored == "bfloat16";
  if (stored != "float32") {
    s.remark("training.dtype", stored + ": weights and the optimiser's states are fp32");
  }
  const std::vector<std::string> converters = s.words("model.converters");
  const bool eight = std::any_of(converters.begin(), converters.end(), [](const std::string& one) {
    return one.find("float8") != one.npos || one.find("mx") != one.npos;
  });
  training["precision"] = eight ? "fp8" : half ? "bf16" : "fp32";
  if (s.text("training.mixed_precision_reduce").value_or("float32") == "float32" && half) {
    s.remark("training.mixed_precision_reduce",
             "float32: gradients travel in the format that --framework's entry says");
  }
  const std::string optimizer = s.text("optimizer.name").value_or("AdamW");
  training["optimizer"] = optimizer == "Adam" ? "adam" : "adamw";
  if (optimizer != "Adam" && optimizer != "AdamW") {
    s.refuse("optimizer.name", "expected Adam or AdamW");
  }
  if (s.flag("training.enable_cpu_offload")) training["offload"]["optimizer"] = 1;
  return training;
}

void add_titan_recompute(Settings& s, int layers, Json& training) {
  const std::string mode = s.text("activation_checkpoint.mode").value_or("selective");
  const std::string option = s.text("activation_checkpoint.selective_ac_option").value_or("2");
  if (mode == "full" || mode == "none") {
    training["recompute"] = mode;
  } else if (mode != "selective") {
    s.remark("activation_checkpoint.mode", in_quotes(mode) + ": everything is kept");
  } else if (option == "op") {
    training["recompute"] = "alternate";
  } else {
    const int every = std::max(s.count("activation_checkpoint.selective_ac_option").value_or(2), 1);
    training["recompute"] = {{"full_layers", layers / every}};
    if (every > 1) {
      s.remark("activation_checkpoint.selective_ac_option",
               "the first " + std::to_string(layers / every) +
                   " layers are computed again, as many as one in " + std::to_string(every));
    }
  }
}

}  // namespace

Settings read_titan_settings(const std::string& path) {
  Settings settings(path, titan_bearing);
  say_all(settings, read_settings_file(path), "");
  return settings;
}

std::string titan_scenario(Settings& s, const Surroundings& around) {
  const NamedModel model = titan_model(s, around);
  const TitanDegrees d = titan_degrees(s, around);
  s.diagnostics().throw_if_any();
  Json scenario = {{"name", around.name}, {"model", model.json}};
  scenario["cluster"] =
      cluster_json(around, d.tensor * d.pipeline * d.context * d.replicas * d.shard);
  scenario["parallel"] = titan_parallel(s, d);
  scenario["training"] = titan_training(s, d);
  add_titan_recompute(s, model.layers, scenario["training"]);
  add_titan_schedule(s, d, model.layers, scenario);
  name_framework(scenario["training"], around, "torchtitan");
  scenario["training"]["steps"] = 2;
  s.diagnostics().throw_if_any();
  return scenario.dump(2) + "\n";
}

}  // namespace interlock
