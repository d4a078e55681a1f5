// Exported plan: what every program but ours lacks.
// SPDX-License-Identifier: Apache-2.0
#include "reports/exports/exported_plan.h"

#include <algorithm>
#include <cmath>

#include "models/model_file.h"
#include "reports/exports/exports.h"

namespace interlock {

ExportedPlan::ExportedPlan(const Plan& plan, std::string program)
    : plan_(&plan), program_(std::move(program)) {
  if (question().trace()) {
    refuse("/workload", "a recorded run has no plan; expected a model and its training");
    return;
  }
  read_model();
  check_plan();
  check_schedule();
  for (const char* key : {"variation", "run", "goal", "swarm", "quality", "search"}) {
    if (question().document->find(key)) {
      leave_out(std::string("/") + key, "says nothing to " + program_);
    }
  }
  const std::string framework = question().training().framework.name;
  if (!framework.empty()) {
    leave_out("/training/framework",
              "is not written; import it again with --framework " + framework);
  }
}

void ExportedPlan::refuse(const std::string& path, const std::string& message) {
  refused_.add(question().file, 0, path, program_ + " " + message);
}

void ExportedPlan::leave_out(const std::string& path, const std::string& why) {
  left_out_.push_back(path + ": " + why);
}

void ExportedPlan::read_model() {
  const JsonValue& model = question().training().model_text->model;
  Diagnostics diagnostics;
  const auto found = find_model({&model, "/model"}, diagnostics);
  diagnostics.throw_if_any();
  const std::string kind = ObjectReader(found->node, diagnostics).text("kind", "transformer");
  if (kind != "transformer") {
    refuse("/model", "trains transformers; expected one, got a model of kind " + kind);
    return;
  }
  Section reader(transformer_contract().front(), found->node, diagnostics);
  shape_ = read_transformer(reader);
  diagnostics.throw_if_any();
  const JsonValue* base = model.kind == JsonValue::Kind::Object ? model.find("base") : &model;
  const bool changed = std::ranges::any_of(model.members, [](const auto& member) {
    return member.first != "base" && member.first != "sequence_length";
  });
  const std::vector<std::string> zoo = zoo_names();
  if (!changed && holds_text(base) && std::ranges::find(zoo, base->text) != zoo.end()) {
    zoo_name_ = base->text;
  }
}

void ExportedPlan::check_plan() {
  const Question& q = question();
  refuse_if(q.training().strategy.kind != StrategyKind::Global, "/training/strategy",
            "trains by one loss at the end; expected global");
  const Layout& layout = q.layout;
  refuse_if(!layout.rank_layouts.empty(), "/parallel/stage_layouts", "lays all stages out alike");
  refuse_if(!layout.layer_layouts.empty(), "/parallel/layer_layouts", "lays all layers out alike");
  refuse_if(!plan().sized_batches.empty(), "/training/micro_batch_size",
            "has micro-batches of one size");
  refuse_if(!plan().slices.empty(), "/training/schedule/slices", "does not cut sequences");
  refuse_if(layout.sharding.tensor_layout != TensorLayout::OneD, "/parallel/tensor_layout",
            "divides tensors in one dimension; expected 1d");
  refuse_if(layout.data_parallel.gradient_density < 1, "/parallel/gradient_density",
            "exchanges all gradients; expected 1");
  refuse_if(layout.data_parallel.outer.any(), "/parallel/outer",
            "reduces gradients in every step; expected none");
  const Optimizer optimizer = q.training().optimizer.kind;
  const bool usual = optimizer == Optimizer::Sgd || optimizer == Optimizer::SgdMomentum ||
                     optimizer == Optimizer::Adam;
  OptimizerRule rule = optimizer;
  refuse_if(q.training().optimizer.weights.has_value(), "/training/weights",
            "stores weights in the training's format; expected training");
  rule.weights = q.training().optimizer.weights;
  rule.weight_copies = q.training().optimizer.weight_copies;
  refuse_if(!usual || q.training().optimizer != rule, "/training/optimizer",
            "is told of it in its own words; expected adam, adamw, sgd-momentum or sgd");
  const JsonValue* training = q.document->find("training");
  for (const char* key : {"lora", "frozen_modules"}) {
    refuse_if(training && training->find(key), std::string("/training/") + key,
              "is told in Python what is not trained");
  }
  if (q.training().framework.blocking_launches) {
    leave_out("/training/blocking_launches", "is for CUDA_LAUNCH_BLOCKING=1 to say");
  }
  refuse_if(q.training().narrow_activations, "/training/activation_inputs",
            "has no argument for what activations keep, which is told in Python "
            "(activation_func_fp8_input_store of Megatron-Core); expected training");
  refuse_if(plan().copies > 1, "/training/schedule", "keeps one copy of the model");
  refuse_if(q.training().precision == Precision::Tf32, "/training/precision",
            "is told tf32 by PyTorch; expected bf16, fp16, fp32, fp8 or fp4");
  check_placement();
  check_tokens();
}

/// Checks where stages lie, unless the schedule lays them: then the schedule is what a program has
/// or lacks.
void ExportedPlan::check_placement() {
  const SchedulePolicy& schedule = plan().schedule;
  const bool laid =
      has_v(schedule.kind->layout) || plan().copies > 1 || !schedule.placement.empty();
  const std::vector<int>& ranks = plan().rank_of_stage;
  bool loops = true;
  for (std::size_t s = 0; s < ranks.size(); ++s) {
    loops = loops && ranks[s] == static_cast<int>(s) % question().layout.ranks();
  }
  refuse_if(!laid && !loops, "/parallel/placement", "lays stages in loops; expected \"loop\"");
}

void ExportedPlan::leave_out_kernels() {
  const JsonValue* training = question().document->find("training");
  const JsonValue* graphs = training ? training->find("cuda_graphs") : nullptr;
  if (graphs != nullptr && graphs->text != "none") {
    leave_out("/training/cuda_graphs", "what runs as graphs is for its own settings to say");
  }
  if (question().training().framework.fused_routing != FusedRouting{}) {
    leave_out("/training/fused_routing", "what is fused of routing is for its own settings to say");
  }
  const JsonValue* model = question().document->find("model");
  for (const char* key : {"clamped_mlp", "scaled_rotation"}) {
    const JsonValue* said = model != nullptr ? model->find(key) : nullptr;
    if (said != nullptr && said->boolean) {
      leave_out(std::string("/model/") + key, "is for its own settings of the model to say");
    }
  }
}

/// Checks the load of experts and the formats of tokens, which no program is told.
void ExportedPlan::check_tokens() {
  const Sharding& s = question().layout.sharding;
  if (s.expert_imbalance > 1 || s.expert_loads > 0) {
    leave_out(s.expert_loads > 0 ? "/parallel/expert_load" : "/parallel/expert_imbalance",
              "the router decides it");
  }
  for (const auto& [key, format] :
       {std::pair("dispatch", s.dispatch_format), std::pair("combine", s.combine_format)}) {
    refuse_if(format != TokenFormat::Training, "/parallel/" + std::string(key) + "_format",
              "sends tokens in the training's format; expected training");
  }
  const JsonValue* parallel = question().document->find("parallel");
  if (parallel && parallel->find("dispatch_sms")) {
    leave_out("/parallel/dispatch_sms", "its library decides it");
  }
}

void ExportedPlan::refuse_megatron_ways(bool pairs) {
  const Sharding& s = question().layout.sharding;
  const bool paired = pairs && s.expert_overlap == ExpertOverlap::MicroBatches;
  refuse_if(s.expert_dispatch != ExpertDispatch::AllToAll, "/parallel/expert_dispatch",
            "is told of it in Python; expected all_to_all");
  refuse_if(s.expert_overlap != ExpertOverlap::None && !paired, "/parallel/expert_overlap",
            pairs ? "lets tokens travel beside another micro-batch alone; expected none or "
                    "micro_batches"
                  : "waits for tokens; expected none");
  refuse_if(plan().schedule.delays_weights, "/parallel/delay_weight_gradients",
            "makes weight gradients in their backward; expected false");
  refuse_if(plan().schedule.deferred_readout > 0, "/training/schedule/deferred_readout",
            "makes all weight gradients in their backward; expected none");
}

void ExportedPlan::check_schedule() {
  const SchedulePolicy& s = plan().schedule;
  refuse_if(s.in_flight > 1 || s.update_every != plan().micro_batches, "/training/schedule",
            "updates once, at the end of a step");
  refuse_if(!plan().replica_micro_batches.empty(), "/training/replica_micro_batches",
            "gives every replica as many micro-batches; expected \"equal\"");
  refuse_if(s.split_backward != s.kind->split_backward, "/training/schedule/backward",
            "divides backwards as the schedule does");
  refuse_if(s.vocabulary != VocabularySplit::Whole, "/training/schedule/vocabulary",
            "holds the readout on the last pipeline rank; expected \"whole\"");
  refuse_if(s.messages.lines != MessageOrder::Lines::Free, "/training/schedule/message_order",
            "has an order of messages of its own; expected \"free\"");
  refuse_if(s.recomputes_early, "/training/schedule/early_recompute",
            "computes again when the gradient has come; expected false");
  refuse_if(s.barrier || s.bulk_synchronous || s.copies_on_compute_stream || s.overlap > 0 ||
                s.queue.kind != QueuePolicy::Kind::Unlimited,
            "/training/schedule", "has no queue, barrier, copies or overlap of its own");
}

int ExportedPlan::micro_batch_size() const {
  return static_cast<int>(
      std::lround(question().training().graph.samples_per_micro_batch.value_or(1)));
}

int ExportedPlan::global_batch_size() const {
  return micro_batch_size() * plan().micro_batches * degree(Dimension::Data);
}

std::string ExportedPlan::training_text(const char* key) const {
  const JsonValue* training = question().document->find("training");
  const JsonValue* value = training ? training->find(key) : nullptr;
  return holds_text(value) ? value->text : "";
}

std::optional<int> ExportedPlan::recomputed_layers() const {
  const JsonValue* training = question().document->find("training");
  const JsonValue* recompute = training ? training->find("recompute") : nullptr;
  const JsonValue* layers = recompute && recompute->kind == JsonValue::Kind::Object
                                ? recompute->find("full_layers")
                                : nullptr;
  return layers ? std::optional(static_cast<int>(layers->number)) : std::nullopt;
}

ExportedFile exported(const std::string& program, const Plan& plan) {
  if (program == "torchtitan") return titan_export(plan);
  if (program == "deepspeed") return deepspeed_export(plan);
  return megatron_export(plan);
}

}  // namespace interlock
