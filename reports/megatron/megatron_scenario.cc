// Megatron scenario: maps arguments to the plan and the training of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/megatron_scenario.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/megatron/megatron_layout.h"
#include "reports/megatron/megatron_model.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// Devices of each kind.
struct Degrees {
  int tensor = 1, pipeline = 1, context = 1, expert = 1, data = 1;
};

Degrees degrees_of(Settings& a, const Surroundings& around) {
  const auto degree = [&](const char* name) { return std::max(a.count(name).value_or(1), 1); };
  Degrees d = {.tensor = degree("tensor-model-parallel-size"),
               .pipeline = degree("pipeline-model-parallel-size"),
               .context = degree("context-parallel-size"),
               .expert = degree("expert-model-parallel-size")};
  const int nodes = std::max(degree("nnodes"), degree("num-nodes"));
  const int started = nodes * std::max(degree("nproc-per-node"), degree("num-gpus"));
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

/// Says by which exchange tokens reach the holders of their experts.
void add_dispatch(Settings& a, Json& parallel) {
  const std::string exchange = a.text("moe-token-dispatcher-type").value_or("allgather");
  if (exchange == "flex") {
    const std::string backend = a.text("moe-flex-dispatcher-backend").value_or("deepep");
    a.flag("moe-enable-deepep");
    parallel["expert_dispatch"] = "deepep";
    if (backend != "deepep") {
      a.remark("moe-flex-dispatcher-backend", backend + ": tokens are exchanged as by DeepEP");
    }
  } else if (exchange != "alltoall") {
    a.remark("moe-token-dispatcher-type", exchange + ": tokens are exchanged by all-to-all");
  }
}

/// Says what runs while tokens are on their way. Source: the checks of these arguments in
/// megatron/core/transformer/transformer_config.py.
void add_expert_overlap(Settings& a, Json& parallel) {
  const bool pairs = a.flag("overlap-moe-expert-parallel-comm");
  const bool shared = a.flag("moe-shared-expert-overlap");
  if (pairs && shared) {
    a.refuse("moe-shared-expert-overlap",
             "goes without --overlap-moe-expert-parallel-comm; expected one of both");
  }
  if (pairs || shared) parallel["expert_overlap"] = pairs ? "micro_batches" : "shared_experts";
  if (pairs && a.flag("delay-wgrad-compute")) parallel["delay_weight_gradients"] = true;
}

/// Divides experts, among tensor ranks as all other layers are or otherwise.
void add_experts(Settings& a, const Degrees& d, Json& parallel) {
  const int tensor = a.count("expert-tensor-parallel-size").value_or(d.tensor);
  const bool experts = a.count("num-experts").value_or(0) > 0;
  const int ranks = d.tensor * d.context * d.data, each = d.expert * std::max(tensor, 1);
  if (experts && ranks % each != 0) {
    a.refuse(
        "expert-model-parallel-size",
        std::to_string(ranks) +
            " devices of a pipeline rank cannot be shared out among expert x expert tensor = " +
            std::to_string(each) + "; expected a multiple of them (import's --devices " +
            std::to_string(each * d.pipeline) + ")");
  }
  if (experts && tensor != d.tensor && d.tensor > 1 && !a.flag("sequence-parallel")) {
    a.refuse(
        "expert-tensor-parallel-size",
        "Megatron-LM trains no experts across tensor ranks that hold the same tokens (it stops "
        "in moe_layer.py); expected --sequence-parallel beside it, or " +
            std::to_string(d.tensor));
  }
  if (experts && d.expert > 1) parallel["expert"] = d.expert;
  if (experts && tensor != d.tensor) parallel["expert_tensor"] = tensor;
  if (!experts || d.expert == 1) return;
  add_dispatch(a, parallel);
  add_expert_overlap(a, parallel);
}

/// Returns the stage of ZeRO that the arguments ask for. `fully`: by Megatron's own FSDP.
int zero_stage(Settings& a, bool fully) {
  int stage = a.flag("use-distributed-optimizer") ? 1 : 0;
  const std::string divided = a.text("data-parallel-sharding-strategy").value_or("no_shard");
  if (fully && divided == "optim") stage = 1;
  if (fully && divided == "optim_grads") stage = 2;
  if (fully && divided == "optim_grads_params") stage = 3;
  if (a.flag("use-torch-fsdp2")) stage = 3;
  if (!a.flag("deepspeed")) return stage;
  return std::max(stage, std::clamp(a.count("zero-stage").value_or(0), 0, 3));
}

/// ZeRO: what devices of equal weights divide between them, and in how many groups.
void add_sharding(Settings& a, const Degrees& d, Json& parallel) {
  const bool fully = a.flag("use-megatron-fsdp") || a.flag("use-custom-fsdp");
  const int stage = zero_stage(a, fully);
  if (stage > 0) parallel["zero_stage"] = stage;
  // Megatron's own FSDP shards gradients as they come (megatron_fsdp/param_and_grad_buffer.py).
  if ((fully || a.flag("deepspeed")) && stage > 1) parallel["gradient_reduction"] = "micro_batch";
  const int groups = std::max(a.count("num-distributed-optimizer-instances").value_or(1), 1);
  if (groups == 1 || stage == 0) return;
  const int replicas = d.data * d.context;
  if (replicas % groups != 0) {
    a.refuse("num-distributed-optimizer-instances",
             "expected a divisor of the " + std::to_string(replicas) + " devices of equal weights");
  } else {
    parallel["shard"] = replicas / groups;
  }
}

/// Source: megatron/core/distributed/distributed_data_parallel.py: 40 million gradients, or one
/// million for each device.
void add_buckets(Settings& a, const Degrees& d, bool fp32, Json& parallel) {
  const bool beside = a.flag("overlap-grad-reduce");
  parallel["overlap_gradients"] = beside;
  if (a.flag("overlap-param-gather")) parallel["overlap_weights"] = true;
  const auto said = a.count("ddp-bucket-size");
  if (!said && (!beside || d.data * d.context == 1)) return;
  const long long gradients =
      std::max<long long>(said.value_or(std::max(40'000'000, 1'000'000 * d.data * d.context)), 1);
  parallel["bucket"] = std::to_string(gradients * (fp32 ? 4 : 2)) + " B";
}

Json parallel_of(Settings& a, const Degrees& d, bool fp32_gradients) {
  Json parallel = {{"pipeline", d.pipeline}};
  if (d.data > 1) parallel["data"] = d.data;
  if (d.tensor > 1) parallel["tensor"] = d.tensor;
  if (d.context > 1) parallel["context"] = d.context;
  add_experts(a, d, parallel);
  if (a.flag("sequence-parallel") && d.tensor > 1) parallel["sequence_parallel"] = true;
  if (a.flag("use-tp-pp-dp-mapping")) {
    parallel["order"] = {"tensor", "context", "pipeline", "data"};
  }
  add_context_layout(a, d.context, parallel);
  add_sharding(a, d, parallel);
  add_buckets(a, d, fp32_gradients, parallel);
  return parallel;
}

/// Stages of each rank.
int chunks_of(Settings& a, int layers, int pipeline) {
  if (pipeline > 1 && is_v(a)) return 2;  // as arguments.py sets it
  const auto each = a.count("num-layers-per-virtual-pipeline-stage");
  const auto chunks = a.count("num-virtual-stages-per-pipeline-rank");
  if (chunks) return std::max(*chunks, 1);
  if (!each || *each == 0) return 1;
  return std::max(layers / *each / pipeline, 1);
}

/// Layers of each rank, where the embedding and the readout may take the place of one.
/// Source: megatron/core/transformer/transformer_block.py, get_num_layers_to_build.
std::vector<StageContent> even_stages(Settings& a, int layers, int pipeline) {
  const auto first = a.count("decoder-first-pipeline-num-layers");
  const auto last = a.count("decoder-last-pipeline-num-layers");
  const bool embedding = a.flag("account-for-embedding-in-pipeline-split");
  const bool readout = a.flag("account-for-loss-in-pipeline-split");
  const int ends = (first ? 1 : 0) + (last ? 1 : 0), others = pipeline - ends;
  const int rest =
      layers + (embedding ? 1 : 0) + (readout ? 1 : 0) - first.value_or(0) - last.value_or(0);
  std::vector<int> of_rank(static_cast<std::size_t>(pipeline), others > 0 ? rest / others : 0);
  if (first) of_rank.front() = *first;
  if (last) of_rank.back() = *last;
  const int chunks = chunks_of(a, layers, pipeline);
  bool even = rest >= 0 && others >= 0 && (others == 0 ? rest == 0 : rest % others == 0);
  for (const int count : of_rank) even = even && count % chunks == 0;
  std::vector<StageContent> stages(static_cast<std::size_t>(pipeline * chunks));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].layers = of_rank[s % static_cast<std::size_t>(pipeline)] / chunks;
  }
  if (embedding) --stages.front().layers;
  if (readout) --stages.back().layers;
  stages.front().embedding = stages.back().readout = true;
  const int least = std::min(stages.front().layers, stages.back().layers);
  const auto each = a.count("num-layers-per-virtual-pipeline-stage");
  if (each && *each > 0 && *each * pipeline * chunks != layers) even = false;
  if (even && least >= 0) return stages;
  a.refuse("num-layers", std::to_string(layers) + " layers cannot be shared out evenly among " +
                             std::to_string(pipeline * chunks) + " stages on " +
                             std::to_string(pipeline) + " ranks");
  return {};
}

