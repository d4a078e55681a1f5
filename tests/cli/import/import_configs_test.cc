// interlock import of torchtitan, DeepSpeed, accelerate, NeMo, Megatron-Bridge and Primus.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::import_configs_test {
namespace {

/// Imports `text` as `kind` and returns the scenario, which `check` finds right.
JsonValue imported(const std::string& kind, const std::string& file, const std::string& text,
                   const std::vector<std::string>& more, const std::string& cluster = "dgx-h100") {
  const Folder folder;
  folder.file(file, text);
  std::vector<std::string> words = {"import", kind,    file,     "--cluster",
                                    cluster,  "--out", "s.json", "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome run = run_program(words, folder.path());
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
  CHECK(run_program({"check", "s.json"}, folder.path()).err == "");
  return read_json_file(folder.path("s.json"));
}

/// Returns what import says instead of writing anything.
std::string refusal(const std::string& kind, const std::string& file, const std::string& text,
                    const std::vector<std::string>& more = {}) {
  const Folder folder;
  folder.file(file, text);
  std::vector<std::string> words = {"import",   kind,    file,    "--cluster",
                                    "dgx-h100", "--out", "s.json"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome run = run_program(words, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(folder.files() == std::vector<std::string>{file});
  return run.err;
}

const JsonValue& at(const JsonValue& scenario, const char* section, const char* key) {
  const JsonValue* found = scenario.find(section);
  REQUIRE(found != nullptr);
  REQUIRE(found->find(key) != nullptr);
  return *found->find(key);
}

// pytorch/torchtitan @ 238fa99, torchtitan/models/llama3/train_configs/llama3_70b.toml
const char* const kTitan = R"(
[model]
name = "llama3"
flavor = "70B"
[optimizer]
name = "AdamW"
lr = 1.5e-4
[training]
local_batch_size = 8
seq_len = 8192
steps = 1_000
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8  # 8-way TP
pipeline_parallel_degree = 1
context_parallel_degree = 1
[activation_checkpoint]
mode = "full"
)";

TEST_CASE("a job of torchtitan becomes a scenario, whose shards are what devices are left") {
  const JsonValue s = imported("torchtitan", "job.toml", kTitan, {"--devices", "64"});
  CHECK(at(s, "model", "base").text == "llama-3-70b");
  CHECK(at(s, "model", "sequence_length").number == 8192);
  CHECK(at(s, "parallel", "data").number == 8);
  CHECK(at(s, "parallel", "zero_stage").number == 3);
  CHECK(at(s, "parallel", "sequence_parallel").boolean);
  CHECK(at(s, "training", "global_batch_size").number == 64);
  CHECK(at(s, "training", "micro_batch_size").number == 8);
  CHECK(at(s, "training", "recompute").text == "full");
  CHECK(at(s, "training", "framework").text == "torchtitan");
  CHECK(refusal("torchtitan", "job.toml", kTitan)
            .find("job.toml:14: parallelism.data_parallel_shard_degree: is what the devices leave; "
                  "expected import's --devices, a multiple of 8") == 0);
  CHECK(refusal("torchtitan", "job.toml", "[model\n").find("job.toml:1: not TOML: ") == 0);
}

TEST_CASE("DualPipeV of torchtitan lets tokens travel beside another micro-batch") {
  const std::string job = R"([model]
name = "deepseek_v3"
flavor = "671B"
[training]
local_batch_size = 32
[parallelism]
pipeline_parallel_degree = 8
pipeline_parallel_schedule = "DualPipeV"
expert_parallel_degree = 8
)";
  const std::vector<std::string> options = {"--devices", "64", "--model", "deepseek-v3"};
  const JsonValue s = imported("torchtitan", "job.toml", job, options);
  CHECK(at(s, "training", "schedule").text == "dualpipe-v");
  CHECK(at(s, "parallel", "expert_overlap").text == "micro_batches");
  const std::string off = "pipeline_parallel_expert_parallel_overlap = false\n";
  const JsonValue without = imported("torchtitan", "job.toml", job + off, options);
  CHECK(without.find("parallel")->find("expert_overlap") == nullptr);
}

// microsoft/DeepSpeedExamples @ 83757d9, training/autotuning/hf/dsconfigs/ds_config_fp16_z3.json,
// with the numbers that the trainer fills in.
const char* const kDeepSpeed = R"({
  "train_micro_batch_size_per_gpu": "auto",
  "fp16": {"enabled": true},
  "zero_optimization": {"stage": 3}
})";

