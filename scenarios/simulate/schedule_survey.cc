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
constexpr double kWidth = 4096;                            // of layers, two a device

double of_class(const DeviceMetrics& device, MemoryClass memory_class) {
  return device.memory[static_cast<std::size_t>(memory_class)].value();
}

/// Returns the most stash of any device.
double most_stash(const Metrics& metrics) {
  double most = 0;
  for (const DeviceMetrics& device : metrics.devices) {
    most = std::max(most, device.peak_stash.value());
  }
  return most;
}

double weights_on_all(const Metrics& metrics) {
  double sum = 0;
  for (const DeviceMetrics& device : metrics.devices) {
    sum += of_class(device, MemoryClass::Weights) + of_class(device, MemoryClass::WeightVersions);
  }
  return sum;
}

/// Returns the bytes of a step on links between devices.
double bytes_between(const Metrics& metrics) {
  double sum = 0;
  for (const LinkMetrics& link : metrics.links) {
    if (!link.name.ends_with(" host")) sum += link.bytes.value();
  }
  return sum;
}

Metrics metrics_of(const std::string& text, const std::string& name) {
  const std::vector<Question> scenarios = load_questions(parse_json(text, name));
  return run_scenario(scenarios.front(), false).measurement.metrics;
}

SurveyRow measure_row(const ScheduleEntry& entry, const SurveySize& size) {
  const Metrics metrics = metrics_of(survey_scenario(entry, size), entry.name);
  const double kept = entry.stash == StashMode::Kept ? kStash * kModules : kOutput;
  return {.entry = &entry,
          .bubble = 1 - metrics.busy,
          .stash = most_stash(metrics) / kept,
          .traffic = bytes_between(metrics),
          .weight_copies = weights_on_all(metrics) / (kWeights * kModules * size.devices)};
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

const std::vector<SurveyOption>& survey_options() {
  using namespace formulas;
  using Shape = PipelineShape;
  // In 1F1B, two reductions between a forward and its backward take two micro-batches more, one
  // takes one (arXiv 2411.05288); in V-half as many passes, beside 6m of work. What is computed
  // again early fills the bubble of training without (Mario). Of what `pipeoffload` keeps, either
  // the first of both stages leaves, but for the one at work, or both do (arXiv 2503.01328).
  static const std::vector<SurveyOption> all = {
      {"1f1b",
       "vocab-1",
       R"("schedule": {"kind": "1f1b", "vocabulary": "vocab-1"})",
       "Vocabulary Parallelism, arXiv 2411.05288",
       true,
       false,
       kFlush,
       {"min(p + 2, m)",
        [](const Shape& s) -> double { return std::min(s.devices + 2, s.micro_batches); }}},
      {"1f1b",
       "vocab-2",
       R"("schedule": {"kind": "1f1b", "vocabulary": "vocab-2"})",
       "Vocabulary Parallelism, arXiv 2411.05288",
       true,
       false,
       kFlush,
       {"min(p + 1, m)",
        [](const Shape& s) -> double { return std::min(s.devices + 1, s.micro_batches); }}},
      {"v-half",
       "vocab-1",
       R"("schedule": {"kind": "v-half", "vocabulary": "vocab-1"})",
       "Vocabulary Parallelism, arXiv 2411.05288",
       true,
       false,
       {"(7p + 8) / (12m + 7p + 8), p even",
        [](const Shape& s) { return share(7 * s.devices + 8, 12.0 * s.micro_batches); }},
       {"p/2 + 3, rounded down", [](const Shape& s) -> double { return s.devices / 2 + 3; }}},
      {"v-half",
       "vocab-2",
       R"("schedule": {"kind": "v-half", "vocabulary": "vocab-2"})",
       "Vocabulary Parallelism, arXiv 2411.05288",
       true,
       false,
       {"(7p + 2) / (12m + 7p + 2), p even",
        [](const Shape& s) { return share(7 * s.devices + 2, 12.0 * s.micro_batches); }},
       {"p/2 + 2, rounded down", [](const Shape& s) -> double { return s.devices / 2 + 2; }}},
      {"1f1b",
       "early recompute",
       R"("recompute": "full", "schedule": {"kind": "1f1b", "early_recompute": true})",
       "Mario, PPoPP 2025",
       true,
       true,
       {"3(p - 1) / (4m + 3(p - 1))",
        [](const Shape& s) { return share(3 * (s.devices - 1), 4.0 * s.micro_batches); }},
       kDevices},
      {"pipeoffload",
       "PO-H",
       R"("offload": {"activations": 0.5, "selection": "lifetime"}, )"
       R"("schedule": "pipeoffload")",
       "PipeOffload, arXiv 2503.01328",
       false,
       false,
       schedule_named("pipeoffload").bubble,
       {"p/4 + 1/2, p even", [](const Shape& s) { return (s.devices + 2) / 4.0; }}},
      {"pipeoffload", "PO-F", R"("offload": {"activations": 1}, "schedule": "pipeoffload")",
       "PipeOffload, arXiv 2503.01328", false, false, schedule_named("pipeoffload").bubble, kOne}};
  return all;
}

std::string survey_scenario(const SurveyOption& option, const SurveySize& size) {
  const std::string p = std::to_string(size.devices), m = std::to_string(size.micro_batches);
  const std::string cluster = R"("cluster": {"kind": "uniform", "devices": )" + p;
  const std::string training =
      R"("training": {"strategy": "global", )" + std::string(option.keys) + R"(, "steps": 4, )";
  if (!option.layers) {
    return R"({"model": {"kind": "profile", "modules": [)" + whole_modules(size.devices) + "]}, " +
           cluster + R"(, "memory": "80 GiB", "link": {"bandwidth": "1000 PB/s"},
    "host": {"bandwidth": "1000 PB/s"}}, )" +
           training + R"("micro_batches": )" + m + "}}";
  }
  // Products alone take time: of layers so wide inside that outputs of layers count for nothing.
  return R"({"model": {"kind": "transformer", "layers": )" + std::to_string(2 * size.devices) +
         R"(, "hidden_size": )" + std::to_string(static_cast<int>(kWidth)) +
         R"(, "ffn_hidden_size": 1048576, "attention_heads": 1,
    "vocab_size": )" +
         p + R"(, "sequence_length": 1, "positions": "none", "bias": false,
    "tied_embeddings": false}, )" +
         cluster + R"(, "link": {"bandwidth": "1000 PB/s"}, "device": {"name": "fast memory",
    "peak": {"bf16": "1 PFLOP/s"}, "memory": "100 TiB", "memory_bandwidth": "1000 PB/s"}},
  "parallel": {"pipeline": )" +
         p + "}, " + training + R"("micro_batch_size": 1, "global_batch_size": )" + m + "}}";
}