std::vector<StageContent> written_stages(Settings& a, const std::string& layout, int layers,
                                         int pipeline) {
  const char* const name = "pipeline-model-parallel-layout";
  auto stages = read_layout(layout);
  if (!stages) {
    a.refuse(name, "expected letters E, t, m and L with | between stages, e.g. Et*3|(tt|)*6L");
    return {};
  }
  int found = 0;
  bool empty = false;
  for (const StageContent& stage : *stages) {
    found += stage.layers;
    empty = empty || stage.modules() == 0;
    if (stage.predictors > 0 && !stage.readout) {
      a.remark(name, "modules of multi-token prediction lie with the readout");
    }
  }
  const std::string wrong =
      found != layers ? std::to_string(found) + " layers; expected the " + std::to_string(layers) +
                            " of --num-layers"
      : static_cast<int>(stages->size()) % pipeline != 0
          ? std::to_string(stages->size()) + " stages; expected a multiple of the " +
                std::to_string(pipeline) + " pipeline ranks"
      : empty ? "a stage without a layer has no counterpart; expected t, E or L in each"
      : !stages->front().embedding || !stages->back().readout
          ? "expected E in the first stage and L in the last"
          : "";
  if (!wrong.empty()) {
    a.refuse(name, wrong);
    return {};
  }
  return *stages;
}