TEST_CASE("a configuration of DeepSpeed needs a model, devices, and what is auto") {
  const std::vector<std::string> facts = {"--model", "gpt2-xl", "--devices", "16"};
  std::vector<std::string> all = facts;
  all.insert(all.end(), {"--micro-batch-size", "4"});
  const JsonValue s = imported("deepspeed", "ds.json", kDeepSpeed, all);
  CHECK(s.find("model")->text == "gpt2-xl");
  CHECK(at(s, "parallel", "zero_stage").number == 3);
  CHECK(at(s, "parallel", "gradient_reduction").text == "micro_batch");
  CHECK(at(s, "parallel", "data").number == 16);
  CHECK(at(s, "training", "global_batch_size").number == 64);
  CHECK(at(s, "training", "precision").text == "fp16");
  CHECK(refusal("deepspeed", "ds.json", kDeepSpeed, facts)
            .find("ds.json:2: train_micro_batch_size_per_gpu: is not written; expected a number, "
                  "or import's --micro-batch-size N") == 0);
  CHECK(refusal("deepspeed", "ds.json", kDeepSpeed).find("ds.json: says no model; ") == 0);
}

TEST_CASE("accelerate's YAML means what DeepSpeed's JSON does") {
  // huggingface/accelerate, examples/deepspeed_config_templates, as `accelerate config` writes it.
  const JsonValue s = imported("deepspeed", "accelerate.yaml", R"(
compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 2
  offload_optimizer_device: cpu
  offload_param_device: none
  zero_stage: 2
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 8
)",
                               {"--model", "gpt2-xl", "--micro-batch-size", "4"});
  CHECK(at(s, "parallel", "data").number == 8);
  CHECK(at(s, "parallel", "zero_stage").number == 2);
  CHECK(at(s, "training", "global_batch_size").number == 4 * 8 * 2);
  CHECK(at(s, "training", "precision").text == "bf16");
  CHECK(at(s, "training", "offload").find("optimizer")->number == 1);
}

/// A FSDP YAML as `accelerate config` writes it, with `more` lines of its fsdp_config.
std::string fsdp_yaml(const std::string& more, const std::string& below = "") {
  return "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
         "num_machines: 2\nnum_processes: 16\nfsdp_config:\n"
         "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n" +
         more + below;
}

TEST_CASE("FSDP of accelerate: both versions, hybrid shards, recomputation, ranks of tensors") {
  const auto read = [](const std::string& text) {
    return imported("deepspeed", "fsdp.yaml", text,
                    {"--model", "gpt2-medium", "--micro-batch-size", "4"});
  };
  const auto stage = [&](const std::string& more) {
    return at(read(fsdp_yaml(more)), "parallel", "zero_stage").number;
  };
  CHECK(stage("  fsdp_sharding_strategy: 1\n") == 3);
  CHECK(stage("  fsdp_sharding_strategy: SHARD_GRAD_OP\n") == 2);
  CHECK(stage("  fsdp_sharding_strategy: NO_SHARD\n") == 0);
  INFO("the second version frees weights unless it is told not to, whatever the first is told");
  CHECK(stage("  fsdp_version: 2\n") == 3);
  CHECK(stage("  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"
              "  fsdp_sharding_strategy: FULL_SHARD\n") == 2);
  CHECK(stage("  fsdp_reshard_after_forward: SHARD_GRAD_OP\n") == 2);
  const JsonValue hybrid = read(
      fsdp_yaml("  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_activation_checkpointing: true\n"));
  CHECK(at(hybrid, "parallel", "shard").number == 8);
  CHECK(at(hybrid, "parallel", "zero_stage").number == 3);
  CHECK(at(hybrid, "training", "recompute").text == "full");
  CHECK(hybrid.find("parallel")->find("gradient_reduction") == nullptr);
  const JsonValue mesh =
      read(fsdp_yaml("  fsdp_version: 2\n",
                     "parallelism_config:\n  parallelism_config_dp_replicate_size: 2\n"
                     "  parallelism_config_dp_shard_size: 2\n  parallelism_config_tp_size: 2\n"
                     "  parallelism_config_cp_size: 2\n"));
  CHECK(at(mesh, "parallel", "tensor").number == 2);
  CHECK(at(mesh, "parallel", "context").number == 2);
  CHECK(at(mesh, "parallel", "data").number == 4);
  CHECK(at(mesh, "parallel", "shard").number == 4);
  CHECK(refusal("deepspeed", "fsdp.yaml", fsdp_yaml("  fsdp_sharding_strategy: HALF\n"),
                {"--model", "gpt2-medium", "--micro-batch-size", "4"})
            .find("expected FULL_SHARD, SHARD_GRAD_OP") != std::string::npos);
}

