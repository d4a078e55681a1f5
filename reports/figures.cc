// Figures: the headline numbers of a result and the words around them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/figures.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "reports/economics_figures.h"
#include "reports/explanation_figures.h"
#include "reports/mesh_words.h"
#include "reports/run_figures.h"
#include "reports/swarm_figures.h"
#include "reports/variation_figures.h"

namespace interlock {
namespace {

std::string plural(std::int64_t count, const std::string& noun, const char* ending = "s") {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : ending);
}

Figure step_figure(const Metrics& metrics) {
  std::string note = "mean of " + plural(metrics.measured_steps, "step");
  if (metrics.measured_steps == 1 && metrics.fill_steps == 0) note = "one step, nothing before it";
  if (metrics.fill_steps > 0) note += " after " + plural(metrics.fill_steps, "step") + " of fill";
  return {"Step time", format(metrics.step_time), note};
}

Figure throughput_figure(const Metrics& metrics) {
  const Throughput rate = throughput(metrics);
  const std::string number = format_number(rate.per_second);
  Figure figure{"Throughput", number + " " + rate.unit, ""};
  if (rate.unit == "tokens/s" && metrics.samples_per_s) {
    figure.note = format_number(*metrics.samples_per_s) + " samples/s";
  }
  return figure;
}

Figure mfu_figure(const Metrics& metrics) {
  if (!metrics.mfu) return {"MFU", "unknown", "model flops or peak rate not known"};
  std::string note = "model flops of the peak";
  if (metrics.hfu && *metrics.hfu != *metrics.mfu) {
    note = "HFU " + format_percent(*metrics.hfu) + ", all that is executed";
  }
  if (metrics.attention_flops != "none") {
    note += "; counts " + metrics.attention_flops + " attention";
  }
  return {"MFU", format_percent(*metrics.mfu), note};
}

Figure exposed_figure(const Metrics& metrics) {
  const double share =
      metrics.step_time > Seconds(0) ? metrics.exposed_communication / metrics.step_time : 0;
  return {"Exposed comm.", format(metrics.exposed_communication),
          format_percent(share) + " of a step, mean over devices"};
}

/// "device 3", as the machine counts.
std::string device_name(const ScenarioResult& result, int rank) {
  return "device " + std::to_string(device_numbers(result.scenario).at(rank));
}

Figure memory_figure(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  const DeviceMetrics& device = fullest_device(metrics);
  const std::string where = "on " + device_name(result, device.rank);
  Figure figure{"Peak memory", format(device.peak_memory), where};
  if (metrics.memory_capacity <= Bytes(0)) return figure;
  figure.note = "of " + format(metrics.memory_capacity) + " " + where;
  const Bytes spare = metrics.memory_capacity - device.peak_memory;
  if (spare >= Bytes(0)) {
    const Bytes left = std::max(spare, Bytes(0));
    figure.note += "; fits, " + format(left) + " to spare (" +
                   format_percent(left / metrics.memory_capacity) + ")";
  } else {
    figure.note += "; does not fit, over by " + format(-spare);
    figure.alarm = true;
  }
  return figure;
}

/// Nothing where nothing is kept there.
std::vector<Figure> host_figure(const Metrics& metrics) {
  const Bytes kept = metrics.host_memory, capacity = metrics.host_capacity;
  if (kept <= Bytes(0)) return {};
  Figure figure{"Host memory", format(kept), "of the node whose devices keep most there"};
  if (capacity > Bytes(0)) {
    figure.alarm = kept > capacity;
    figure.note = "of " + format(capacity) + " of a node";
    figure.note += figure.alarm ? "; does not fit, over by " + format(kept - capacity)
                                : "; fits, " + format(capacity - kept) + " to spare";
  }
  return {figure};
}

Figure bubble_figure(const Metrics& metrics) {
  const std::string causes = bubble_words(metrics);
  return {"Bubble", format_percent(1 - metrics.busy),
          "idle share of a step" + (causes.empty() ? "" : ": " + causes)};
}

Figure limiting_figure(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  const int number = device_numbers(result.scenario).at(metrics.limiting_device);
  Figure figure{"Limiting device", std::to_string(number), ""};
  for (const DeviceMetrics& device : metrics.devices) {
    if (device.rank != metrics.limiting_device) continue;
    figure.note = (device.stages.size() == 1 ? "stage " : "stages ") + list_stages(device.stages) +
                  ", busy " + format_percent(device.busy);
  }
  return figure;
}

}  // namespace

