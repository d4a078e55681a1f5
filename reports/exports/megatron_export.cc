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

std::string number_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

void add_sizes(ExportedPlan& e, MegatronLines& a) {
  const Transformer& m = e.shape();
  a.add("num-layers", m.layers);
  a.add("hidden-size", m.hidden_size);
  a.add("ffn-hidden-size", m.ffn_hidden_size);
  a.add("num-attention-heads", m.attention_heads);
  const bool latents = m.latents.kv_rank > 0;
  if (m.kv_heads != m.attention_heads && !latents) {
    a.add("group-query-attention");
    a.add("num-query-groups", m.kv_heads);
  }
  if (!latents) a.add("kv-channels", m.head_size);
  a.end_line();
  a.add("seq-length", m.sequence_length);
  const bool learned = m.positions == Transformer::Positions::Learned;
  a.add("max-position-embeddings", learned ? m.max_positions : m.sequence_length);
  a.add("vocab-size", m.vocab_size);
  a.end_line();
}

void add_latents(ExportedPlan& e, MegatronLines& a) {
  const Transformer& m = e.shape();
  if (m.latents.kv_rank == 0) return;
  a.add("multi-latent-attention");
  if (m.latents.query_rank > 0) a.add("q-lora-rank", m.latents.query_rank);
  a.add("kv-lora-rank", m.latents.kv_rank);
  a.add("qk-head-dim", m.head_size - m.latents.rotary_head_size);
  a.add("qk-pos-emb-head-dim", m.latents.rotary_head_size);
  a.add("v-head-dim", m.value_head_size);
  a.end_line();
}

void add_form(ExportedPlan& e, MegatronLines& a) {
  const Transformer& m = e.shape();
  e.refuse_if(m.post_norm, "/model/norm_position", "has norms before attention and MLP");
  e.refuse_if(m.embedding_norm, "/model/embedding_norm", "has no norm behind the embedding");
  e.refuse_if(m.parallel_residual, "/model/parallel_residual", "runs the MLP behind attention");
  e.refuse_if(m.bias.projection != m.bias.mlp || (m.bias.mlp && !m.bias.qkv), "/model/bias",
              "has biases everywhere, nowhere, or for queries, keys and values alone");
  const bool bert = m.bidirectional && m.readout == Transformer::Readout::MaskedLm;
  e.refuse_if(m.readout == Transformer::Readout::Classes || m.bidirectional != bert ||
                  m.token_types != (bert ? 2 : 0),
              "/model/readout", "trains GPTs, and BERTs with two token types");
  if (m.gated_mlp) a.add("swiglu");
  if (m.rms_norm) a.add("normalization", "RMSNorm");
  if (!m.bias.mlp) a.add("disable-bias-linear");
  if (!m.bias.mlp && m.bias.qkv) a.add("add-qkv-bias");
  if (m.qk_norm) a.add("qk-layernorm");
  if (!m.tied_embeddings) a.add("untie-embeddings-and-output-weights");
  a.add("attention-dropout", number_text(m.dropout));
  a.add("hidden-dropout", number_text(m.dropout));
  a.end_line();
  using enum Transformer::Positions;
  a.add("position-embedding-type", m.positions == Learned  ? "learned_absolute"
                                   : m.positions == Rotary ? "rope"
                                                           : "none");
  if (m.rotary_share != 1) a.add("rotary-percent", number_text(m.rotary_share));
  if (m.window) a.add("window-size", std::to_string(*m.window - 1) + ",0");
  const bool fused = m.attention == Transformer::Attention::Fused;
  a.add("attention-backend", fused ? "flash" : "unfused");
  a.end_line();
}

