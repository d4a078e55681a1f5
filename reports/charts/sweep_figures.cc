// The figures of many results: along a swept number, and throughput against memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/text.h"
#include "reports/charts/chart_axes.h"
#include "reports/charts/line_chart.h"
#include "reports/charts/measures.h"
#include "reports/charts/paper_figures.h"
#include "reports/charts/pareto.h"
#include "reports/charts/swept.h"
#include "reports/headlines/headlines.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostNotes = 24;
constexpr std::size_t kMostCurves = 24;  // of a panel; of more, no two should look alike
constexpr double kFarRatios = 32;        // most over least, from which their axis is logarithmic

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

/// Results by the first swept path that is not the axis. Example: three models by two strategies
/// have the values of the three, and the curves of the two.
struct Groups {
  std::vector<std::string> values;           // of that path
  std::vector<std::vector<std::size_t>> of;  // results with each
  Curves curves;                             // by the other paths
};

Groups groups_of(const std::vector<ReadResult>& results, const Along& along) {
  Groups groups;
  std::vector<ReadResult> rest = results;
  for (std::size_t r = 0; r < rest.size(); ++r) {
    std::vector<SweptValue>& swept = rest[r].swept;
    const auto first = std::find_if(swept.begin(), swept.end(), [&](const SweptValue& value) {
      return value.path != along.path && value.path != "name";
    });
    const std::string value = first == swept.end() ? "" : swept_words(*first);
    if (first != swept.end()) swept.erase(first);
    const auto known = std::find(groups.values.begin(), groups.values.end(), value);
    const auto group = static_cast<std::size_t>(known - groups.values.begin());
    if (known == groups.values.end()) {
      groups.values.push_back(value);
      groups.of.emplace_back();
    }
    groups.of[group].push_back(r);
  }
  groups.curves = curves_of(rest, along);
  return groups;
}

/// Returns the marks of a logarithmic axis of ratios that lie far apart; else none.
std::vector<double> ratio_marks(const Measured& measure) {
  Range range;
  for (const std::optional<double>& value : measure.values) {
    if (value) range.add(*value);
  }
  const bool far = range.least > 0 && range.most / range.least >= kFarRatios;
  return far ? logarithmic_marks(range) : std::vector<double>();
}

PointMark mark_of(const ReadResult& result) {
  return result.fits ? PointMark::Dot : PointMark::Cross;
}

void note_failing(const std::vector<ReadResult>& results, LineChart& chart) {
  const auto too_large = std::count_if(results.begin(), results.end(),
                                       [](const ReadResult& result) { return !result.fits; });
  if (too_large == 0) return;
  chart.notes.push_back("Crosses: " + std::to_string(too_large) + " of " +
                        std::to_string(results.size()) +
                        " results do not fit in the memory of a device");
}

/// Returns the panel of a measure. Beside the pointer stand the numbers of results, rates for
/// ratios.
ChartPanel panel_of(const Measured& measure, const Along& along,
                    const std::vector<ReadResult>& results, const Curves& curves) {
  const Rates rates = rates_of(results);
  const bool ratio = measure.label.find("×") != std::string::npos;
  ChartPanel panel{.x_label = along.label,
                   .y_label = measure.label,
                   .curves = {},
                   .dots = Dots::Drawn,
                   .x_marks = along.marks};
  for (const std::vector<std::size_t>& members : curves.members) {
    ChartCurve& curve = panel.curves.emplace_back();
    for (const std::size_t r : members) {
      if (!measure.values[r]) continue;
      const double value = *measure.values[r];
      curve.push_back({.x = along.values[r],
                       .y = value / measure.unit,
                       .tip = along.label + " " + exact(along.values[r]) + ", " +
                              (ratio ? rates.unit : measure.key) + " " +
                              exact(ratio ? rates.values[r] : value),
                       .word = point_of(results[r], along),
                       .mark = mark_of(results[r]),
                       .result = r});
    }
  }
  return panel;
}

/// Takes curves out of `chart` that no panel has a point of.
void drop_empty_curves(LineChart& chart) {
  for (std::size_t c = chart.names.size(); c-- > 0;) {
    const auto drawn = [&](const ChartPanel& panel) { return !panel.curves[c].empty(); };
    if (std::any_of(chart.panels.begin(), chart.panels.end(), drawn)) continue;
    const auto place = static_cast<std::ptrdiff_t>(c);
    chart.names.erase(chart.names.begin() + place);
    for (ChartPanel& panel : chart.panels) panel.curves.erase(panel.curves.begin() + place);
  }
}

/// Divides the curves of the chart among panels, one for each value of the first path; they have
/// the same axes where values lie far apart. Nothing happens if that leaves too many in each.
void panel_for_each_value(const std::vector<ReadResult>& results, const std::string& measures,
                          LineChart& chart) {
  const Along along = *find_axis(results);
  const Groups groups = groups_of(results, along);
  if (groups.curves.names.size() > kMostCurves) return;
  const Measured measure = measured(measures, results).front();
  chart.names = groups.curves.names;
  chart.panels.clear();
  for (std::size_t g = 0; g < groups.values.size(); ++g) {
    Measured own = measure;
    own.label = groups.values[g] + ": " + measure.label;
    own.values.assign(results.size(), std::nullopt);
    for (const std::size_t r : groups.of[g]) own.values[r] = measure.values[r];
    chart.panels.push_back(panel_of(own, along, results, groups.curves));
    chart.panels.back().y_marks = ratio_marks(measure);
  }
  drop_empty_curves(chart);
}