std::vector<Figure> headline_figures(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  std::vector<Figure> figures = {
      step_figure(metrics),
      throughput_figure(metrics),
      {"Busy", format_percent(metrics.busy), "executing anything, mean over devices"},
      {"Useful", format_percent(metrics.useful), "no heads, recompute or extra traversals"},
      mfu_figure(metrics),
      bubble_figure(metrics),
      exposed_figure(metrics),
      memory_figure(result)};
  for (Figure& figure : host_figure(metrics)) figures.push_back(std::move(figure));
  figures.push_back(limiting_figure(result));
  for (Figure& figure : explanation_figures(result)) figures.push_back(std::move(figure));
  for (Figure& figure : economics_figures(result)) figures.push_back(std::move(figure));
  for (Figure& figure : variation_figures(result)) figures.push_back(std::move(figure));
  for (Figure& figure : run_figures(result)) figures.push_back(std::move(figure));
  for (Figure& figure : swarm_figures(result)) figures.push_back(std::move(figure));
  return figures;
}

namespace {

/// What of a workload could not be used.
void add_notes(const TraceNotes& notes, std::vector<std::string>& lines) {
  if (notes.without_time > 0) {
    lines.push_back("Nodes without a duration: " + plural(notes.without_time, "op") +
                    ", which the simulation takes to end at once.");
  }
  if (notes.others > 0) {
    lines.push_back("Nodes that are not of the device: " + plural(notes.others, "node") +
                    " (of hosts, say), which take no time.");
  }
}

}  // namespace

std::string subtitle(const ScenarioResult& result) {
  const Scenario& scenario = result.scenario;
  const Metrics& metrics = result.measurement.metrics;
  std::string line = scenario.model_name + " on " + device_words(result);
  if (scenario.workload) {
    return line + ", execution traces of " + plural(scenario.workload->steps.steps, "step") + ", " +
           metrics.engine + " engine";
  }
  line += ", " + plural(scenario.partition.stages(), "stage") + ", " + name_of(scenario.strategy) +
          (scenario.strategy.kind == StrategyKind::Inference ? ", " : " training, ") +
          schedule_entry(scenario.schedule.kind).name + " schedule, " +
          plural(scenario.micro_batches, "micro-batch", "es");
  if (!scenario.slices.empty()) {
    const auto slices = static_cast<std::int64_t>(scenario.slices.size());
    line += " of " + plural(slices, "token slice");
  }
  if (!scenario.parts.empty()) {
    std::int64_t slices = 0;
    for (const BatchPart& part : scenario.parts) slices += std::ssize(part.slices);
    line += " of several sizes with " + plural(slices, "token slice") + " in all";
  }
  line += " a step, " + metrics.engine + " engine";
  return line;
}

std::vector<std::string> warnings(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  std::vector<std::string> lines;
  if (!metrics.steady) {
    lines.push_back("Not steady: steps still differ after " + plural(metrics.fill_steps, "step") +
                    " of fill; the figures are means over " +
                    plural(metrics.measured_steps, "step") + ".");
  }
  const DeviceMetrics& device = fullest_device(metrics);
  if (metrics.memory_capacity > Bytes(0) && device.peak_memory > metrics.memory_capacity) {
    lines.push_back("Does not fit: " + device_name(result, device.rank) + " needs " +
                    format(device.peak_memory - metrics.memory_capacity) + " more than its " +
                    format(metrics.memory_capacity) + ".");
  }
  if (metrics.host_capacity > Bytes(0) && metrics.host_memory > metrics.host_capacity) {
    lines.push_back("Does not fit: devices of a node keep " +
                    format(metrics.host_memory - metrics.host_capacity) +
                    " more with their host than its " + format(metrics.host_capacity) + ".");
  }
  const std::string& peak = result.confidence.at_peak;
  if (!peak.empty()) {
    lines.push_back("At the peak: " + peak + R"(. Write an "efficiency" into the device.)");
  }
  if (result.scenario.workload) add_notes(result.scenario.workload->notes, lines);
  return lines;
}

Throughput throughput(const Metrics& metrics) {
  if (metrics.tokens_per_s) return {*metrics.tokens_per_s, "tokens/s"};
  if (metrics.samples_per_s) return {*metrics.samples_per_s, "samples/s"};
  return {metrics.step_time > Seconds(0) ? 1 / metrics.step_time.value() : 0, "steps/s"};
}

const DeviceMetrics& fullest_device(const Metrics& metrics) {
  CHECK(!metrics.devices.empty(), "a result has at least one device");
  return *std::max_element(
      metrics.devices.begin(), metrics.devices.end(),
      [](const auto& a, const auto& b) { return a.peak_memory < b.peak_memory; });
}

std::string list_stages(const std::vector<int>& stages) {
  const auto count = static_cast<int>(stages.size());
  if (count > 2 && stages.back() - stages.front() == count - 1) {
    return std::to_string(stages.front()) + " to " + std::to_string(stages.back());
  }
  std::string list;
  for (const int stage : stages) list += (list.empty() ? "" : ", ") + std::to_string(stage);
  return list;
}

}  // namespace interlock
