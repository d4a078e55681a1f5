// Schedules of whose copies of the model one is updated, held to the rest of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/schedules/check_copies.h"

#include <algorithm>
#include <functional>

#include "base/text.h"

namespace interlock {

namespace {

using Refuse = std::function<void(const JsonNode& node, const std::string& problem)>;

/// Returns the member of `from` called `key`; `otherwise` if there is none.
JsonNode member_or(const JsonNode& from, std::string_view key, const JsonNode& otherwise) {
  const bool has = from.value->kind == JsonValue::Kind::Object && from.value->find(key) != nullptr;
  return has ? from.child(key) : otherwise;
}

/// Why a schedule has none of what others choose among.
struct Reasons {
  const char *backward, *queue, *copies, *execution, *offload;
};

/// Reports each of these that is asked for.
void refuse_parts(const Reasons& why, const Training& training, const TrainingKeys& keys,
                  const JsonNode& schedule, const Refuse& refuse) {
  const SchedulePolicy& policy = training.schedule;
  const auto check = [&](bool asked, const JsonNode& from, const char* key, const char* reason,
                         const char* expected) {
    if (asked)
      refuse(member_or(from, key, schedule), std::string(reason) + "; expected " + expected);
  };
  check(policy.split_backward, schedule, "backward", why.backward, "\"backward\" \"fused\"");
  check(policy.queue.kind != QueuePolicy::Kind::Unlimited, schedule, "queue", why.queue,
        "\"queue\" \"unlimited\"");
  check(policy.copies_on_compute_stream, schedule, "copies", why.copies,
        "\"copies\" \"overlapped\"");
  check(policy.bulk_synchronous, schedule, "execution", why.execution, "\"execution\" \"futures\"");
  check(training.offload.any(), keys.node, "offload", why.offload, "no \"offload\"");
}

/// Reports devices of a rank, and states that they would divide.
void check_division(const Layout& layout, const JsonNode& document, const JsonNode& schedule,
                    const Refuse& refuse) {
  const JsonNode parallel = member_or(document, "parallel", schedule);
  const auto check = [&](const char* key, int degree) {
    if (degree == 1) return;
    refuse(member_or(parallel, key, schedule),
           "sends whole chunks of the model to ranks of one device each; expected " +
               in_quotes(key) + " 1, and more ranks (parallel.pipeline), got " +
               std::to_string(degree));
  };
  check("tensor", layout.sharding.tensor);
  check("context", layout.mesh.degree(Dimension::Context));
  check("data", layout.mesh.degree(Dimension::Data));
  if (layout.data_parallel.zero_stage == 0) return;
  refuse(member_or(parallel, "zero_stage", schedule),
         "divides weights, gradients and states among its ranks itself; expected \"zero_stage\" 0, "
         "got " +
             std::to_string(layout.data_parallel.zero_stage));
}

}  // namespace

void check_ring(const Question& question, const TrainingKeys& keys, const Cluster* cluster,
                const JsonNode& document, Diagnostics& diagnostics) {
  const Training& training = question.training();
  const SchedulePolicy& policy = training.schedule;
  if (policy.kind->layout != StageLayout::Ring) return;
  const JsonNode schedule = keys.schedule.value_or(keys.node);
  const Refuse refuse = [&](const JsonNode& node, const std::string& problem) {
    report(diagnostics, node, in_quotes(policy.kind->name) + " " + problem);
  };
  check_division(question.layout, document, schedule, refuse);
  if (cluster != nullptr && is_mixed(*cluster)) {
    refuse(document.child("cluster"),
           "runs every chunk of the model on every rank; expected devices of one kind");
  }
  refuse_parts({.backward = "adds up gradients as weights pass by, once for each backward",
                .queue = "has two buffers for each flow of weights, and no queue",
                .copies = "sends weights beside the kernels that read them",
                .execution = "has turns of its own, in which weights pass",
                .offload = "has no room on hosts for what passes by"},
               training, keys, schedule, refuse);
}

namespace {

/// Reports a model whose odd stages have weights, which would have to lie on every rank.
void check_weights(const ModelGraph& graph, const JsonNode& node, const Refuse& refuse) {
  const std::string expected =
      "runs attention, which has no weights, between stages that have some; expected a decoder "
      "whose layers all attend, one addition after the other, or a profile of 3, 5, 7 or more "
      "modules of which each second one has no parameters, got ";
  const std::vector<int> stages = helix_stages(graph);
  if (stages.size() % 2 == 0 || stages.size() < 3) {
    return refuse(node, expected + std::to_string(stages.size()) + " modules");
  }
  std::size_t module = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Module& one = graph.modules[module];
    if (stage % 2 == 1 && one.parameters > 0) {
      return refuse(node, expected + std::to_string(one.parameters) + " parameters of module " +
                              std::to_string(module) +
                              (one.name.empty() ? "" : " (" + one.name + ")"));
    }
    module += static_cast<std::size_t>(stages[stage]);
  }
}

void check_helix_layout(const Question& question, const JsonNode& document,
                        const JsonNode& schedule, const Refuse& refuse) {
  const JsonNode parallel = member_or(document, "parallel", schedule);
  const DataParallel& data = question.layout.data_parallel;
  if (data.zero_stage >= 2) {
    refuse(member_or(parallel, "zero_stage", schedule),
           "adds up gradients of a stage over all micro-batches; expected \"zero_stage\" 0 or 1, "
           "got " +
               std::to_string(data.zero_stage));
  }
  if (data.gradient_reduction != GradientReduction::Step) {
    refuse(member_or(parallel, "gradient_reduction", schedule),
           "adds up gradients of a stage over all micro-batches; expected \"gradient_reduction\" "
           "\"step\"");
  }
  if (data.outer.any()) {
    refuse(member_or(parallel, "outer", schedule),
           "updates weights once a step; expected no \"outer\"");
  }
  if (!question.layout.layer_layouts.empty()) {
    refuse(member_or(parallel, "layer_layouts", schedule),
           "sends weights among devices that divide them alike; expected no \"layer_layouts\"");
  }
  if (question.layout.sharding.expert > 1) {
    refuse(member_or(parallel, "expert", schedule),
           "passes no tokens to experts; expected \"expert\" 1, got " +
               std::to_string(question.layout.sharding.expert));
  }
}

/// Returns whether the schedule sends weights to attention.
bool sends_weights(const JsonNode& schedule) {
  return parted_attention(schedule) == PartedAttention::WithProjections;
}

void check_helix_training(const Training& training, const TrainingKeys& keys,
                          const JsonNode& schedule, const Refuse& refuse) {
  refuse_parts({.backward = "goes back as it came",
                .queue = "has messages on their way while ranks compute",
                .copies = "sends one fold beside the kernels of the other",
                .execution = "has no rounds of one op a rank",
                .offload = "keeps what goes back soon"},
               training, keys, schedule, refuse);
  const JsonNode recompute = member_or(keys.node, "recompute", schedule);
  const bool latents = training.recompute == Recompute::Parts &&
                       training.recompute_parts.has(LayerPart::LatentProjections);
  if (training.recompute == Recompute::Alternate || latents || training.stage_recompute.any()) {
    refuse(recompute,
           "runs products and attention of a layer on ranks apart; expected \"recompute\" "
           "\"none\", \"selective\", \"full\", or modules other than \"mla_up_proj\"");
  }
  if (training.adapters.rank > 0 && sends_weights(schedule)) {
    refuse(member_or(keys.node, "lora", schedule),
           "would send frozen weights, and gradients that they have not; expected "
           "\"transfer_weights\" false beside it");
  }
  if (training.frozen_modules > 0) {
    refuse(member_or(keys.node, "frozen_modules", schedule),
           "cuts layers into modules of its own; expected no \"frozen_modules\"");
  }
}

}  // namespace