/// Which layers have experts, as a list if their number says too little.
std::string expert_layers(const Transformer& m) {
  if (m.experts.dense_layers == 0) return std::to_string(m.experts.interval);
  std::string list;
  for (int i = 0; i < m.layers; ++i) {
    list += std::string(i > 0 ? "," : "") + (m.experts.in_layer(i) ? "1" : "0");
  }
  if (m.experts.interval > 1) return "([" + list + "])";
  const std::string dense = std::to_string(m.experts.dense_layers);
  return "([0]*" + dense + "+[1]*" + std::to_string(m.layers - m.experts.dense_layers) + ")";
}

void add_expert_arguments(ExportedPlan& e, MegatronLines& a) {
  const Transformer::Experts& x = e.shape().experts;
  if (x.count == 0) return;
  a.add("num-experts", x.count);
  a.add("moe-router-topk", x.per_token);
  a.add("moe-ffn-hidden-size", x.ffn_hidden_size);
  a.add("moe-layer-freq", "\"" + expert_layers(e.shape()) + "\"");
  if (x.shared > 0) a.add("moe-shared-expert-intermediate-size", x.shared * x.ffn_hidden_size);
  if (x.shared_gate) a.add("moe-shared-expert-gate");
  if (x.router_bias) a.add("moe-router-enable-expert-bias");
  if (x.capacity_factor) a.add("moe-expert-capacity-factor", number_text(*x.capacity_factor));
  a.add("moe-token-dispatcher-type", "alltoall");
  a.add("moe-grouped-gemm");
  a.end_line();
}