std::vector<StageContent> stages_of(Settings& a, int layers, int pipeline) {
  const auto layout = a.text("pipeline-model-parallel-layout");
  if (!layout || layout->empty()) return even_stages(a, layers, pipeline);
  return written_stages(a, *layout, layers, pipeline);
}

void add_selective(Settings& a, Json& training) {
  const std::vector<std::string> parts = a.words("recompute-modules");
  if (parts.empty() || parts == std::vector<std::string>{"core_attn"}) {
    training["recompute"] = "selective";
  } else {
    training["recompute"] = {{"modules", parts}};
  }
}

/// Adds the parts of layers that run as CUDA graphs, and tells of parts that have no key.
void add_graphs(Settings& a, Json& training) {
  const std::string kind = a.text("cuda-graph-impl").value_or("none");
  if (kind == "none") return;
  std::vector<std::string> scope = a.words("cuda-graph-modules");  // as newer versions call it
  const char* const name = scope.empty() ? "cuda-graph-scope" : "cuda-graph-modules";
  if (scope.empty()) scope = a.words(name);
  std::erase(scope, "full");  // an older word for whole layers
  const auto has = [&](const char* part) {
    return std::find(scope.begin(), scope.end(), part) != scope.end();
  };
  if (kind == "full_iteration" || has("full_iteration")) {
    training["cuda_graphs"] = "step";
    return;
  }
  if (kind != "local" && kind != "transformer_engine") {
    a.refuse("cuda-graph-impl", "expected none, local, transformer_engine or full_iteration");
  }
  Json parts = Json::array();
  if (has("attn")) parts.push_back("attention");
  if (has("moe_router") && has("moe_preprocess")) parts.push_back("router");
  for (const std::string& part : scope) {
    if (part == "attn" ||
        (!parts.empty() && parts.back() == "router" && part.starts_with("moe_"))) {
      continue;
    }
    a.remark(name, part + " has no key: the host issues its kernels one by one");
  }
  if (scope.empty()) {
    a.remark("cuda-graph-impl",
             "graphs of whole layers have no key: the host issues their kernels");
  }
  if (!parts.empty()) training["cuda_graphs"] = parts;
}