std::vector<SurveyRow> survey_options(const SurveySize& size) {
  // On layers 1F1B, which keeps a micro-batch a device, says what one is.
  const SurveyOption plain = {"1f1b", "", R"("schedule": "1f1b")", "", true, false, {}, {}};
  const Metrics usual = metrics_of(survey_scenario(plain, size), "1f1b");
  const double kept = most_stash(usual) / std::min(size.devices, size.micro_batches);
  const double crossing = 2.0 * (size.devices - 1) * size.micro_batches * kOutput;
  std::vector<SurveyRow> rows;
  for (const SurveyOption& option : survey_options()) {
    const ScheduleEntry& entry = schedule_named(option.schedule);
    const Metrics metrics = metrics_of(survey_scenario(option, size), option.words);
    const double unit = option.inputs ? 2 * kWidth * 2 : option.layers ? kept : kStash * kModules;
    const double weights = weights_on_all(metrics);
    rows.push_back(
        {.entry = &entry,
         .option = &option,
         .bubble = 1 - metrics.busy,
         .stash = most_stash(metrics) / unit,
         .traffic = bytes_between(metrics) * (option.layers ? crossing / bytes_between(usual) : 1),
         .weight_copies = option.layers ? weights / weights_on_all(usual)
                                        : weights / (kWeights * kModules * size.devices)});
  }
  return rows;
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
