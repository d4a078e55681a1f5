// The figures of many results: along a swept number, and throughput against memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/text.h"
#include "reports/charts/chart_axes.h"
#include "reports/charts/line_chart.h"
#include "reports/charts/measures.h"
#include "reports/charts/paper_figures.h"
#include "reports/charts/swept.h"
#include "reports/headlines/figures.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostNotes = 24;

/// Curve by curve the results on it, along the axis.
struct Curves {
  std::vector<std::string> names;
  std::vector<std::vector<std::size_t>> members;
};

Curves curves_of(const std::vector<ReadResult>& results, const Along& along) {
  Curves curves;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const std::string name = curve_of(results[r], along);
    const auto known = std::find(curves.names.begin(), curves.names.end(), name);
    const auto curve = static_cast<std::size_t>(known - curves.names.begin());
    if (known == curves.names.end()) {
      curves.names.push_back(name);
      curves.members.emplace_back();
    }
    curves.members[curve].push_back(r);
  }
  for (std::vector<std::size_t>& members : curves.members) {
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return along.values[a] < along.values[b];
    });
  }
  return curves;
}

/// The panel of a measure. Beside the pointer stand the numbers of results, rates for ratios.
ChartPanel panel_of(const Measured& measure, const Along& along,
                    const std::vector<ReadResult>& results, const Curves& curves) {
  const Rates rates = rates_of(results);
  const bool ratio = measure.key == "speed_up" || measure.key == "gain";
  ChartPanel panel{.x_label = along.label,
                   .y_label = measure.label,
                   .curves = {},
                   .points = true,
                   .marks = along.marks};
  for (const std::vector<std::size_t>& members : curves.members) {
    panel.curves.emplace_back();
    panel.tips.emplace_back();
    panel.words.emplace_back();
    for (const std::size_t r : members) {
      if (!measure.values[r]) continue;
      panel.words.back().push_back(point_of(results[r], along));
      const double value = *measure.values[r];
      panel.curves.back().emplace_back(along.values[r], value / measure.unit);
      panel.tips.back().push_back(along.label + " " + exact(along.values[r]) + ", " +
                                  (ratio ? rates.unit : measure.key) + " " +
                                  exact(ratio ? rates.values[r] : value));
    }
  }
  return panel;
}

/// What measures mean that do not speak for themselves.
std::string meaning(const std::vector<Measured>& measures, const std::vector<ReadResult>& results,
                    const std::string& first) {
  const std::vector<SweptValue>& swept = results.front().swept;
  const std::map<std::string, std::string> meant = {
      {"busy", "busy: executing anything"},
      {"useful", "useful: no heads, recompute or extra traversals"},
      {"speed_up", "speed-up: throughput over that of " + first},
      {"gain", "gain: throughput over that of " + (swept.empty() ? first : swept.back().label)},
      {"memory", "memory: the peak of the fullest device"},
      {"stash", "stash: activations kept, of the device that keeps most"},
      {"traffic", "traffic: bytes of a step on all links"}};
  std::string words;
  for (const Measured& measure : measures) {
    const auto known = meant.find(measure.key);
    if (known != meant.end()) words += (words.empty() ? "" : "; ") + known->second;
  }
  return words;
}

bool fits(const ReadResult& result) {
  const auto capacity = result.value("memory_capacity_bytes");
  return !capacity || result.known("peak_memory_bytes") <= *capacity;
}

/// Results that fit, than which no other is better in one and as good in the other, the least
/// memory first.
std::vector<std::size_t> front_of(const std::vector<ReadResult>& results, const Rates& rates) {
  std::vector<std::size_t> order(results.size());
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(results[a].known("peak_memory_bytes"), -rates.values[a]) <
           std::pair(results[b].known("peak_memory_bytes"), -rates.values[b]);
  });
  std::vector<std::size_t> front;
  for (const std::size_t r : order) {
    const bool better = front.empty() || rates.values[r] > rates.values[front.back()];
    if (better && fits(results[r])) front.push_back(r);
  }
  return front;
}

}  // namespace

std::string sweep_figure(const std::vector<ReadResult>& results, const std::string& measures) {
  const Along along = find_axis(results);
  const Rates rates = rates_of(results);
  if (!(rates.values.front() > 0))
    throw Error("figure sweep compares throughput with the first result's, which is 0");
  std::vector<std::string> whole;
  whole.reserve(results.size());
  for (const ReadResult& result : results) whole.push_back(result.name);
  const Curves curves = curves_of(results, along);
  const std::string common = common_name(whole);
  const std::vector<Measured> shown =
      measured(measures.empty() ? "busy,useful,speed_up" : measures, results);
  LineChart chart{.title = "Utilisation and speed-up" + (common.empty() ? "" : ": " + common),
                  .subtitle = meaning(shown, results, own_name(whole.front(), common)),
                  .names = curves.names};
  if (!measures.empty()) chart.title = common.empty() ? shown.front().label : common;
  for (const Measured& measure : shown) {
    chart.panels.push_back(panel_of(measure, along, results, curves));
  }
  return line_chart_svg(chart);
}

std::string pareto_figure(const std::vector<ReadResult>& results) {
  if (results.size() < 2) {
    throw Error(
        "figure pareto compares results, and there is one; expected several files, or a "
        "scenario with a sweep");
  }
  const Rates rates = rates_of(results);
  std::vector<std::string> names;
  std::vector<double> memory;
  for (const ReadResult& result : results) {
    names.push_back(result.name);
    memory.push_back(result.known("peak_memory_bytes"));
  }
  const Scale scale = scale_of_bytes(memory);
  const std::string common = common_name(names);
  LineChart chart{
      .title = "Throughput against memory" + (common.empty() ? "" : ": " + common),
      .subtitle = "memory: the peak of the fullest device; up and to the left is better",
      .names = {"results", "Pareto front"},
      .unjoined = {true, false}};
  ChartPanel panel{.x_label = "memory (" + scale.unit + ")",
                   .y_label = "throughput (" + rates.unit + ")",
                   .curves = {{}, {}},
                   .points = true,
                   .tips = {{}, {}},
                   .words = {{}, {}}};
  const auto add = [&](std::size_t curve, std::size_t r) {
    panel.curves[curve].emplace_back(memory[r] / scale.size, rates.values[r]);
    panel.tips[curve].push_back(names[r] + ": memory " + exact(memory[r]) + " bytes, " +
                                exact(rates.values[r]) + " " + rates.unit);
  };
  for (std::size_t r = 0; r < results.size(); ++r) add(0, r);
  for (const std::size_t r : front_of(results, rates)) {
    add(1, r);
    const std::string number = std::to_string(panel.curves[1].size());
    panel.words[1].push_back(number);
    if (panel.curves[1].size() > kMostNotes) continue;
    chart.notes.push_back(number + ": " + own_name(names[r], common) + ": " +
                          format_number(rates.values[r]) + " " + rates.unit + ", " +
                          format(Bytes(memory[r])));
  }
  const auto too_large = std::count_if(results.begin(), results.end(),
                                       [](const ReadResult& result) { return !fits(result); });
  if (too_large > 0) {
    chart.notes.push_back(std::to_string(too_large) + " of " + std::to_string(results.size()) +
                          " results do not fit in the memory of a device");
  }
  chart.panels = {std::move(panel)};
  return line_chart_svg(chart);
}

}  // namespace interlock