/// Adds what single kernels do of routing.
void add_fused_routing(Settings& a, Json& training) {
  Json parts = Json::array();
  if (a.flag("moe-router-fusion")) parts.push_back("router");
  if (a.flag("moe-permute-fusion")) parts.push_back("permutation");
  if (!parts.empty()) training["fused_routing"] = parts;
}

/// Adds layers that run again, counted in each stage, formats of activations, and CUDA graphs.
void add_recompute(Settings& a, const std::vector<StageContent>& stages, Json& training) {
  if (a.flag("activation-func-fp8-input-store")) training["activation_inputs"] = "fp8";
  add_graphs(a, training);
  add_fused_routing(a, training);
  if (a.text("cuda-launch-blocking").value_or("0") == "1") training["blocking_launches"] = true;
  // --checkpoint-activations: as Megatron-LM said it until 2022, and its forks do.
  const std::string kind = a.flag("checkpoint-activations") ? "full"
                           : a.flag("recompute-activations")
                               ? "selective"
                               : a.text("recompute-granularity").value_or("none");
  if (kind == "selective") return add_selective(a, training);
  if (kind != "full" || stages.empty()) {
    if (kind != "none" && kind != "full") {
      a.refuse("recompute-granularity", "expected full or selective");
    }
    training["recompute"] = kind;
    return;
  }
  const std::string method = a.text("recompute-method").value_or("uniform");
  const int layers = a.count("recompute-num-layers").value_or(1);
  int most = 0;
  for (const StageContent& stage : stages) most = std::max(most, stage.layers);
  if (method == "uniform" && layers > 1) {
    training["recompute"] = {{"group", layers}};
  } else if (method == "block" && layers < most) {
    training["recompute"] = {{"stage_layers", layers}};
  } else {
    training["recompute"] = "full";
  }
}

void add_optimizer(Settings& a, Json& training) {
  const std::string optimizer = a.text("optimizer").value_or("adam");
  const bool momentum = a.number("sgd-momentum").value_or(0.9) > 0;
  const bool muon = optimizer.ends_with("muon");
  if (!muon && optimizer != "adam" && optimizer != "sgd") {
    a.refuse("optimizer", "expected adam, muon or sgd");
  }
  training["optimizer"] = muon                              ? "muon"
                          : optimizer == "sgd" && !momentum ? "sgd"
                          : optimizer == "sgd"              ? "sgd-momentum"
                                                            : "adam";
  if (a.flag("cpu-optimizer")) training["offload"]["optimizer"] = 1;
  if (a.flag("optimizer-cpu-offload")) {
    training["offload"]["optimizer"] = a.number("optimizer-offload-fraction").value_or(1);
  }
}

/// Layers whose activations wait in the host's memory. Source: arguments.py and the checks of
/// cpu_offloading in megatron/core/transformer/transformer_config.py (NVIDIA/Megatron-LM d98e8a6).
void add_offload(Settings& a, const Degrees& d, int layers, Json& training) {
  const char* const name = "cpu-offloading-num-layers";
  const int away = a.count(name).value_or(0);
  const bool off = a.text("cpu-offloading") && !a.flag("cpu-offloading");
  const bool kept = a.text("cpu-offloading-activations") && !a.flag("cpu-offloading-activations");
  if (a.flag("cpu-offloading-weights") && away > 0 && !off) {
    a.remark("cpu-offloading-weights", "weights stay on the devices");
  }
  if (away <= 0 || off || kept) return;
  const std::string wrong =
      away >= layers ? "expected fewer than the " + std::to_string(layers) + " layers"
      : d.pipeline > 1
          ? "Megatron-Core offloads nothing beside pipelines; expected one pipeline rank"
      : a.text("recompute-granularity") || a.flag("recompute-activations")
          ? "Megatron-Core offloads nothing beside recomputation; expected one of both"
          : "";
  if (!wrong.empty()) return a.refuse(name, wrong);
  training["offload"]["activations"] = static_cast<double>(away) / layers;
}

