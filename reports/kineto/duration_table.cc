// Collects samples of ops, kernels and messages.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/duration_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/spread.h"
#include "reports/kineto/op_attribution.h"

namespace interlock {
namespace {

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

MeasuredPart& part_called(DurationTable& table, const std::string& name) {
  for (MeasuredPart& part : table.parts) {
    if (part.name == name) return part;
  }
  table.parts.push_back({name, {}});
  return table.parts.back();
}

/// Returns the name of the part that a phase of a whole file belongs to: its rank, or the file.
std::string whole_name(const DurationTable& table, const KinetoEvents& events) {
  return events.rank ? "rank " + std::to_string(*events.rank)
                     : "file " + std::to_string(table.files.size());
}

void add_sample(DurationTable& table, const std::string& part, const OpOccurrence& op,
                double share) {
  OpSamples& samples = part_called(table, part).phases[static_cast<std::size_t>(op.name.phase)];
  samples.busy.push_back(seconds(op.busy) * share);
  samples.spans.push_back(seconds(op.end - op.start) * share);
}

/// Returns the parts that a trace has ops of, as they first ran.
std::vector<std::string> parts_of(const std::vector<OpOccurrence>& ops, const std::string& whole) {
  std::vector<std::string> parts;
  for (const OpOccurrence& op : ops) {
    if (op.name.part.empty() && op.name.phase == Phase::Update) continue;
    const std::string& name = op.name.part.empty() ? whole : op.name.part;
    if (std::find(parts.begin(), parts.end(), name) == parts.end()) parts.push_back(name);
  }
  return parts;
}

/// Returns true if an op goes into the table. The update of a whole file without parts does not.
bool is_used(const OpOccurrence& op, const std::vector<std::string>& parts) {
  return !op.name.part.empty() || op.name.phase != Phase::Update || !parts.empty();
}

void add_ops(DurationTable& table, std::vector<OpOccurrence> ops,
             const std::vector<std::string>& parts, const std::string& whole) {
  std::stable_sort(ops.begin(), ops.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  for (const OpOccurrence& op : ops) {
    if (!is_used(op, parts)) continue;
    if (!op.name.part.empty()) {
      add_sample(table, op.name.part, op, 1);
    } else if (op.name.phase != Phase::Update) {
      add_sample(table, whole, op, 1);
    } else {  // an optimiser updates all that its process holds
      for (const std::string& part : parts) {
        add_sample(table, part, op, 1.0 / static_cast<double>(parts.size()));
      }
    }
  }
}

void add_message(DurationTable& table, const std::string& name, const DeviceActivity& event) {
  MessageSamples& samples = table.messages[name];
  ++samples.count;
  if (event.bytes) samples.bytes.push_back(*event.bytes);
}

/// "stage 12" as "stage " and 12.
std::optional<std::pair<std::string, long>> numbered(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789") + 1;  // 0 if all are digits
  if (end == name.size() || name.size() - end > 9) return std::nullopt;
  return std::pair(name.substr(0, end), std::stol(name.substr(end)));
}

}  // namespace

void add_trace(DurationTable& table, const KinetoEvents& events) {
  table.files.push_back(events.file);
  table.steps = std::max(table.steps, events.steps);
  table.without_time += events.without_time;
  table.duplicates += events.duplicates;
  const OpAttribution ops = attribute_ops(events);
  add_rank(table.pipeline, events, ops);
  const std::string whole = whole_name(table, events);
  const std::vector<std::string> parts = parts_of(ops.occurrences, whole);
  add_ops(table, ops.occurrences, parts, whole);
  for (std::size_t i = 0; i < events.device.size(); ++i) {
    const DeviceActivity& event = events.device[i];
    const std::string& name = events.names[event.name];
    const double duration = seconds(event.end - event.start);
    if (event.work == DeviceWork::Communication) {
      table.communication += Seconds(duration);
      add_message(table, name, event);
    } else if (event.work == DeviceWork::Copy) {
      table.copies += Seconds(duration);
      add_message(table, name, event);
    } else {
      const std::int32_t op = ops.occurrence_of[i];
      const bool used = op >= 0 && is_used(ops.occurrences[op], parts);
      (used ? table.in_ops : table.other_kernels) += Seconds(duration);
      KernelSamples& kernel = table.kernels[name];
      kernel.durations.push_back(duration);
      if (used) kernel.in_ops += duration;
    }
  }
}

void order_parts(DurationTable& table) {
  for (const MeasuredPart& part : table.parts) {
    const auto number = numbered(part.name), first = numbered(table.parts.front().name);
    if (!number || !first || number->first != first->first) return;
  }
  std::stable_sort(table.parts.begin(), table.parts.end(), [](const auto& a, const auto& b) {
    return numbered(a.name)->second < numbered(b.name)->second;
  });
}

ModuleTimes module_times(const MeasuredPart& part) {
  const auto median = [&](Phase phase) {
    const OpSamples& samples = part.phases[static_cast<std::size_t>(phase)];
    return samples.busy.empty() ? Seconds(0) : Seconds(spread_of(samples.busy).p50);
  };
  ModuleTimes times = {.forward = median(Phase::Forward),
                       .backward_input = median(Phase::BackwardInput),
                       .backward_weight = median(Phase::BackwardWeight),
                       .head = median(Phase::Head),
                       .update = median(Phase::Update)};
  const Seconds whole = median(Phase::Backward), none(0);
  times.halved = whole > none && times.backward_input == none && times.backward_weight == none;
  if (times.halved) times.backward_input = times.backward_weight = whole / 2;
  if (times.backward_weight == none) {
    times.backward_weight = std::max(none, whole - times.backward_input);
  }
  if (times.backward_input == none) {
    times.backward_input = std::max(none, whole - times.backward_weight);
  }
  return times;
}

}  // namespace interlock