TEST_CASE("a configuration of NeMo says Megatron's arguments in other words") {
  // NVIDIA/NeMo @ 8cfedd7, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml: the names.
  const JsonValue s = imported("nemo", "gpt.yaml", R"(
trainer: {devices: 8, num_nodes: 2, precision: bf16}
exp_manager: {name: x}
model:
  micro_batch_size: 1
  global_batch_size: 32
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 2
  encoder_seq_length: 2048
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 16
  hidden_size: 1024
  ffn_hidden_size: 2816
  num_attention_heads: 16
  num_query_groups: 4
  bias: false
  activation: fast-swiglu
  normalization: rmsnorm
  position_embedding_type: rope
  share_embeddings_and_output_weights: False
  activations_checkpoint_granularity: selective
  sequence_parallel: true
  optim: {name: distributed_fused_adam, lr: 2e-4}
)",
                               {"--vocab-size", "32000"});
  CHECK(at(s, "model", "kv_heads").number == 4);
  CHECK(at(s, "model", "gated_mlp").boolean);
  CHECK_FALSE(at(s, "model", "bias").boolean);
  CHECK_FALSE(at(s, "model", "tied_embeddings").boolean);
  CHECK(at(s, "model", "norm").text == "rmsnorm");
  CHECK(at(s, "parallel", "data").number == 2);
  CHECK(at(s, "parallel", "zero_stage").number == 1);
  CHECK(at(s, "parallel", "stages").number == 8);
  CHECK(at(s, "training", "recompute").text == "selective");
  CHECK(at(s, "training", "precision").text == "bf16");
}

TEST_CASE("a configuration of Megatron-Bridge has sections of its own") {
  // NVIDIA-NeMo/Megatron-Bridge @ 067f987, ConfigContainer: model, train, ddp, optimizer, dataset.
  const JsonValue s = imported("nemo", "bridge.yaml", R"(
_target_: megatron.bridge.training.config.ConfigContainer
model:
  num_layers: 8
  hidden_size: 1024
  num_attention_heads: 16
  num_moe_experts: 8
  moe_router_topk: 2
  expert_model_parallel_size: 4
  moe_token_dispatcher_type: alltoall
  add_bias_linear: false
  vocab_size: 32000
  tensor_model_parallel_size: 1
  recompute_granularity: null
  activation_func_fp8_input_store: true
train: {micro_batch_size: 1, global_batch_size: 16}
dataset: {sequence_length: 4096}
ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true, bucket_size: 1000000}
mixed_precision: bf16_mixed
checkpoint: {save: /tmp/x}
)",
                               {"--devices", "8"});
  CHECK(at(s, "model", "experts").number == 8);
  CHECK(at(s, "model", "sequence_length").number == 4096);
  CHECK(at(s, "parallel", "expert").number == 4);
  CHECK(at(s, "parallel", "bucket").text == "4000000 B");
  CHECK(at(s, "training", "precision").text == "bf16");
  CHECK(at(s, "training", "recompute").text == "none");
  CHECK(at(s, "training", "activation_inputs").text == "fp8");
}