std::string precision_of(Settings& a) {
  const bool eight = a.text("fp8-format").has_value() || a.flag("fp8-hybrid") || a.flag("fp8-e4m3");
  if (eight) {
    const std::string recipe = a.text("fp8-recipe").value_or("delayed");
    const bool whole = recipe == "delayed" || recipe == "tensorwise";
    if (!whole) a.remark("fp8-recipe", recipe + ": taken as one scale for each tensor");
  }
  if (a.text("fp4-format")) return "fp4";
  return eight ? "fp8" : a.flag("bf16") ? "bf16" : a.flag("fp16") ? "fp16" : "fp32";
}

/// Adds the layers at both ends that are in 16 bits where the others have fewer.
void add_wide_layers(Settings& a, Json& training) {
  const bool narrow = training["precision"] == "fp8" || training["precision"] == "fp4";
  if (!a.flag("first-last-layers-bf16") || !narrow) return;
  training["bf16_layers"] = {{"first", a.count("num-layers-at-start-in-bf16").value_or(1)},
                             {"last", a.count("num-layers-at-end-in-bf16").value_or(1)}};
}

/// Returns the framework's entry that stands for how Megatron-LM runs these arguments on `device`.
std::string framework_of(Settings& a, const Surroundings& around) {
  if (!around.framework.empty()) return around.framework;
  if (a.text("transformer-impl").value_or("transformer_engine") == "local") {
    return "megatron-lm-sequence-parallel";
  }
  return around.device.find("b200") != around.device.npos ? "megatron-core-b200" : "nemo";
}

/// Returns true if gradients are added up and exchanged in fp32. Source: the end of the checks of
/// precision in megatron/training/arguments.py: bf16 does unless told otherwise.
bool fp32_gradients(Settings& a) {
  const bool asked = a.flag("accumulate-allreduce-grads-in-fp32");
  const bool less = a.flag("grad-reduce-in-bf16");
  return asked || (a.flag("bf16") && !less) || !(a.flag("bf16") || a.flag("fp16"));
}

/// Returns the framework of the scenario: the entry `name`, but for what these arguments say
/// otherwise. Layers of Megatron-Core's own keep a buffer of scores; gradients of 16 bits are cast
/// for an update where weights are of fp16. Source: megatron/core/transformer/
/// dot_product_attention.py and megatron/core/optimizer/optimizer.py.
Json framework_json(Settings& a, const Surroundings& around, const std::string& name) {
  if (name == "nemo" && !fp32_gradients(a) && !a.flag("fp16")) return "nemo-25";
  Json changed = {{"base", name}};
  const bool local = a.text("transformer-impl").value_or("transformer_engine") == "local";
  if (local && around.framework.empty()) changed["attention_scores_buffer"] = true;
  if (!fp32_gradients(a)) changed["gradients"] = a.flag("fp16") ? "fp32_for_updates" : "training";
  return changed.size() > 1 ? changed : Json(name);
}

/// Samples of a step. A schedule of batches, e.g. 0:384 200B:768, counts with its last.
int global_batch(Settings& a, int of_one_micro_batch) {
  const std::vector<std::string> schedule = a.words("step-batch-size-schedule");
  if (const auto global = a.count("global-batch-size")) return *global;
  if (schedule.empty()) return of_one_micro_batch;
  const std::string& last = schedule.back();
  const std::string number = last.substr(last.find(':') + 1);  // all of it without a colon
  const char* const stop = number.data() + number.size();
  int samples = 0;
  const auto [end, error] = std::from_chars(number.data(), stop, samples);
  if (error != std::errc() || end != stop || samples < 1) {
    a.refuse("step-batch-size-schedule",
             "expected a number of samples behind each colon, e.g. 0:384 200B:768, got " +
                 in_quotes(last));
    return of_one_micro_batch;
  }
  a.remark("step-batch-size-schedule",
           "every step has the last of its batches, " + std::to_string(samples));
  return samples;
}

