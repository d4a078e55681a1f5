// Schedules whose weights go round a ring of ranks, held to the rest of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/schedules/check_ring.h"

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
  if (policy.split_backward) {
    refuse(member_or(schedule, "backward", schedule),
           "adds up gradients as weights pass by, once for each backward; expected \"backward\" "
           "\"fused\"");
  }
  if (policy.queue.kind != QueuePolicy::Kind::Unlimited) {
    refuse(
        member_or(schedule, "queue", schedule),
        "has two buffers for each flow of weights, and no queue; expected \"queue\" \"unlimited\"");
  }
  if (policy.copies_on_compute_stream) {
    refuse(member_or(schedule, "copies", schedule),
           "sends weights beside the kernels that read them; expected \"copies\" \"overlapped\"");
  }
  if (policy.bulk_synchronous) {
    refuse(member_or(schedule, "execution", schedule),
           "has turns of its own, in which weights pass; expected \"execution\" \"futures\"");
  }
  if (training.offload.any()) {
    refuse(member_or(keys.node, "offload", schedule),
           "has no room on hosts for what passes by; expected no \"offload\"");
  }
}

}  // namespace interlock
