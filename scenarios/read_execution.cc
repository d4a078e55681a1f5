// Reads training.schedule.execution, and refuses what phases with barriers cannot have.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/read_execution.h"

#include "base/text.h"

namespace interlock {

void read_execution(Section& section, SchedulePolicy& policy) {
  policy.bulk_synchronous = section.choice("execution", 0) == 1;
  if (!policy.bulk_synchronous) return;
  const JsonNode node = *section.get("execution");
  const ScheduleEntry& entry = schedule_entry(policy.kind);
  const auto refuse = [&](const std::string& message) {
    report(section.diagnostics(), node, message);
  };
  if (policy.kind == ScheduleKind::Auto || entry.replays) {
    refuse("phases are rows of a written order, and " + in_quotes(entry.name) +
           " has none; expected \"futures\"");
  }
  if (policy.queue.kind == QueuePolicy::Kind::Rendezvous || policy.copies_on_compute_stream) {
    refuse(
        "a phase takes its messages behind its ops; expected queues with room and overlapped "
        "copies, or \"futures\"");
  }
  if (policy.barrier) {
    refuse(
        "phases end in barriers of their own; expected \"optimizer_sync\": \"per_stage\", or "
        "\"futures\"");
  }
  if (policy.in_flight > 1 || policy.overlap > 0) {
    refuse(
        "a rank has one op in a phase; expected \"in_flight\" 1 and no \"overlap\", or "
        "\"futures\"");
  }
}

}  // namespace interlock
