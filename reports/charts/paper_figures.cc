// The figures by name, and those of devices: utilisation, memory, breakdown.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/paper_figures.h"

#include <algorithm>
#include <array>
#include <map>
#include <type_traits>

#include "base/text.h"
#include "reports/charts/training_report.h"
#include "reports/headlines/headlines.h"
#include "reports/words/palette.h"
#include "reports/words/scale.h"
#include "reports/words/time_parts.h"

namespace interlock {
namespace {

/// Returns the devices of `result` in the order of their numbers; results have them by ranks, which
/// need not lie side by side.
std::vector<ReadDevice> by_number(const ReadResult& result) {
  std::vector<ReadDevice> devices = result.simulated;
  std::ranges::stable_sort(devices, {}, &ReadDevice::device);
  return devices;
}

/// Returns a chart with a panel for each result and a bar for each device, still without values.
BarChart chart_of(const std::vector<ReadResult>& results, const std::string& figure) {
  if (results.size() > kMostPanels) {
    throw Error("figure " + figure + " draws the devices of at most " +
                std::to_string(kMostPanels) + " results, and there are " +
                std::to_string(results.size()) + "; expected fewer, or figure sweep or pareto");
  }
  const std::string common = common_name(names_of(results));
  BarChart chart{.subtitle = common, .bar_label = "device"};
  for (const ReadResult& result : results) {
    BarPanel panel{.title = own_name(result.name, common), .fails = !result.fits};
    for (const ReadDevice& device : by_number(result)) {
      panel.bars.push_back(std::to_string(device.device));
    }
    chart.panels.push_back(std::move(panel));
  }
  return chart;
}

}  // namespace

std::vector<std::string> names_of(const std::vector<ReadResult>& results) {
  std::vector<std::string> names;
  names.reserve(results.size());
  for (const ReadResult& result : results) names.push_back(result.name);
  return names;
}

const std::vector<std::string>& figure_names() {
  static const std::vector<std::string> all = {"timeline",  "utilisation", "memory",
                                               "breakdown", "sweep",       "pareto",
                                               "tradeoff",  "table",       "page"};
  return all;
}

void check_results(const std::string& figure, const ResultFiles& files) {
  if (!files.results.empty()) return;
  throw Error("figure " + figure +
              " draws results of interlock simulate --json, and these are "
              "curves of interlock train; expected figure tradeoff");
}

std::string figure_svg(const std::string& figure, const ResultFiles& files,
                       const PictureStyle& style) {
  const auto drawn = [&](auto chart) {
    chart.style = style;
    if constexpr (std::is_same_v<decltype(chart), BarChart>)
      return bar_chart_svg(chart);
    else
      return line_chart_svg(chart);
  };
  if (figure == "tradeoff") {
    if (files.curves.empty()) {
      throw Error(
          "figure tradeoff draws losses, and these results have none; expected files of "
          "interlock train --json");
    }
    return drawn(training_chart(files.curves));
  }
  check_results(figure, files);
  const std::string name = figure.substr(0, figure.find(':'));
  const std::string measures = name == figure ? "" : figure.substr(name.size() + 1);
  if (name == "sweep") return drawn(sweep_figure(files.results, measures));
  if (name == "pareto") return drawn(pareto_figure(files.results));
  static const std::map<std::string, BarChart (*)(const std::vector<ReadResult>&)> by_name = {
      {"utilisation", utilisation_figure},
      {"memory", memory_figure},
      {"breakdown", breakdown_figure}};
  return drawn(by_name.at(name)(files.results));
}

BarChart utilisation_figure(const std::vector<ReadResult>& results) {
  BarChart chart = chart_of(results, "utilisation");
  chart.title = "Utilisation of each device";
  chart.label = "share of a step (%)";
  chart.unit = 0.01;
  chart.most = 1;
  chart.parts = {
      {"useful", swatch(OpKind::F).colour},
      {"other work: heads, recompute, extra traversals, updates", swatch(OpKind::R).colour}};
  for (std::size_t r = 0; r < results.size(); ++r) {
    chart.panels[r].note = "mean: busy " + format_percent(results[r].known("busy")) + ", useful " +
                           format_percent(results[r].known("useful"));
    for (const ReadDevice& device : by_number(results[r])) {
      chart.panels[r].values.push_back(
          {device.metrics.useful, std::max(0.0, device.metrics.busy - device.metrics.useful)});
    }
  }
  return chart;
}

namespace {

/// Returns the classes of memory that any device holds at its peak.
std::array<bool, kMemoryClasses> classes_held(const std::vector<ReadResult>& results) {
  std::array<bool, kMemoryClasses> held{};
  for (const ReadResult& result : results) {
    for (const ReadDevice& device : by_number(result)) {
      for (int i = 0; i < kMemoryClasses; ++i)
        held[i] = held[i] || device.metrics.memory[i] > Bytes(0);
    }
  }
  return held;
}

/// Returns the values of `bar` whose part is used.
std::vector<double> only(const std::vector<bool>& used, const std::vector<double>& bar) {
  std::vector<double> values;
  for (std::size_t i = 0; i < bar.size(); ++i) {
    if (used[i]) values.push_back(bar[i]);
  }
  return values;
}

/// Draws a line at the capacity of each device, unless it lies far above all bars, which it would
/// only make short.
void draw_capacities(const std::vector<ReadResult>& results, double most, BarChart& chart) {
  const auto near = [&](const ReadResult& result) {
    const auto capacity = result.value("memory_capacity_bytes");
    return capacity && *capacity < 4 * most;
  };
  if (std::none_of(results.begin(), results.end(), near)) return;
  chart.limit_name = "memory of a device";
  for (std::size_t r = 0; r < results.size(); ++r) {
    chart.panels[r].limit = results[r].value("memory_capacity_bytes");
  }
}

}  // namespace

BarChart memory_figure(const std::vector<ReadResult>& results) {
  BarChart chart = chart_of(results, "memory");
  const std::array<bool, kMemoryClasses> held = classes_held(results);
  std::vector<double> sizes;
  for (std::size_t r = 0; r < results.size(); ++r) {
    BarPanel& panel = chart.panels[r];
    sizes.push_back(results[r].known("peak_memory_bytes"));
    panel.note = "fullest: " + format(Bytes(sizes.back()));
    const auto capacity = results[r].value("memory_capacity_bytes");
    if (capacity) panel.note += " of " + format(Bytes(*capacity));
    for (const ReadDevice& device : by_number(results[r])) {
      std::vector<double>& bar = panel.values.emplace_back();
      for (int i = 0; i < kMemoryClasses; ++i) {
        if (held[i]) bar.push_back(device.metrics.memory[i].value());
      }
    }
  }
  const Scale scale = scale_of_bytes(sizes);
  chart.title = "Memory of each device at its peak";
  chart.label = "memory (" + scale.unit + ")";
  chart.unit = scale.size;
  for (int i = 0; i < kMemoryClasses; ++i) {
    const Swatch look = swatch(static_cast<MemoryClass>(i));
    if (held[i]) chart.parts.push_back({look.meaning, look.colour});
  }
  draw_capacities(results, *std::max_element(sizes.begin(), sizes.end()), chart);
  return chart;
}

BarChart breakdown_chart(std::vector<BarPanel> panels) {
  BarChart chart{.title = "Where the time of each device goes",
                 .bar_label = "device",
                 .label = "share of a step (%)",
                 .unit = 0.01,
                 .writes_sums = false,
                 .most = 1};
  std::vector<bool> used(time_parts().size(), false);
  for (const BarPanel& panel : panels) {
    for (const std::vector<double>& bar : panel.values) {
      for (std::size_t i = 0; i < used.size(); ++i) used[i] = used[i] || bar[i] > 0;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    const TimePart& part = time_parts()[i];
    if (used[i]) chart.parts.push_back({part.name, part.colour, part.hatch});
  }
  for (BarPanel& panel : panels) {
    for (std::vector<double>& bar : panel.values) bar = only(used, bar);
  }
  chart.panels = std::move(panels);
  return chart;
}

BarChart breakdown_figure(const std::vector<ReadResult>& results) {
  BarChart empty = chart_of(results, "breakdown");
  for (std::size_t r = 0; r < results.size(); ++r) {
    BarPanel& panel = empty.panels[r];
    panel.note = "step " + format(Seconds(results[r].known("step_time_s"))) + ", busy " +
                 format_percent(results[r].known("busy"));
    for (const ReadDevice& device : by_number(results[r])) {
      const Bubbles* bubbles = device.bubbles ? &*device.bubbles : nullptr;
      panel.values.push_back(
          part_shares(device.metrics.time, bubbles, results[r].known("step_time_s")));
    }
  }
  BarChart chart = breakdown_chart(std::move(empty.panels));
  chart.subtitle = empty.subtitle;
  return chart;
}

}  // namespace interlock
