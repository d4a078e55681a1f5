// DeepSpeed export: a plan as a JSON of DeepSpeed.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "reports/exports/exported_plan.h"
#include "reports/exports/exports.h"

namespace interlock {
namespace {

void check_deepspeed(ExportedPlan& e) {
  const Question& q = e.question();
  e.refuse_megatron_ways();
  e.leave_out_kernels();
  const Layout& layout = q.layout;
  const std::string schedule = e.plan().schedule.kind->name;
  e.refuse_if(layout.ranks() > 1, "/parallel/pipeline", "has pipelines in Python only; expected 1");
  e.refuse_if(schedule != "1f1b" && schedule != "naive", "/training/schedule",
              "has no schedule " + schedule + "; expected 1f1b");
  const bool ring = layout.sharding.ring_devices() > 1;
  e.refuse_if(ring, "/parallel/context_layout", "turns sequences into heads; expected all_to_all");
  e.refuse_if(layout.sharding.sequence_parallel, "/parallel/sequence_parallel",
              "divides tensors alone; expected false");
  e.refuse_if(layout.mesh.expert > 1, "/parallel/expert",
              "is told of experts in Python; expected 1");
  e.refuse_if(layout.mesh.order != Mesh().order, "/parallel/order", "has one order of ranks");
  e.refuse_if(layout.mesh.shard != layout.mesh.replicas() && layout.data_parallel.zero_stage > 0,
              "/parallel/shard", "shares states among all replicas");
  e.refuse_if(layout.data_parallel.zero_stage >= 2 &&
                  layout.data_parallel.gradient_reduction == GradientReduction::Step,
              "/parallel/gradient_reduction",
              "reduces after every micro-batch under ZeRO 2 and 3; expected micro_batch");
  e.refuse_if(layout.data_parallel.zero_stage < 2 &&
                  layout.data_parallel.gradient_reduction == GradientReduction::MicroBatch,
              "/parallel/gradient_reduction", "reduces once a step below ZeRO 2; expected step");
  const Training& training = q.training();
  e.refuse_if(training.wide_layers != WideLayers(), "/training/bf16_layers",
              "has one precision for all layers");
  e.refuse_if(product_format(training.precision).has_value(), "/training/precision",
              "is told of 8 and 4 bits in Python; expected bf16, fp16 or fp32");
  e.refuse_if(training.offload.activations > 0, "/training/offload/activations",
              "offloads the checkpoints of layers, not a share of the stash");
  e.refuse_if(training.optimizer == Optimizer::Sgd, "/training/optimizer",
              "has momentum in its SGD; expected sgd-momentum, adam or adamw");
  if (training.recompute != Recompute::None || e.recomputed_layers()) {
    e.leave_out("/training/recompute",
                "the model's code switches it on, e.g. "
                "gradient_checkpointing_enable()");
  }
  const DataParallel plain;
  if (layout.data_parallel.zero_stage == 0 && layout.data_parallel.bucket != plain.bucket) {
    e.leave_out("/parallel/bucket", "without ZeRO it is PyTorch's");
  }
  if (layout.data_parallel.prefetch != plain.prefetch) {
    e.leave_out("/parallel/prefetch", "DeepSpeed decides it");
  }
  if (layout.data_parallel.overlap_weights) {
    e.leave_out("/parallel/overlap_weights", "DeepSpeed decides it");
  }
  e.leave_out("/model", "DeepSpeed is given it in Python; import it again with --model");
}

}  // namespace

ExportedFile deepspeed_export(const Plan& plan) {
  ExportedPlan e(plan, "DeepSpeed");
  e.throw_if_refused();
  check_deepspeed(e);
  e.throw_if_refused();
  const Question& q = e.question();
  nlohmann::ordered_json file = {{"train_batch_size", e.global_batch_size()},
                                 {"train_micro_batch_size_per_gpu", e.micro_batch_size()},
                                 {"gradient_accumulation_steps", plan.micro_batches}};
  const Training& training = q.training();
  const bool adam = training.optimizer == Optimizer::Adam;
  file["optimizer"] = {{"type", adam ? "AdamW" : "SGD"}};
  if (training.precision == Precision::Bf16) file["bf16"] = {{"enabled", true}};
  if (training.precision == Precision::Fp16) file["fp16"] = {{"enabled", true}};
  if (e.degree(Dimension::Tensor) > 1) {
    file["tensor_parallel"] = {{"autotp_size", e.degree(Dimension::Tensor)}};
  }
  if (e.degree(Dimension::Context) > 1) {
    file["sequence_parallel_size"] = e.degree(Dimension::Context);
  }
  const DataParallel& d = q.layout.data_parallel;
  nlohmann::ordered_json zero = {{"stage", d.zero_stage}, {"overlap_comm", d.overlap_gradients}};
  if (const auto bucket = d.gradient_bucket(); d.zero_stage > 0 && bucket) {
    zero["reduce_bucket_size"] = static_cast<long long>(bucket->value() / 2);
  }
  if (training.offload.optimizer > 0) {
    zero["offload_optimizer"] = {{"device", "cpu"}, {"ratio", training.offload.optimizer}};
  }
  file["zero_optimization"] = zero;
  return {file.dump(2) + "\n", e.left_out()};
}

}  // namespace interlock