TEST_CASE("Megatron-Bridge's NVFP4 is training in 4 bits") {
  const JsonValue s = imported("nemo", "bridge.yaml", R"(
_target_: megatron.bridge.training.config.ConfigContainer
model: {num_layers: 8, hidden_size: 1024, num_attention_heads: 16, vocab_size: 32000}
train: {micro_batch_size: 1, global_batch_size: 16}
dataset: {sequence_length: 4096}
mixed_precision: bf16_with_nvfp4_mixed
)",
                               {"--devices", "8"}, "dgx-b200");
  CHECK(at(s, "training", "precision").text == "fp4");
}

TEST_CASE("layers of the ends in bf16 are told where the others have fewer bits, and only there") {
  const auto layers = [](const std::string& precision) {
    const JsonValue s = imported("nemo", "bridge.yaml", R"(
_target_: megatron.bridge.training.config.ConfigContainer
model: {num_layers: 8, hidden_size: 1024, num_attention_heads: 16, vocab_size: 32000,
        first_last_layers_bf16: true, num_layers_at_end_in_bf16: 3}
train: {micro_batch_size: 1, global_batch_size: 16}
dataset: {sequence_length: 4096}
mixed_precision: )" + precision + "\n",
                                 {"--devices", "8"}, "dgx-b200");
    const JsonValue* wide = s.find("training")->find("bf16_layers");
    return wide == nullptr ? std::pair(0.0, 0.0)
                           : std::pair(wide->find("first")->number, wide->find("last")->number);
  };
  CHECK(layers("bf16_with_nvfp4_mixed") == std::pair(1.0, 3.0));
  CHECK(layers("bf16_with_mxfp8_mixed") == std::pair(1.0, 3.0));
  CHECK(layers("bf16_mixed") == std::pair(0.0, 0.0));
  CHECK(layers("fp16_mixed") == std::pair(0.0, 0.0));
}

TEST_CASE("an experiment of Primus has its model beside it, or as an option") {
  // AMD-AGI/Primus @ fd1eeab, examples/megatron/configs/MI300X/llama3_70B-FP8-pretrain.yaml.
  const std::string experiment = R"(
work_group: ${PRIMUS_TEAM:amd}
modules:
  pre_trainer:
    framework: megatron
    model: ${PRIMUS_MODEL:llama3_70B}.yaml
    overrides:
      micro_batch_size: 3
      global_batch_size: ${PRIMUS_GBS:24}
      seq_length: 8192
      overlap_grad_reduce: true
      use_torch_fsdp2: true
      recompute_granularity: full
      recompute_method: block
      recompute_num_layers: 80
      fp8: hybrid
)";
  const JsonValue s =
      imported("primus", "e.yaml", experiment, {"--devices", "8", "--model", "llama-3-70b"});
  CHECK(at(s, "parallel", "zero_stage").number == 3);
  CHECK(at(s, "training", "precision").text == "fp8");
  CHECK(at(s, "training", "recompute").text == "full");
  CHECK(at(s, "training", "global_batch_size").number == 24);
  CHECK(refusal("primus", "e.yaml", experiment).find("its model is a preset of Primus") !=
        std::string::npos);
  const Folder folder;
  std::filesystem::create_directories(folder.path("primus/configs/models/megatron"));
  folder.file("primus/configs/models/megatron/base.yaml",
              "swiglu: true\nnum_layers: 2\nhidden_size: 512\n");
  folder.file("primus/configs/models/megatron/llama3_70B.yaml",
              "extends:\n  - base.yaml\nnum_layers: 80\nnum_attention_heads: 8\n"
              "ffn_hidden_size: 1024\nvocab_size: 1000\n");
  folder.file("e.yaml", experiment);
  const Outcome run = run_program({"import", "primus", "e.yaml", "--cluster", "dgx-h100",
                                   "--devices", "8", "--out", "s.json", "--quiet"},
                                  folder.path());
  CHECK(run.err == "");
  const JsonValue found = read_json_file(folder.path("s.json"));
  CHECK(at(found, "model", "layers").number == 80);
  CHECK(at(found, "model", "hidden_size").number == 512);
  CHECK(refusal("nemo", "n.yaml", "model: {model_type: mamba}\n")
            .find("hybrid-layer-pattern: missing, and ratios do not say") != std::string::npos);
  CHECK(refusal("primus", "e.yaml", "a: [1\n").find("e.yaml:2: not YAML: ") == 0);
}

}  // namespace
}  // namespace interlock::import_configs_test