/// Micro-batches that a stage of a rank takes before the next. Source of the default, the pipeline
/// ranks, and of what is allowed: megatron/core/pipeline_parallel/schedules.py.
void add_round(Settings& a, const Degrees& d, Json& training) {
  const char* const name = "microbatch-group-size-per-virtual-pipeline-stage";
  const int each = training["micro_batch_size"].get<int>() * d.data;
  const int all = std::max(training["global_batch_size"].get<int>() / each, 1);
  const int round = a.count(name).value_or(d.pipeline), last = all % std::max(round, 1);
  if (round < d.pipeline || round > all || (last > 0 && last < d.pipeline)) {
    a.refuse(name, "groups of " + std::to_string(round) + " of " + std::to_string(all) +
                       " micro-batches would wait for themselves; expected groups, the last one "
                       "too, of at least the " +
                       std::to_string(d.pipeline) + " pipeline ranks");
  }
  if (round != d.pipeline) training["schedule"]["round"] = round;
}

/// Puts off weight gradients of the readout: those of as many micro-batches as the limit says, or,
/// with 0, of all. Source: megatron/core/tensor_parallel/layers.py, grad_output_buffer.
void add_deferral(Settings& a, const Degrees& d, Json& scenario) {
  if (d.pipeline == 1 || !a.flag("defer-embedding-wgrad-compute")) return;
  const std::string written = a.text("wgrad-deferral-limit").value_or("0");
  const bool all = written.starts_with('-') || written == "0";
  const int limit = all ? 0 : a.count("wgrad-deferral-limit").value_or(0);
  const bool predicts = a.count("mtp-num-layers").value_or(0) > 0;
  if (predicts || scenario["parallel"].value("zero_stage", 0) > 1) {
    a.remark("defer-embedding-wgrad-compute",
             predicts ? "weight gradients of a readout that predicts several tokens stay in their "
                        "backward"
                      : "gradients that are reduced in each backward are made there");
    return;
  }
  Json& schedule = scenario["training"]["schedule"];
  if (schedule.is_string()) schedule = {{"kind", schedule}};
  schedule["deferred_readout"] = all ? Json("all") : Json(limit);
}

/// Reports what no divided vocabulary goes with here.
void refuse_beside_vocabulary(Settings& a, const Degrees& d, const Json& parallel,
                              const Json& schedule) {
  const bool shares = parallel.value("zero_stage", 0) > 0;
  if (d.data * d.context > 1 && parallel.value("overlap_gradients", false)) {
    a.refuse(
        "overlap-grad-reduce",
        "gradients of parts of the vocabulary come behind those of the last backward; expected "
        "--enable-vocab-parallel without it");
  }
  if (shares && parallel.value("overlap_weights", false)) {
    a.refuse("overlap-param-gather",
             "parts of the vocabulary are read ahead of the first forward; expected "
             "--enable-vocab-parallel without it");
  }
  if (schedule == "v-min" || schedule == "zb-v") {
    a.refuse("zero-bubble-v-schedule",
             "its order runs no parts of the vocabulary; expected "
             "--zero-bubble-v-schedule-mem-setup half beside --enable-vocab-parallel");
  }
  if (schedule.is_string()) return;
  if (schedule["kind"] == "interleaved") {
    const bool counts = a.count("num-virtual-stages-per-pipeline-rank").has_value();
    a.refuse(
        counts ? "num-virtual-stages-per-pipeline-rank" : "num-layers-per-virtual-pipeline-stage",
        "the vocabulary is divided among ranks of one stage each; expected "
        "--enable-vocab-parallel without it");
  }
  if (schedule.contains("deferred_readout")) {
    a.refuse("defer-embedding-wgrad-compute",
             "the readout lies on all ranks; expected --enable-vocab-parallel without it");
  }
}