PartedAttention parted_attention(const std::optional<JsonNode>& schedule) {
  if (!schedule) return PartedAttention::None;
  const JsonNode kind = member_or(*schedule, "kind", *schedule);
  const bool text = kind.value->kind == JsonValue::Kind::String;
  const ScheduleEntry* const entry = text ? find_schedule(kind.value->text) : nullptr;
  if (entry == nullptr || entry->layout != StageLayout::Helix) return PartedAttention::None;
  const JsonNode sends = member_or(*schedule, "transfer_weights", *schedule);
  const bool stay = sends.value->kind == JsonValue::Kind::Boolean && !sends.value->boolean;
  return stay ? PartedAttention::Alone : PartedAttention::WithProjections;
}

std::vector<int> helix_stages(const ModelGraph& graph) {
  bool parts = false;
  for (const Module& module : graph.modules) parts = parts || module.attends;
  if (!parts) return std::vector<int>(graph.modules.size(), 1);
  std::vector<int> stages = {0};
  for (const Module& module : graph.modules) {
    if (module.attends) {
      stages.insert(stages.end(), {1, 0});
    } else {
      ++stages.back();
    }
  }
  return stages;
}

std::vector<int> helix_ranks(int ranks, int stages) {
  std::vector<int> of_stage;
  of_stage.reserve(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage) of_stage.push_back((stage + 1) / 2 % ranks);
  return of_stage;
}

void check_helix(const Question& question, const TrainingKeys& keys, const ModelGraph* graph,
                 const JsonNode& document, Diagnostics& diagnostics) {
  const Training& training = question.training();
  if (training.schedule.kind->layout != StageLayout::Helix) return;
  const JsonNode schedule = keys.schedule.value_or(keys.node);
  const Refuse refuse = [&](const JsonNode& node, const std::string& problem) {
    report(diagnostics, node, "\"helixpipe\" " + problem);
  };
  if (graph != nullptr) {
    check_weights(*graph, member_or(document, "model", schedule), refuse);
    const JsonNode sends = member_or(schedule, "transfer_weights", schedule);
    const auto attends = [](const Module& module) { return module.attends; };
    if (!(sends == schedule) && std::ranges::none_of(graph->modules, attends)) {
      refuse(sends, "finds in a profile what travels; expected no \"transfer_weights\"");
    }
  }
  check_helix_layout(question, document, schedule, refuse);
  check_helix_training(training, keys, schedule, refuse);
  if (document.value->find("partition") != nullptr) {
    refuse(document.child("partition"), "cuts the model around attention; expected no partition");
  }
}

}  // namespace interlock