/// Stages by their modules: the first is the embedding, the last the readout.
std::vector<StageContent> stages_of_plan(const Partition& partition, int layers) {
  std::vector<StageContent> stages;
  for (int s = 0; s < partition.stages(); ++s) {
    const int first = partition.boundaries[static_cast<std::size_t>(s)];
    const int last = partition.boundaries[static_cast<std::size_t>(s) + 1];
    StageContent stage;
    stage.embedding = first == 0;
    stage.readout = last == layers + 2;
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
  e.refuse_if(one && stages > q.ranks, "/training/schedule",
              "interleaves where a rank has several stages; expected interleaved");
  a.add("pipeline-model-parallel-size", q.ranks);
  if (stages > 1) {
    a.add("pipeline-model-parallel-layout",
          "\"" + layout_text(stages_of_plan(e.plan().partition, e.shape().layers)) + "\"");
  }
}

void add_mesh(ExportedPlan& e, MegatronLines& a) {
  using enum Dimension;
  const Question& q = e.question();
  a.add("tensor-model-parallel-size", e.degree(Tensor));
  if (q.sharding.sequence_parallel) a.add("sequence-parallel");
  add_pipeline(e, a);
  a.end_line();
  if (e.degree(Context) > 1) {
    a.add("context-parallel-size", e.degree(Context));
    const bool turned = q.sharding.context_layout == ContextLayout::AllToAll;
    a.add("cp-comm-type", turned ? "a2a" : "p2p");
  }
  if (q.mesh.expert > 1) a.add("expert-model-parallel-size", q.mesh.expert);
  if (q.mesh.expert > 1) a.add("expert-tensor-parallel-size", e.degree(Tensor));
  const std::array usual = Mesh().order;
  const std::array last = {Tensor, Context, Pipeline, Data};
  if (q.mesh.order == last && q.mesh.order != usual) {
    a.add("use-tp-pp-dp-mapping");
  } else {
    e.refuse_if(q.mesh.order != usual, "/parallel/order",
                "lays tensor and context ranks innermost, then data and pipeline or the reverse");
  }
  a.end_line();
}

void add_replicas(ExportedPlan& e, MegatronLines& a) {
  const DataParallel& d = e.question().data_parallel;
  e.refuse_if(d.gradient_reduction == GradientReduction::MicroBatch && d.zero_stage >= 2,
              "/parallel/gradient_reduction", "reduces gradients once a step");
  if (d.zero_stage == 1) a.add("use-distributed-optimizer");
  if (d.zero_stage >= 2) {
    a.add("use-megatron-fsdp");
    a.add("data-parallel-sharding-strategy",
          d.zero_stage == 3 ? "optim_grads_params" : "optim_grads");
  }
  const int groups = e.question().mesh.replicas() / e.question().mesh.shard;
  if (d.zero_stage > 0 && groups > 1) a.add("num-distributed-optimizer-instances", groups);
  if (d.overlap_gradients) a.add("overlap-grad-reduce");
  if (d.overlap_weights) a.add("overlap-param-gather");
  const bool fp32 = e.question().precision != Precision::Fp16;
  const double gradients = d.bucket.value() / (fp32 ? 4 : 2);
  e.refuse_if(gradients != std::floor(gradients) || gradients > 2e9, "/parallel/bucket",
              "counts buckets in whole gradients, up to two thousand million");
  a.add("ddp-bucket-size", static_cast<int>(std::min(gradients, 2e9)));
  if (d.prefetch != 1) e.leave_out("/parallel/prefetch", "Megatron-FSDP decides it");
  a.end_line();
}

void add_training(ExportedPlan& e, MegatronLines& a) {
  const Question& q = e.question();
  a.add("micro-batch-size", e.micro_batch_size());
  a.add("global-batch-size", e.global_batch_size());
  if (q.precision == Precision::Fp16) a.add("fp16");
  if (q.precision == Precision::Bf16 || q.precision == Precision::Fp8) a.add("bf16");
  if (q.precision == Precision::Fp8) a.add("fp8-format", "hybrid");
  const bool adam = q.optimizer == Optimizer::Adam;
  a.add("optimizer", adam ? "adam" : "sgd");
  if (q.optimizer == Optimizer::Sgd) a.add("sgd-momentum", "0");
  a.end_line();
  const auto layers = e.recomputed_layers();
  e.refuse_if(layers && e.plan().partition.stages() > 1, "/training/recompute",
              "counts layers that are computed again in each stage; expected none, selective or "
              "full");
  if (layers || q.recompute == Recompute::Full) a.add("recompute-granularity", "full");
  if (layers) a.add("recompute-method", "block");
  if (layers) a.add("recompute-num-layers", *layers);
  if (q.recompute == Recompute::Full && !layers) {
    a.add("recompute-method", "uniform");
    a.add("recompute-num-layers", 1);
  }
  if (q.recompute == Recompute::Selective) a.add("recompute-granularity", "selective");
  e.refuse_if(q.offload.activations > 0, "/training/offload/activations",
              "offloads whole layers, not a share of each");
  if (q.offload.optimizer > 0) {
    a.add("optimizer-cpu-offload");
    a.add("optimizer-offload-fraction", number_text(q.offload.optimizer));
  }
  a.end_line();
}

}  // namespace

ExportedFile megatron_export(const Plan& plan) {
  ExportedPlan e(plan, "Megatron-LM");
  e.throw_if_refused();
  MegatronLines a;
  add_sizes(e, a);
  add_form(e, a);
  add_latents(e, a);
  add_expert_arguments(e, a);
  add_mesh(e, a);
  add_replicas(e, a);
  add_training(e, a);
  e.throw_if_refused();
  const Cluster& cluster = plan.question.cluster;
  const int devices = plan.question.mesh.devices();
  const int each = std::min(cluster.devices_per_node, devices);
  const bool bert = e.shape().bidirectional;
  std::string text = "#!/bin/bash\n# Made by interlock export of " + plan.question.name +
                     ". Data, tokenizer, learning rate and checkpoints are yours to add.\n";
  text += "ARGS=(\n" + a.text() + ")\n";
  text += "torchrun --nnodes " + std::to_string((devices + each - 1) / each) +
          " --nproc_per_node " + std::to_string(each) + " " +
          (bert ? "pretrain_bert.py" : "pretrain_gpt.py") + " \"${ARGS[@]}\" \"$@\"\n";
  return {text, e.left_out()};
}

}  // namespace interlock