/// Divides the vocabulary among pipeline ranks. Source: sail-sg/VocabularyParallelism,
/// megatron/training/arguments.py.
void add_vocabulary(Settings& a, const Degrees& d, Json& scenario) {
  const bool two = a.flag("disable-backward-fusion");
  if (a.flag("use-interlaced-schedule")) {
    a.refuse("use-interlaced-schedule",
             "stops all ranks for each part of the vocabulary, which no schedule here does; "
             "expected --enable-vocab-parallel without it");
  }
  if (!a.flag("enable-vocab-parallel")) return;
  if (d.pipeline == 1) return a.remark("enable-vocab-parallel", "there is one pipeline rank");
  Json& schedule = scenario["training"]["schedule"];
  refuse_beside_vocabulary(a, d, scenario["parallel"], schedule);
  if (schedule.is_string()) schedule = {{"kind", schedule}};
  schedule["vocabulary"] = two ? "vocab-1" : "vocab-2";
}

Json training_of(Settings& a, const Degrees& d, const std::vector<StageContent>& stages,
                 int layers) {
  const int chunks = static_cast<int>(stages.size()) / d.pipeline;
  Json training = {{"strategy", "global"}, {"schedule", "1f1b"}};
  const bool v = d.pipeline > 1 && is_v(a);
  if (v) training["schedule"] = v_schedule(a);
  if (chunks > 1 && !v) training["schedule"] = {{"kind", "interleaved"}, {"chunks", chunks}};
  const int micro = a.required("micro-batch-size");
  training["global_batch_size"] = global_batch(a, micro * d.data);
  training["micro_batch_size"] = micro;
  if (chunks > 1 && !v) add_round(a, d, training);
  if (chunks == 1 && d.pipeline > 1 && d.expert > 1 && a.flag("overlap-moe-expert-parallel-comm")) {
    a.refuse("overlap-moe-expert-parallel-comm",
             "pairs of micro-batches need several stages a rank; expected "
             "--num-virtual-stages-per-pipeline-rank beside it");
  }
  training["precision"] = precision_of(a);
  add_wide_layers(a, training);
  add_optimizer(a, training);
  add_offload(a, d, layers, training);
  add_recompute(a, stages, training);
  return training;
}

/// Returns the model that an option names, or else that of the arguments.
NamedModel model_of(Settings& a, const Surroundings& around) {
  if (!around.model.empty()) {
    for (const char* name : {"num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads"})
      a.text(name);
    const auto length = a.count("seq-length");
    return named_model(around.model, around.sequence_length ? around.sequence_length : length,
                       around.vocab_size);
  }
  const Json json = megatron_model(a, around.name, around.vocab_size);
  return {.json = json, .layers = json.is_null() ? 1 : json["layers"].get<int>()};
}

}  // namespace

std::string megatron_scenario(Settings& a, const Surroundings& around) {
  const NamedModel model = model_of(a, around);
  if (model.json.is_null()) a.diagnostics().throw_if_any();
  const Degrees d = degrees_of(a, around);
  const std::vector<StageContent> stages = stages_of(a, model.layers, d.pipeline);
  Json scenario = {{"name", around.name}, {"model", model.json}};
  const int devices = d.data * d.tensor * d.pipeline * d.context;
  scenario["cluster"] = cluster_json(around, devices);
  const std::string framework = framework_of(a, around);
  scenario["parallel"] = parallel_of(a, d, fp32_gradients(a));
  if (stages.size() > 1) {
    std::vector<int> modules;
    modules.reserve(stages.size());
    for (const StageContent& stage : stages) modules.push_back(stage.modules());
    scenario["partition"] = modules;
    scenario["parallel"]["stages"] = modules.size();
  }
  scenario["training"] = training_of(a, d, stages, model.layers);
  add_deferral(a, d, scenario);
  add_vocabulary(a, d, scenario);
  if (framework != "none") scenario["training"]["framework"] = framework_json(a, around, framework);
  scenario["training"]["steps"] = 2;
  a.diagnostics().throw_if_any();
  return scenario.dump(2) + "\n";
}

}  // namespace interlock
