// Titan export: a plan as a TOML of torchtitan.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "reports/exports/exported_plan.h"
#include "reports/exports/exports.h"
#include "reports/imports/titan_scenario.h"

namespace interlock {
namespace {

std::string titan_model_section(ExportedPlan& e) {
  for (const TitanModel& known : kTitanModels) {
    if (e.zoo_name() != known.ours) continue;
    return std::string("[model]\nname = \"") + known.name + "\"\nflavor = \"" + known.flavor +
           "\"\n" +
           (e.question().training().precision == Precision::Fp8 ? "converters = [\"float8\"]\n"
                                                                : "");
  }
  std::string names;
  for (const TitanModel& known : kTitanModels) {
    names += (names.empty() ? "" : ", ") + std::string(known.ours);
  }
  e.refuse("/model", "has no flavour of it; expected one of " + names +
                         ", with no other key than sequence_length");
  return "";
}

/// Weights that stay gathered between forward and backward are ZeRO 2.
std::string titan_sharding(ExportedPlan& e) {
  const Question& q = e.question();
  const int context = e.degree(Dimension::Context), stage = q.layout.data_parallel.zero_stage;
  e.refuse_if(stage == 1 || (stage == 0 && context > 1), "/parallel/zero_stage",
              "shards gradients and weights; expected 2 or 3, or 0 without context");
  e.refuse_if(stage > 0 && q.layout.mesh.shard % context != 0, "/parallel/shard",
              "shards over all context ranks");
  const int shard = stage == 0 ? 1 : q.layout.mesh.shard / context;
  return "data_parallel_replicate_degree = " +
         std::to_string(e.degree(Dimension::Data) / std::max(shard, 1)) +
         "\ndata_parallel_shard_degree = " + std::to_string(shard) +
         "\nfsdp_reshard_after_forward = \"" + (stage == 3 ? "always" : "never") + "\"\n";
}

std::string titan_pipeline(ExportedPlan& e) {
  const int ranks = e.question().layout.ranks(), stages = e.plan().partition.stages();
  if (ranks == 1) {
    const std::string kind = e.plan().schedule.kind->name;
    e.refuse_if(kind != "1f1b" && kind != "naive", "/training/schedule",
                "has no schedule without a pipeline; expected 1f1b");
    return "";
  }
  const std::string ours = e.plan().schedule.kind->name;
  std::string theirs;
  for (const TitanSchedule& one : kTitanSchedules) {
    if (ours == one.ours) theirs = one.theirs;
  }
  e.refuse_if(theirs.empty(), "/training/schedule", "has no schedule " + ours);
  const Partition uniform = uniform_partition(e.plan().partition.boundaries.back(), stages);
  e.refuse_if(uniform.boundaries != e.plan().partition.boundaries, "/partition",
              "divides modules evenly; expected uniform");
  const int chunks = stages / ranks, all = e.plan().micro_batches;
  const int theirs_round = all / titan_rounds(all, ranks), said = e.plan().schedule.round;
  e.refuse_if(
      chunks > 1 && e.plan().schedule.kind->rounds && (said > 0 ? said : ranks) != theirs_round,
      "/training/schedule/round",
      "takes rounds of " + std::to_string(theirs_round) + " micro-batches here");
  // Said by the layers of a stage, if these make as many stages; two stages a rank go without.
  const int modules = static_cast<int>(e.shape().layers.size()) + 2;
  const int each = (modules + stages - 1) / stages;
  const bool says = (modules + each - 1) / each == stages;
  const bool usual = chunks == (ours == "1f1b" || ours == "gpipe" ? 1 : 2);
  e.refuse_if(!says && !usual, "/parallel/stages",
              "counts layers of a stage, of which none make " + std::to_string(stages) +
                  " stages of " + std::to_string(modules) + " modules");
  const Layout& layout = e.question().layout;
  const bool waits =
      layout.mesh.expert > 1 && layout.sharding.expert_overlap == ExpertOverlap::None;
  return "pipeline_parallel_degree = " + std::to_string(ranks) +
         "\npipeline_parallel_schedule = \"" + theirs + "\"" +
         (says ? "\npipeline_parallel_layers_per_stage = " + std::to_string(each) : "") +
         "\npipeline_parallel_microbatch_size = " + std::to_string(e.micro_batch_size()) +
         (ours == "dualpipe-v" && waits ? "\npipeline_parallel_expert_parallel_overlap = false"
                                        : "") +
         "\n";
}

/// Says that of `layers` layers one in N is computed again, as many as the plan's `again`.
std::string titan_layers_again(ExportedPlan& e, int layers, int again) {
  const int each = again > 0 ? layers / again : layers + 1;
  if (layers / each != again) {
    e.refuse("/training/recompute",
             "computes one layer in N again, of " + std::to_string(layers) + " layers " +
                 std::to_string(layers / (each + 1)) + " or " + std::to_string(layers / each) +
                 "; expected full_layers of one of these, none, alternate or full");
  }
  if (each > 1 && again > 0) {
    e.leave_out("/training/recompute", "one layer in " + std::to_string(each) +
                                           " is computed again, not the first " +
                                           std::to_string(again));
  }
  return "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"" +
         std::to_string(each) + "\"\n";
}

std::string titan_recompute(ExportedPlan& e) {
  const Training& training = e.question().training();
  const Recompute recompute = training.recompute;
  e.refuse_if(training.stage_recompute.any() || recompute == Recompute::Parts,
              "/training/recompute",
              "has no choice of parts or of layers of a stage; expected none, alternate, full or "
              "full_layers");
  if (const std::optional<int> again = e.recomputed_layers()) {
    return titan_layers_again(e, static_cast<int>(e.shape().layers.size()), *again);
  }
  const std::vector<Module>& modules = training.graph.modules;
  const bool again = std::any_of(modules.begin(), modules.end(),
                                 [](const Module& module) { return !module.recompute.empty(); });
  e.refuse_if(recompute == Recompute::Selective && again, "/training/recompute",
              "has no choice of attention alone; expected none, alternate or full");
  if (recompute == Recompute::Alternate) {
    return "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n";
  }
  return std::string("[activation_checkpoint]\nmode = \"") +
         (recompute == Recompute::Full ? "full" : "none") + "\"\n";
}

void check_titan(ExportedPlan& e) {
  const Question& q = e.question();
  e.refuse_megatron_ways(e.plan().schedule.kind->name == std::string("dualpipe-v"));
  e.leave_out_kernels();
  const Layout& layout = q.layout;
  e.refuse_if(e.degree(Dimension::Tensor) > 1 && !layout.sharding.sequence_parallel,
              "/parallel/sequence_parallel", "divides sequences with tensors; expected true");
  e.refuse_if(layout.sharding.turning_devices() > 1, "/parallel/context_layout",
              "sends keys and values round; expected ring");
  e.refuse_if(layout.mesh.order != Mesh().order, "/parallel/order", "has one order of ranks");
  const Training& training = q.training();
  e.refuse_if(training.optimizer != Optimizer::Adam, "/training/optimizer", "has adam and adamw");
  e.refuse_if(training.wide_layers != WideLayers(), "/training/bf16_layers",
              "has one precision for all layers");
  e.refuse_if(training.precision == Precision::Fp16 || training.precision == Precision::Fp4,
              "/training/precision", "trains in bf16, fp32 or fp8");
  e.refuse_if(training.offload.any(), "/training/offload",
              "offloads all or nothing; expected none");
  const DataParallel plain;
  const DataParallel& d = layout.data_parallel;
  e.refuse_if(!d.overlap_gradients, "/parallel/overlap_gradients", "exchanges beside backwards");
  if (d.bucket != plain.bucket) e.leave_out("/parallel/bucket", "torchtitan decides it");
  if (d.gradient_reduction != plain.gradient_reduction) {
    e.leave_out("/parallel/gradient_reduction", "torchtitan decides it");
  }
  if (d.overlap_weights) e.leave_out("/parallel/overlap_weights", "torchtitan decides it");
  if (d.prefetch != plain.prefetch) e.leave_out("/parallel/prefetch", "torchtitan decides it");
}

}  // namespace

ExportedFile titan_export(const Plan& plan) {
  ExportedPlan e(plan, "torchtitan");
  e.throw_if_refused();
  check_titan(e);
  const Layout& layout = e.question().layout;
  const bool pipeline = layout.ranks() > 1;
  const int local = e.global_batch_size() / e.degree(Dimension::Data);
  std::string text = "# Made by interlock export of " + plan.question.name +
                     ". Data, learning rate and checkpoints are yours to add.\n";
  text += titan_model_section(e) + "\n[optimizer]\nname = \"AdamW\"\n";
  text += "\n[training]\nlocal_batch_size = " +
          std::to_string(pipeline ? local : e.micro_batch_size()) +
          "\nglobal_batch_size = " + std::to_string(e.global_batch_size()) +
          "\nseq_len = " + std::to_string(e.shape().stream.sequence_length) + "\n";
  if (e.question().training().precision == Precision::Fp32) {
    text += "mixed_precision_param = \"float32\"\n";
  }
  text += "\n[parallelism]\n" + titan_sharding(e);
  text += "tensor_parallel_degree = " + std::to_string(e.degree(Dimension::Tensor)) +
          "\ncontext_parallel_degree = " + std::to_string(e.degree(Dimension::Context)) + "\n";
  if (e.degree(Dimension::Context) > 1) {
    text += "context_parallel_rotate_method = \"alltoall\"\n";
  }
  if (layout.mesh.expert > 1) {
    text += "expert_parallel_degree = " + std::to_string(layout.mesh.expert) +
            "\nexpert_tensor_parallel_degree = " + std::to_string(layout.mesh.tensor_of_experts()) +
            "\n";
  }
  text += titan_pipeline(e) + "\n" + titan_recompute(e);
  e.throw_if_refused();
  return {text, e.left_out()};
}

}  // namespace interlock
