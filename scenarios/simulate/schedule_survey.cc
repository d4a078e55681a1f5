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

/// Returns the model, a layer a device: before attention, attention and behind it take 1 : 3 : 2 of
/// its time. The residual travels beside what attention reads and makes.
std::string parted_layers(int devices) {
  const auto module = [](const std::string& forward, int stash, int parameters) {
    return R"({"forward": ")" + forward + R"( ns", "backward_input": ")" + forward +
           R"( ns", "backward_weight": ")" + forward + R"( ns", "output": "200 B", "stash": ")" +
           std::to_string(stash) + R"( B", "parameters": ")" + std::to_string(parameters) +
           R"( B"})";
  };
  const std::string attention = module("500000", 2, 0);
  std::string modules = module("166667", 1, 4);
  for (int layer = 1; layer < devices; ++layer) {
    modules += ", " + attention + ", " + module("500000", 2, 8);
  }
  return modules + ", " + attention + ", " + module("333333", 1, 4);
}

std::string whole_modules(int devices) {
  return R"({"repeat": )" + std::to_string(kModules * devices) +
         R"(, "forward": "250 us", "backward_input": "250 us", "backward_weight": "250 us",
     "output": "100 B", "stash": "1 B", "parameters": "2 B"})";
}

}  // namespace

std::string survey_scenario(const ScheduleEntry& entry, const SurveySize& size) {
  // A device's share takes 1 ms forward.
  const double message = entry.layout == StageLayout::Ring ? kWeights * kModules : kOutput;
  const std::string bandwidth =
      size.transfer > 0 ? std::to_string(message / size.transfer / 1e3) + " MB/s" : "1000 PB/s";
  const bool says_slices = entry.slices && !entry.even_slices;  // which have a number by default
  const bool folds = entry.layout == StageLayout::Helix;        // for messages, which are free here
  const std::string more = says_slices ? R"("slices": 4)" : R"("folds": 1)";
  const std::string schedule = says_slices || folds
                                   ? R"({"kind": ")" + entry.name + "\", " + more + "}"
                                   : '"' + entry.name + '"';
  return R"({
  "model": {"kind": "profile", "modules": [
    )" +
         (entry.layout == StageLayout::Helix ? parted_layers(size.devices)
                                             : whole_modules(size.devices)) +
         R"(]},
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
                              .stages = entry.layout == StageLayout::Helix
                                            ? 2 * size.devices + 1
                                            : size.devices * entry.chunks,
                              .micro_batches = size.micro_batches,
                              .update_every = entry.updates_each ? 1 : size.micro_batches,
                              .folds = 1};
    if (entry.problem == nullptr || entry.problem(shape).empty()) {
      rows.push_back(measure_row(entry, size));
    }
  }
  return rows;
}

}  // namespace interlock
