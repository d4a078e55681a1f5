// The figures of many results: along a swept number, and throughput against memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "reports/chart_axes.h"
#include "reports/figures.h"
#include "reports/line_chart.h"
#include "reports/paper_figures.h"
#include "reports/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostNotes = 24;

/// What results produce each second, in one unit for all.
struct Rates {
  std::string unit = "steps/s";
  std::vector<double> values;  // (results)
};

Rates rates_of(const std::vector<ReadResult>& results) {
  const auto all = [&](const std::optional<double> ReadResult::*rate) {
    return std::all_of(results.begin(), results.end(),
                       [&](const ReadResult& result) { return (result.*rate).has_value(); });
  };
  Rates rates;
  if (all(&ReadResult::samples_per_s)) rates.unit = "samples/s";
  if (all(&ReadResult::tokens_per_s)) rates.unit = "tokens/s";
  for (const ReadResult& result : results) {
    if (rates.unit == "tokens/s") {
      rates.values.push_back(*result.tokens_per_s);
    } else if (rates.unit == "samples/s") {
      rates.values.push_back(*result.samples_per_s);
    } else {
      rates.values.push_back(result.step_time > 0 ? 1 / result.step_time : 0);
    }
  }
  return rates;
}

/// The value that a sweep gave `result` at `path`, if it did.
const SweptValue* swept_at(const ReadResult& result, const std::string& path) {
  for (const SweptValue& value : result.swept) {
    if (value.path == path) return &value;
  }
  return nullptr;
}

/// What goes along the axis, and the value of each result.
struct Along {
  std::string path;  // of a sweep; empty: devices
  std::vector<double> values;
};

bool varies(const std::vector<double>& values) {
  return std::set<double>(values.begin(), values.end()).size() > 1;
}

/// The swept number that takes the most values, the first of several; else the number of devices.
Along find_axis(const std::vector<ReadResult>& results) {
  Along best;
  std::size_t most = 1;
  for (const SweptValue& candidate : results.front().swept) {
    Along along{candidate.path, {}};
    for (const ReadResult& result : results) {
      const SweptValue* value = swept_at(result, candidate.path);
      if (value && value->number) along.values.push_back(*value->number);
    }
    const std::size_t count = std::set(along.values.begin(), along.values.end()).size();
    if (along.values.size() < results.size() || count <= most) continue;
    most = count;
    best = along;
  }
  if (most > 1) return best;
  for (const ReadResult& result : results) best.values.push_back(result.devices);
  if (!varies(best.values)) {
    throw Error(
        "figure sweep needs results that differ in a number; expected a scenario with a "
        "sweep over one, \"parallel.pipeline\": [1, 2, 4] say");
  }
  return best;
}

/// What names the curve of a result: its other swept values, else its file.
std::string curve_of(const ReadResult& result, const Along& along) {
  std::string name;
  for (const SweptValue& value : result.swept) {
    if (value.path == along.path || value.path == "name") continue;
    const std::string key = value.path.substr(value.path.rfind('.') + 1);
    const bool speaks = key == "training" || key == "strategy" || key == "schedule" ||
                        value.label.find('=') != std::string::npos;
    name += (name.empty() ? "" : ", ") + (speaks ? value.label : key + " " + value.label);
  }
  if (!name.empty()) return name;
  return along.path.empty() ? result.file : "all";
}

std::string axis_label(const std::vector<ReadResult>& results, const Along& along) {
  bool devices = true;
  for (std::size_t r = 0; r < results.size(); ++r) {
    devices = devices && along.values[r] == results[r].devices;
  }
  return devices ? "devices" : along.path.substr(along.path.rfind('.') + 1);
}

/// A panel of `value` of each result.
struct Measure {
  std::string label, key;  // key: what results call it
  std::function<double(std::size_t)> value, drawn;
};

ChartPanel panel_of(const Measure& measure, const Along& along, const std::string& x_label,
                    const std::vector<std::vector<std::size_t>>& curves) {
  ChartPanel panel{.x_label = x_label, .y_label = measure.label, .curves = {}, .points = true};
  for (const std::vector<std::size_t>& members : curves) {
    panel.curves.emplace_back();
    panel.tips.emplace_back();
    for (const std::size_t r : members) {
      panel.curves.back().emplace_back(along.values[r], measure.drawn(r));
      panel.tips.back().push_back(x_label + " " + exact(along.values[r]) + ", " + measure.key +
                                  " " + exact(measure.value(r)));
    }
  }
  return panel;
}

bool fits(const ReadResult& result) {
  return !result.memory_capacity || fullest(result) <= *result.memory_capacity;
}

/// Results that fit, than which no other is better in one and as good in the other, the least
/// memory first.
std::vector<std::size_t> front_of(const std::vector<ReadResult>& results, const Rates& rates) {
  std::vector<std::size_t> order(results.size());
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(fullest(results[a]), -rates.values[a]) <
           std::pair(fullest(results[b]), -rates.values[b]);
  });
  std::vector<std::size_t> front;
  for (const std::size_t r : order) {
    const bool better = front.empty() || rates.values[r] > rates.values[front.back()];
    if (better && fits(results[r])) front.push_back(r);
  }
  return front;
}

}  // namespace

std::string sweep_figure(const std::vector<ReadResult>& results) {
  const Along along = find_axis(results);
  const Rates rates = rates_of(results);
  const double first = rates.values.front();
  if (!(first > 0))
    throw Error("figure sweep compares throughput with the first result's, which is 0");
  std::vector<std::string> names, whole;
  std::vector<std::vector<std::size_t>> curves;
  for (std::size_t r = 0; r < results.size(); ++r) {
    whole.push_back(results[r].name);
    const std::string name = curve_of(results[r], along);
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) curves.emplace_back();
    const auto curve = static_cast<std::size_t>(known - names.begin());
    if (known == names.end()) names.push_back(name);
    curves[curve].push_back(r);
  }
  for (std::vector<std::size_t>& members : curves) {
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return along.values[a] < along.values[b];
    });
  }
  const std::string x_label = axis_label(results, along);
  const std::string common = common_name(whole);
  LineChart chart{.title = "Utilisation and speed-up" + (common.empty() ? "" : ": " + common),
                  .subtitle =
                      "busy: executing anything; useful: no heads, recompute or extra "
                      "traversals; speed-up: throughput over that of " +
                      own_name(whole.front(), common),
                  .names = names};
  const Measure measures[] = {
      {"busy (%)", "busy", [&](std::size_t r) { return results[r].busy; },
       [&](std::size_t r) { return 100 * results[r].busy; }},
      {"useful (%)", "useful", [&](std::size_t r) { return results[r].useful; },
       [&](std::size_t r) { return 100 * results[r].useful; }},
      {"speed-up (×)", rates.unit, [&](std::size_t r) { return rates.values[r]; },
       [&](std::size_t r) { return rates.values[r] / first; }}};
  for (const Measure& measure : measures) {
    chart.panels.push_back(panel_of(measure, along, x_label, curves));
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
    memory.push_back(fullest(result));
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
