// Runs the same small model under every schedule.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/schedule_survey.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {
namespace {

// A device's share is cut into modules, so that schedules can lay several stages on it. Messages
// are so small, and links so fast, that transfers round to nothing.
constexpr int kModules = 4;                                // of a device's share
constexpr double kStash = 1, kWeights = 2, kOutput = 100;  // bytes of a module

double of_class(const DeviceMetrics& device, MemoryClass memory_class) {
  return device.memory[static_cast<std::size_t>(memory_class)].value();
}

SurveyRow measure_row(const ScheduleEntry& entry, const SurveySize& size) {
  const std::string text = survey_scenario(entry, size);
  const std::vector<Question> scenarios = load_questions(parse_json(text, entry.name));
  const Metrics metrics = run_scenario(scenarios.front(), false).measurement.metrics;
  SurveyRow row{.entry = &entry, .bubble = 1 - metrics.busy};
  const double kept = entry.stash == StashMode::Kept ? kStash * kModules : kOutput;
  for (const DeviceMetrics& device : metrics.devices) {
    row.stash = std::max(row.stash, device.peak_stash.value() / kept);
    row.weight_copies +=
        of_class(device, MemoryClass::Weights) + of_class(device, MemoryClass::WeightVersions);
  }
  row.weight_copies /= kWeights * kModules * size.devices;
  for (const LinkMetrics& link : metrics.links) row.traffic += link.bytes.value();
  return row;
}

}  // namespace

std::string survey_scenario(const ScheduleEntry& entry, const SurveySize& size) {
  // A device's share takes 1 ms forward.
  const double message = entry.layout == StageLayout::Ring ? kWeights * kModules : kOutput;
  const std::string bandwidth =
      size.transfer > 0 ? std::to_string(message / size.transfer / 1e3) + " MB/s" : "1000 PB/s";
  const bool says_slices = entry.slices && !entry.even_slices;  // which have a number by default
  const std::string schedule =
      says_slices ? R"({"kind": ")" + entry.name + R"(", "slices": 4})" : '"' + entry.name + '"';
  return R"({
  "model": {"kind": "profile", "modules": [
    {"repeat": )" +
         std::to_string(kModules * size.devices) +
         R"(, "forward": "250 us", "backward_input": "250 us", "backward_weight": "250 us",
     "output": "100 B", "stash": "1 B", "parameters": "2 B"}]},
  "cluster": {"kind": "uniform", "devices": )" +
         std::to_string(size.devices) + R"(, "memory": "80 GiB", "link": {"bandwidth": ")" +
         bandwidth + R"("}},
  "training": {"strategy": ")" +
         (entry.global() ? "global" : "local") + R"(", "schedule": )" + schedule +
         R"(, "micro_batches": )" + std::to_string(size.micro_batches) + R"(, "steps": 4}
})";
}

std::vector<SurveyRow> survey_schedules(const SurveySize& size) {
  std::vector<SurveyRow> rows;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (entry.order != OrderSource::Function) continue;
    const ScheduleShape shape{.ranks = size.devices,
                              .stages = size.devices * entry.chunks,
                              .micro_batches = size.micro_batches,
                              .update_every = entry.updates_each ? 1 : size.micro_batches};
    if (entry.problem == nullptr || entry.problem(shape).empty()) {
      rows.push_back(measure_row(entry, size));
    }
  }
  return rows;
}

}  // namespace interlock