/// Explains the measures that do not speak for themselves.
std::string meaning(const std::vector<Measured>& measures, const std::vector<ReadResult>& results,
                    const std::string& first) {
  const std::vector<SweptValue>& swept = results.front().swept;
  const std::map<std::string, std::string> meant = {
      {"busy", "busy: executing anything"},
      {"useful", "useful: no heads, recompute or extra traversals"},
      {"speed_up", "speed-up: throughput over that of " + first},
      {"gain",
       "gain: throughput over that of " + (swept.empty() ? first : swept_words(swept.back()))},
      {"break_even", "break-even K: throughput over that of the best pipeline that fits"},
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

/// Returns the results that fit, and than which no other that fits is better in one measure and as
/// good in the other, the least of `measure` first. REQUIRES: all results have it.
std::vector<std::size_t> front_of(const std::vector<ReadResult>& results, const Measured& measure,
                                  const Rates& rates) {
  std::vector<std::size_t> fitting;
  std::vector<double> less, more;
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!results[r].fits) continue;
    fitting.push_back(r);
    less.push_back(*measure.values[r]);
    more.push_back(rates.values[r]);
  }
  std::vector<std::size_t> front = pareto_front(less, more);
  for (std::size_t& r : front) r = fitting[r];
  return front;
}

}  // namespace

std::optional<LineChart> sweep_chart(const std::vector<ReadResult>& results,
                                     const std::string& measures) {
  const std::optional<Along> along = find_axis(results);
  if (!along) return std::nullopt;
  const Curves curves = curves_of(results, *along);
  const std::string common = common_name(names_of(results));
  const std::vector<Measured> shown = measured(measures, results);
  LineChart chart{.title = common.empty() ? shown.front().label : common,
                  .subtitle = meaning(shown, results, own_name(results.front().name, common)),
                  .names = curves.names};
  for (const Measured& measure : shown) {
    chart.panels.push_back(panel_of(measure, *along, results, curves));
  }
  drop_empty_curves(chart);
  note_failing(results, chart);
  return chart;
}

LineChart sweep_figure(const std::vector<ReadResult>& results, const std::string& measures) {
  auto chart = sweep_chart(results, measures.empty() ? "busy,useful,speed_up" : measures);
  if (!chart) {
    throw Error(
        "figure sweep needs results that differ in a number; expected a scenario with a "
        "sweep over one, e.g. \"parallel.pipeline\": [1, 2, 4]");
  }
  if (!(rates_of(results).values.front() > 0))
    throw Error("figure sweep compares throughput with the first result's, which is 0");
  if (measures.empty()) {
    const std::string common = common_name(names_of(results));
    chart->title = "Utilisation and speed-up" + (common.empty() ? "" : ": " + common);
  }
  if (chart->panels.size() == 1 && chart->names.size() > kMostCurves) {
    panel_for_each_value(results, measures, *chart);
  }
  return *chart;
}

LineChart pareto_chart(const std::vector<ReadResult>& results, const std::string& less) {
  const Rates rates = rates_of(results);
  const Measured measure = measured(less, results).front();
  const bool memory = less == "memory";
  const std::string words = measure.label.substr(0, measure.label.rfind(" ("));
  const std::vector<std::string> names = names_of(results);
  const std::string common = common_name(names), meant = meaning({measure}, results, "");
  LineChart chart{.title = "Throughput against " + words + (common.empty() ? "" : ": " + common),
                  .subtitle = meant + (meant.empty() ? "" : "; ") + "up and to the left is better",
                  .names = {"results", "Pareto front"},
                  .unjoined = {true, false}};
  ChartPanel panel{.x_label = measure.label,
                   .y_label = "throughput (" + rates.unit + ")",
                   .curves = {{}, {}},
                   .dots = Dots::Drawn};
  const auto point = [&](std::size_t r) {
    return ChartPoint{.x = *measure.values[r] / measure.unit,
                      .y = rates.values[r],
                      .name = own_name(names[r], common),
                      .tip = names[r] + ": " + less + " " + exact(*measure.values[r]) +
                             (memory ? " bytes, " : ", ") + exact(rates.values[r]) + " " +
                             rates.unit,
                      .mark = mark_of(results[r]),
                      .result = r};
  };
  for (std::size_t r = 0; r < results.size(); ++r) panel.curves[0].push_back(point(r));
  for (const std::size_t r : front_of(results, measure, rates)) {
    ChartPoint& best = panel.curves[1].emplace_back(point(r));
    best.word = std::to_string(panel.curves[1].size());
    if (panel.curves[1].size() > kMostNotes) continue;
    chart.notes.push_back(
        best.word + ": " + best.name + ": " + format_number(rates.values[r]) + " " + rates.unit +
        ", " +
        (memory ? format(Bytes(*measure.values[r])) : measure.label + " " + shown(measure, r)));
  }
  note_failing(results, chart);
  chart.panels = {std::move(panel)};
  return chart;
}

LineChart pareto_figure(const std::vector<ReadResult>& results) {
  if (results.size() < 2) {
    throw Error(
        "figure pareto compares results, and there is one; expected several files, or a "
        "scenario with a sweep");
  }
  return pareto_chart(results, "memory");
}

}  // namespace interlock
