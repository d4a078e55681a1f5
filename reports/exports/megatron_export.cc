// Megatron export: a plan as arguments of Megatron-LM.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "hardware/networks/cluster.h"
#include "reports/exports/exported_plan.h"
#include "reports/exports/exports.h"
#include "reports/megatron/megatron_layout.h"

namespace interlock {
namespace {

/// Arguments, a line for each group of them.
class MegatronLines {
 public:
  void add(const std::string& name) { line_ += " --" + name; }
  void add(const std::string& name, int value) { add(name, std::to_string(value)); }
  void add(const std::string& name, const std::string& value) {
    line_ += " --" + name + " " + value;
  }
  void end_line() {
    if (!line_.empty()) text_ += "   " + line_ + "\n";
    line_.clear();
  }
  const std::string& text() const { return text_; }

 private:
  std::string line_, text_;
};

/// Numbers that change no time, of gpt-oss: what its activations are clamped to, and how much
/// further than in its first training its positions reach.
constexpr const char* kClamp = "7.0";
constexpr const char* kStretch = "32.0";

std::string number_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

/// Returns the layers' form: that of one without experts, if there is one.
const BlockForm& form_of(const Transformer& m) {
  const auto dense = std::ranges::find(m.forms, FeedForward::Dense, &BlockForm::ffn);
  return dense != m.forms.end() ? *dense : m.forms.front();
}

/// Returns the window of the layers that have one; nothing if none has.
std::optional<int> window_of(const Transformer& m) {
  const auto has = [](const BlockForm& form) { return form.window.has_value(); };
  const auto found = std::ranges::find_if(m.forms, has);
  return found != m.forms.end() ? found->window : std::nullopt;
}

/// Returns true if layers differ in more than whether they have experts, and a window.
bool layers_differ(const Transformer& m) {
  const BlockForm& one = form_of(m);
  const std::optional<int> window = window_of(m);
  return std::ranges::any_of(m.forms, [&](BlockForm other) {
    if (other.window == window || !other.window) other.window = one.window;
    if (other.ffn == FeedForward::Experts) {
      other.ffn = one.ffn;
      other.ffn_hidden_size = one.ffn_hidden_size;
    }
    return other != one;
  });
}

void check_layers(ExportedPlan& e) {
  const Transformer& m = e.shape();
  const BlockForm& b = form_of(m);
  e.refuse_if(layers_differ(m), "/model/layer_pattern",
              "is told of one form of layers, with experts or without, with one window or none");
  e.refuse_if(!attends(b.mixer), "/model/attention",
              "has attention in every layer here; expected materialised or fused");
  e.refuse_if(b.ffn == FeedForward::None, "/model/ffn", "has an MLP or experts in every layer");
  e.refuse_if(b.qk_norm == QkNorm::Whole, "/model/qk_norm",
              "normalises each head by itself; expected heads");
  e.refuse_if(b.attention_chunk.has_value(), "/model/attention_chunk",
              "has no attention within parts of the sequence");
  e.refuse_if(b.compression.query_rank > 0, "/model/compressed_attention",
              "has no attention to entries in its releases; expected none");
  e.refuse_if(b.stream.connections.streams > 1, "/model/hyper_connections",
              "has streams without later tokens and without full recomputation alone; expected "
              "one stream");
  e.refuse_if(b.parallel_residual, "/model/parallel_residual", "runs the MLP behind attention");
  e.refuse_if(b.clamped_mlp && b.latents.kv_rank > 0, "/model/clamped_mlp",
              "clamps no MLPs beside latent attention");
  e.refuse_if(b.bias.projection != b.bias.mlp || (b.bias.mlp && !b.bias.qkv), "/model/bias",
              "has biases everywhere, nowhere, or for queries, keys and values alone");
}

/// Refuses what stops Megatron-Core beside tokens that are chosen. Source: the checks of
/// megatron/core/transformer/experimental_attention_variant/absorbed_mla.py (NVIDIA/Megatron-LM
/// d98e8a6).
void check_chosen_tokens(ExportedPlan& e) {
  const BlockForm& b = form_of(e.shape());
  if (b.latents.selection.tokens == 0) return;
  const Training& training = e.question().training();
  const bool narrow = product_format(training.precision).has_value();
  e.refuse_if(b.bias.mlp || b.bias.projection, "/model/bias",
              "has no biases beside tokens that are chosen; expected false");
  e.refuse_if(narrow && training.recompute == Recompute::Parts &&
                  training.recompute_parts.has(LayerPart::LatentProjections),
              "/training/recompute/modules",
              "makes no queries, keys and values again in 8 or 4 bits where tokens are chosen; "
              "expected none of mla_up_proj");
  e.refuse_if(e.degree(Dimension::Tensor) > 1 && !e.question().layout.sharding.sequence_parallel,
              "/parallel/sequence_parallel",
              "divides the sequence too where tokens are chosen; expected true");
}

/// Source: preprocess in megatron/core/transformer/moe/moe_layer.py (NVIDIA/Megatron-LM d98e8a6).
void check_experts(ExportedPlan& e) {
  const Experts& x = form_of(e.shape()).experts;
  const Sharding& s = e.question().layout.sharding;
  e.refuse_if(x.latent_size > 0 && s.expert_overlap == ExpertOverlap::SharedExperts,
              "/parallel/expert_overlap",
              "runs no shared experts beside the exchange of latents; expected none");
}

void check_ends(ExportedPlan& e) {
  const Transformer& m = e.shape();
  e.refuse_if(m.patches.image_size > 0, "/model/patches", "reads tokens here, not images");
  e.refuse_if(!m.encoder.empty(), "/model/encoder", "reads tokens here, not images");
  e.refuse_if(m.stream.norm_position != NormPosition::Pre, "/model/norm_position",
              "has norms before attention and MLP");
  e.refuse_if(m.embedding_norm, "/model/embedding_norm", "has no norm behind the embedding");
  const bool bert = m.stream.bidirectional && m.readout == Transformer::Readout::MaskedLm;
  e.refuse_if(m.readout == Transformer::Readout::Classes || m.stream.bidirectional != bert ||
                  m.token_types != (bert ? 2 : 0),
              "/model/readout", "trains GPTs, and BERTs with two token types");
  e.refuse_if(!m.stream.rms_norm && !m.stream.norm_bias, "/model/norm_bias",
              "has layer norms with biases; expected true");
  e.refuse_if(m.readout_bias != bert, "/model/readout_bias", "has a bias there in BERTs alone");
}

void add_sizes(ExportedPlan& e, MegatronLines& a) {
  const Transformer& m = e.shape();
  const BlockForm& b = form_of(m);
  a.add("num-layers", static_cast<int>(m.layers.size()));
  a.add("hidden-size", m.stream.hidden_size);
  a.add("ffn-hidden-size", b.ffn_hidden_size);
  a.add("num-attention-heads", b.attention_heads);
  const bool latents = b.latents.kv_rank > 0;
  if (b.kv_heads != b.attention_heads && !latents) {
    a.add("group-query-attention");
    a.add("num-query-groups", b.kv_heads);
  }
  if (!latents) a.add("kv-channels", b.head_size);
  a.end_line();
  a.add("seq-length", m.stream.sequence_length);
  const bool learned = m.max_positions > 0;
  a.add("max-position-embeddings", learned ? m.max_positions : m.stream.sequence_length);
  a.add("vocab-size", m.vocab_size);
  a.add("make-vocab-size-divisible-by", 1);  // it is as large as the scenario says
  if (m.later_tokens > 0) a.add("mtp-num-layers", m.later_tokens);
  a.end_line();
}

void add_latents(ExportedPlan& e, MegatronLines& a) {
  const BlockForm& b = form_of(e.shape());
  if (b.latents.kv_rank == 0) return;
  a.add("multi-latent-attention");
  if (b.latents.query_rank > 0) a.add("q-lora-rank", b.latents.query_rank);
  a.add("kv-lora-rank", b.latents.kv_rank);
  a.add("qk-head-dim", b.head_size - b.latents.rotary_head_size);
  a.add("qk-pos-emb-head-dim", b.latents.rotary_head_size);
  a.add("v-head-dim", b.value_head_size);
  if (const Selection& s = b.latents.selection; s.tokens > 0) {
    a.add("experimental-attention-variant", "dsa");
    a.add("dsa-indexer-n-heads", s.heads);
    a.add("dsa-indexer-head-dim", s.head_size);
    a.add("dsa-indexer-topk", s.tokens);
    a.add("dsa-indexer-loss-coeff", "0.01");
    a.add("dsa-indexer-use-sparse-loss");
    a.add("dsa-kernel-backend", "tilelang");
    a.add("no-rope-fusion");  // which stops Megatron-Core beside these
  }
  a.end_line();
}

/// Writes the window, and which layers have it: all but every n-th, or a list.
void add_windows(const Transformer& m, MegatronLines& a) {
  const std::optional<int> window = window_of(m);
  if (!window) return;
  a.add("window-size", std::to_string(*window - 1) + ",0");
  const std::size_t layers = m.layers.size();
  std::string list;
  std::size_t first_full = layers;
  for (std::size_t i = layers; i-- > 0;) {
    const bool has = m.block_of(i).window.has_value();
    list = (has ? "1" : "0") + (list.empty() ? "" : "," + list);
    if (!has) first_full = i;
  }
  if (first_full == layers) return;
  bool regular = true;
  for (std::size_t i = 0; i < layers; ++i) {
    regular = regular && m.block_of(i).window.has_value() == ((i + 1) % (first_full + 1) != 0);
  }
  a.add("window-attn-skip-freq", regular ? std::to_string(first_full + 1) : "\"([" + list + "])\"");
}

void add_form(ExportedPlan& e, MegatronLines& a) {
  const Transformer& m = e.shape();
  const BlockForm& b = form_of(m);
  if (b.gated_mlp) a.add(b.clamped_mlp ? "quick-geglu" : "swiglu");
  if (b.clamped_mlp) a.add("activation-func-clamp-value", kClamp);
  if (m.stream.rms_norm) a.add("normalization", "RMSNorm");
  if (!b.bias.mlp) a.add("disable-bias-linear");
  if (!b.bias.mlp && b.bias.qkv) a.add("add-qkv-bias");
  if (b.qk_norm != QkNorm::None) a.add("qk-layernorm");
  if (b.gate) a.add("attention-output-gate");
  if (b.sinks) a.add("softmax-type", "learnable");
  if (!m.tied_embeddings) a.add("untie-embeddings-and-output-weights");
  a.add("attention-dropout", number_text(m.stream.dropout));
  a.add("hidden-dropout", number_text(m.stream.dropout));
  a.end_line();
  const bool learned = m.max_positions > 0;
  const char* const turned = b.scaled_rotation ? "yarn" : "rope";
  a.add("position-embedding-type", learned ? "learned_absolute" : b.rotary ? turned : "none");
  if (b.scaled_rotation) a.add("rotary-scaling-factor", kStretch);
  if (b.rotary_share != 1) a.add("rotary-percent", number_text(b.rotary_share));
  add_windows(m, a);
  a.add("attention-backend", b.mixer == Mixer::Fused ? "flash" : "unfused");
  a.end_line();
}

/// Writes which layers have experts: every n-th, or a list where that says too little.
std::string expert_layers(const Transformer& m) {
  const std::size_t layers = m.layers.size();
  std::vector<bool> experts;
  for (std::size_t i = 0; i < layers; ++i) {
    experts.push_back(m.block_of(i).ffn == FeedForward::Experts);
  }
  for (std::size_t every = 1; every <= layers && experts[0]; ++every) {
    bool fits = true;
    for (std::size_t i = 0; i < layers && fits; ++i) fits = experts[i] == (i % every == 0);
    if (fits) return std::to_string(every);
  }
  const auto first = std::ranges::find(experts, true);
  if (std::find(first, experts.end(), false) == experts.end()) {
    return "([0]*" + std::to_string(first - experts.begin()) + "+[1]*" +
           std::to_string(experts.end() - first) + ")";
  }
  std::string list;
  for (const bool one : experts) list += std::string(list.empty() ? "" : ",") + (one ? "1" : "0");
  return "([" + list + "])";
}

/// Writes how tokens reach their experts, and what runs meanwhile.
void add_token_ways(ExportedPlan& e, MegatronLines& a) {
  const Sharding& s = e.question().layout.sharding;
  if (s.expert_dispatch == ExpertDispatch::DeepEp) {
    a.add("moe-token-dispatcher-type", "flex");
    a.add("moe-enable-deepep");
    a.add("moe-flex-dispatcher-backend", "deepep");
  } else {
    a.add("moe-token-dispatcher-type", "alltoall");
  }
  if (s.expert_overlap == ExpertOverlap::SharedExperts) a.add("moe-shared-expert-overlap");
  if (s.expert_overlap == ExpertOverlap::MicroBatches) a.add("overlap-moe-expert-parallel-comm");
  if (e.plan().schedule.delays_weights) a.add("delay-wgrad-compute");
  a.end_line();
}

void add_expert_arguments(ExportedPlan& e, MegatronLines& a) {
  const Experts& x = form_of(e.shape()).experts;
  if (x.count == 0) return;
  a.add("num-experts", x.count);
  a.add("moe-router-topk", x.per_token);
  if (x.groups > 1) {
    a.add("moe-router-num-groups", x.groups);
    a.add("moe-router-group-topk", x.groups_per_token);
  }
  a.add("moe-ffn-hidden-size", x.ffn_hidden_size);
  a.add("moe-layer-freq", "\"" + expert_layers(e.shape()) + "\"");
  if (x.shared > 0) {
    a.add("moe-shared-expert-intermediate-size", x.shared * x.shared_ffn_hidden_size);
  }
  if (x.shared_gate) a.add("moe-shared-expert-gate");
  if (x.latent_size > 0) a.add("moe-latent-size", x.latent_size);
  if (x.router_bias) a.add("moe-router-enable-expert-bias");
  if (x.capacity_factor) a.add("moe-expert-capacity-factor", number_text(*x.capacity_factor));
  a.add("moe-grouped-gemm");
  a.end_line();
  add_token_ways(e, a);
}

/// Stages by their modules: the first is the embedding, the last the readout.
std::vector<StageContent> stages_of_plan(const Partition& partition, const Transformer& m) {
  std::vector<StageContent> stages;
  for (int s = 0; s < partition.stages(); ++s) {
    const int first = partition.boundaries[static_cast<std::size_t>(s)];
    const int last = partition.boundaries[static_cast<std::size_t>(s) + 1];
    StageContent stage;
    stage.embedding = first == 0;
    stage.readout = last == static_cast<int>(m.layers.size()) + 2;
    if (stage.readout) stage.predictors = m.later_tokens;
    stage.layers = last - first - (stage.embedding ? 1 : 0) - (stage.readout ? 1 : 0);
    stages.push_back(stage);
  }
  return stages;
}

void add_pipeline(ExportedPlan& e, MegatronLines& a) {
  const Question& q = e.question();
  const std::string schedule = e.plan().schedule.kind->name;
  const bool one = schedule == "1f1b" || (schedule == "naive" && e.plan().micro_batches == 1);
  e.refuse_if(!one && schedule != "interleaved", "/training/schedule",
              "runs 1f1b and interleaved, not " + schedule);
  const int stages = e.plan().partition.stages();
  e.refuse_if(one && stages > q.layout.ranks(), "/training/schedule",
              "interleaves where a rank has several stages; expected interleaved");
  a.add("pipeline-model-parallel-size", q.layout.ranks());
  const int round = e.plan().schedule.round;
  if (round > 0 && round != q.layout.ranks()) {
    a.add("microbatch-group-size-per-virtual-pipeline-stage", round);
  }
  if (const int deferred = e.plan().schedule.deferred_readout; deferred > 0) {
    e.refuse_if(q.layout.ranks() == 1, "/training/schedule/deferred_readout",
                "puts weight gradients off in a pipeline alone; expected none");
    a.add("defer-embedding-wgrad-compute");
    a.add("wgrad-deferral-limit", deferred < e.plan().micro_batches ? deferred : 0);
  }
  if (stages > 1) {
    a.add("pipeline-model-parallel-layout",
          "\"" + layout_text(stages_of_plan(e.plan().partition, e.shape())) + "\"");
  }
}

void add_mesh(ExportedPlan& e, MegatronLines& a) {
  using enum Dimension;
  const Question& q = e.question();
  a.add("tensor-model-parallel-size", e.degree(Tensor));
  const Layout& layout = q.layout;
  if (layout.sharding.sequence_parallel) a.add("sequence-parallel");
  add_pipeline(e, a);
  a.end_line();
  if (e.degree(Context) > 1) {
    a.add("context-parallel-size", e.degree(Context));
    const int turning = layout.sharding.turning_devices(), ring = layout.sharding.ring_devices();
    a.add("cp-comm-type", turning == 1 ? "p2p" : ring == 1 ? "a2a" : "a2a+p2p");
    if (turning > 1 && ring > 1) {
      a.add("hierarchical-context-parallel-sizes",
            std::to_string(turning) + " " + std::to_string(ring));
    }
  }
  if (layout.mesh.expert > 1) a.add("expert-model-parallel-size", layout.mesh.expert);
  if (layout.mesh.expert > 1 || layout.sharding.expert_tensor) {
    a.add("expert-tensor-parallel-size", layout.mesh.tensor_of_experts());
  }
  const std::array usual = Mesh().order;
  const std::array last = {Tensor, Context, Pipeline, Data};
  if (layout.mesh.order == last && layout.mesh.order != usual) {
    a.add("use-tp-pp-dp-mapping");
  } else {
    e.refuse_if(layout.mesh.order != usual, "/parallel/order",
                "lays tensor and context ranks innermost, then data and pipeline or the reverse");
  }
  a.end_line();
}

void add_replicas(ExportedPlan& e, MegatronLines& a) {
  const DataParallel& d = e.question().layout.data_parallel;
  const bool fully = d.zero_stage >= 2,
             soon = d.gradient_reduction == GradientReduction::MicroBatch;
  e.refuse_if(soon && !fully, "/parallel/gradient_reduction",
              "reduces gradients once a step; expected step");
  e.refuse_if(fully && !soon, "/parallel/gradient_reduction",
              "reduces gradients after every micro-batch under FSDP; expected micro_batch");
  if (d.zero_stage == 1) a.add("use-distributed-optimizer");
  if (fully) {
    a.add("use-megatron-fsdp");
    a.add("data-parallel-sharding-strategy",
          d.zero_stage == 3 ? "optim_grads_params" : "optim_grads");
  }
  const int groups = e.question().layout.mesh.replicas() / e.question().layout.mesh.shard;
  if (d.zero_stage > 0 && groups > 1) a.add("num-distributed-optimizer-instances", groups);
  if (d.overlap_gradients) a.add("overlap-grad-reduce");
  if (d.overlap_weights) a.add("overlap-param-gather");
  const bool fp32 = e.question().training().precision != Precision::Fp16;
  if (const auto bucket = d.gradient_bucket()) {
    const double gradients = bucket->value() / (fp32 ? 4 : 2);
    e.refuse_if(gradients != std::floor(gradients) || gradients > 2e9, "/parallel/bucket",
                "counts buckets in whole gradients, up to two thousand million");
    a.add("ddp-bucket-size", static_cast<int>(std::min(gradients, 2e9)));
  }
  if (d.prefetch != 1) e.leave_out("/parallel/prefetch", "Megatron-FSDP decides it");
  a.end_line();
}

/// `layers`: of each stage that are computed again, if not all are.
void add_recompute(const Question& q, const std::optional<int>& layers, MegatronLines& a) {
  const Training& training = q.training();
  if (training.recompute == Recompute::Selective || training.recompute == Recompute::Parts) {
    a.add("recompute-granularity", "selective");
  }
  if (training.recompute == Recompute::Parts) {
    std::string names;
    for (int part = 0; part < kLayerParts; ++part) {
      if (!training.recompute_parts.has(static_cast<LayerPart>(part))) continue;
      names += (names.empty() ? "" : " ") + layer_part_names()[static_cast<std::size_t>(part)];
    }
    a.add("recompute-modules", names);
  }
  if (!layers && training.recompute != Recompute::Full) return;
  a.add("recompute-granularity", "full");
  a.add("recompute-method", layers ? "block" : "uniform");
  a.add("recompute-num-layers", layers.value_or(training.stage_recompute.group));
}

void add_training(ExportedPlan& e, MegatronLines& a) {
  const Question& q = e.question();
  a.add("micro-batch-size", e.micro_batch_size());
  a.add("global-batch-size", e.global_batch_size());
  const Training& training = q.training();
  if (training.precision == Precision::Fp16) a.add("fp16");
  const bool eight = training.precision == Precision::Fp8;
  const bool four = training.precision == Precision::Fp4;
  if (training.precision == Precision::Bf16 || eight || four) a.add("bf16");
  if (eight) a.add("fp8-format", "hybrid");
  if (four) a.add("fp4-format", "e2m1");
  if (const WideLayers& wide = training.wide_layers; wide != WideLayers()) {
    a.add("first-last-layers-bf16");
    a.add("num-layers-at-start-in-bf16", wide.first);
    a.add("num-layers-at-end-in-bf16", wide.last);
  }
  const bool adam = training.optimizer == Optimizer::Adam;
  a.add("optimizer", adam ? "adam" : "sgd");
  if (training.optimizer == Optimizer::Sgd) a.add("sgd-momentum", "0");
  a.end_line();
  const auto layers = e.recomputed_layers();
  e.refuse_if(training.recompute == Recompute::Alternate, "/training/recompute",
              "has no choice of every second product; expected none, selective or full");
  e.refuse_if(layers && e.plan().partition.stages() > 1, "/training/recompute",
              "counts layers that are computed again in each stage; expected none, selective or "
              "full");
  e.refuse_if((layers || training.stage_recompute.any()) && !training.recompute_parts.empty(),
              "/training/recompute",
              "computes whole layers again, or parts of all; expected one of both");
  add_recompute(q, layers ? layers : training.stage_recompute.layers, a);
  a.end_line();
}

/// Writes which layers' activations wait in the host's memory. Source: the checks of
/// cpu_offloading in megatron/core/transformer/transformer_config.py (NVIDIA/Megatron-LM d98e8a6).
void add_offload(ExportedPlan& e, MegatronLines& a) {
  const Training& training = e.question().training();
  const double layers = static_cast<double>(e.shape().layers.size());
  const double away = std::round(training.offload.activations * layers);
  const bool alone = e.question().layout.ranks() == 1 && training.recompute == Recompute::None &&
                     !training.stage_recompute.any() && !e.recomputed_layers();
  const bool fits = away > 0 && away < layers && away / layers == training.offload.activations;
  if (training.offload.activations > 0) {
    e.refuse_if(!alone || !fits, "/training/offload/activations",
                "offloads whole layers, not all of them, and none beside pipelines or "
                "recomputation; expected a share that is a number of the " +
                    number_text(layers) + " layers");
    a.add("cpu-offloading-num-layers", static_cast<int>(away));
  }
  if (training.offload.optimizer > 0) {
    a.add("optimizer-cpu-offload");
    a.add("optimizer-offload-fraction", number_text(training.offload.optimizer));
  }
  a.end_line();
}

/// Writes what runs as CUDA graphs, by the names that all versions know.
void add_graphs(const Question& q, MegatronLines& a) {
  const JsonValue* training = q.document->find("training");
  const JsonValue* graphs = training ? training->find("cuda_graphs") : nullptr;
  if (graphs == nullptr || graphs->text == "none") return;
  if (graphs->text == "step") {
    a.add("cuda-graph-impl", "full_iteration");
    a.add("no-check-for-nan-in-loss-and-grad");  // which reads what a graph has not made yet
    return a.end_line();
  }
  std::string scope;
  for (const JsonValue& part : graphs->items) {
    scope += part.text == "attention" ? " attn" : " moe_router moe_preprocess";
  }
  a.add("cuda-graph-impl", "transformer_engine");
  a.add("cuda-graph-scope", scope.substr(1));
  a.end_line();
}

/// Writes what single kernels do of routing.
void add_fused_routing(const Question& q, MegatronLines& a) {
  const FusedRouting& fused = q.training().framework.fused_routing;
  if (fused.router) a.add("moe-router-fusion");
  if (fused.permutation) a.add("moe-permute-fusion");
  if (fused.router || fused.permutation) a.end_line();
}

void check_nodes(ExportedPlan& e) {
  const Cluster& cluster = e.question().cluster;
  const int each = cluster.machines.front().devices_per_node;
  bool alike = true;
  for (std::size_t i = 0; i < cluster.machines.size() && is_mixed(cluster);) {
    const int nodes = nodes_of(cluster, i);
    int devices = devices_of(cluster, i);
    while (++i < cluster.machines.size() && cluster.machines[i].joins) {
      devices += devices_of(cluster, i);
    }
    alike = alike && devices == nodes * each;
  }
  e.refuse_if(!alike, "/cluster/machines",
              "is started with as many processes on each node; expected nodes that all use as many "
              "devices");
}

}  // namespace

ExportedFile megatron_export(const Plan& plan) {
  ExportedPlan e(plan, "Megatron-LM");
  e.throw_if_refused();
  check_layers(e);
  check_chosen_tokens(e);
  check_experts(e);
  check_ends(e);
  check_nodes(e);
  e.throw_if_refused();  // an encoder's modules have no layout
  MegatronLines a;
  add_sizes(e, a);
  add_form(e, a);
  add_latents(e, a);
  add_expert_arguments(e, a);
  add_mesh(e, a);
  add_replicas(e, a);
  add_training(e, a);
  add_offload(e, a);
  add_graphs(e.question(), a);
  add_fused_routing(e.question(), a);
  e.throw_if_refused();
  const int devices = plan.question.layout.mesh.devices();
  const int each = std::min(plan.question.cluster.machines.front().devices_per_node, devices);
  const bool bert = e.shape().stream.bidirectional;
  std::string text = "#!/bin/bash\n# Made by interlock export of " + plan.question.name +
                     ". Data, tokenizer, learning rate and checkpoints are yours to add.\n";
  const BlockForm& form = form_of(e.shape());
  if (form.clamped_mlp || form.scaled_rotation) {
    text +=
        "# What activations are clamped to, and how far positions are stretched, is gpt-oss's.\n";
  }
  text += "ARGS=(\n" + a.text() + ")\n";
  text += "torchrun --nnodes " + std::to_string((devices + each - 1) / each) +
          " --nproc_per_node " + std::to_string(each) + " " +
          (bert ? "pretrain_bert.py" : "pretrain_gpt.py") + " \"${ARGS[@]}\" \"$@\"\n";
  return {text, e.left_out()};
}

}  // namespace interlock
