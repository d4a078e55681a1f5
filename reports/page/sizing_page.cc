// A sizing as curves, and as one offline page.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/sizing_page.h"

#include <algorithm>
#include <functional>
#include <set>

#include "reports/answers/search_report.h"
#include "reports/answers/sizing_report.h"
#include "reports/charts/chart_axes.h"
#include "reports/page/page_frame.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Value = std::function<double(const SizedPlan&)>;

/// Returns the panel of `value`, with a curve for each machine through its sizes that fit.
ChartPanel panel_of(const Sizing& sizing, const std::string& label, const Value& value) {
  ChartPanel panel{.x_label = "devices", .y_label = label, .curves = {}, .dots = Dots::Drawn};
  panel.curves.resize(sizing.question.machines.size());
  std::set<double> devices;
  for (std::size_t i = 0; i < sizing.rows.size(); ++i) {
    const SizedPlan& row = sizing.rows[i];
    devices.insert(row.devices);
    if (!row.fits) continue;
    const std::string name = name_of(sizing, row);
    const bool best = sizing.ranking.front() == i;
    panel.curves[row.machine].push_back({.x = static_cast<double>(row.devices),
                                         .y = value(row),
                                         .name = name,
                                         .tip = name + ": " + label + " " + exact(value(row)),
                                         .word = best ? "best" : "",
                                         .mark = row.on_front ? PointMark::Dot : PointMark::Pale,
                                         .result = i});
  }
  panel.x_marks.assign(devices.begin(), devices.end());
  return panel;
}

/// Makes the axis up of `panel` logarithmic.
void use_logarithms(ChartPanel& panel) {
  Range range;
  for (const ChartCurve& curve : panel.curves) {
    for (const ChartPoint& point : curve) range.add(point.y);
  }
  if (range.least > 0 && range.least <= range.most) panel.y_marks = logarithmic_marks(range);
}

/// Adds a line from the first point of each curve on, along which time x devices stays the same.
void add_ideals(ChartPanel& panel) {
  for (const ChartCurve& curve : panel.curves) {
    if (curve.size() < 2) continue;
    const double most = panel.x_marks.back();
    const double floor = panel.y_marks.empty() ? 0 : panel.y_marks.front();
    const double work = curve.front().x * curve.front().y;
    const double end = floor > 0 ? std::min(most, work / floor) : most;
    panel.guides.push_back({curve.front(), {.x = end, .y = work / end}});
  }
}

/// Lets no point of `chart` lead anywhere.
void forget_sections(LineChart& chart) {
  for (ChartPanel& panel : chart.panels) {
    for (ChartCurve& curve : panel.curves) {
      for (ChartPoint& point : curve) point.result.reset();
    }
  }
}

}  // namespace

LineChart sizing_chart(const Sizing& sizing) {
  const SizingQuestion& question = sizing.question;
  LineChart chart{.title = training_words(sizing),
                  .subtitle = question.weak ? "weak scaling: the batch grows with the devices"
                                            : "strong scaling: one batch for all sizes"};
  std::vector<double> times = {0};
  for (std::size_t machine = 0; machine < question.machines.size(); ++machine) {
    chart.names.push_back(machine_name(sizing, machine));
  }
  for (const SizedPlan& row : sizing.rows) {
    if (row.fits) times.push_back(row.time.value());
  }
  if (times.size() == 1) return chart;
  const Scale time = scale_of_seconds(times);
  chart.panels.push_back(panel_of(sizing, "time (" + time.unit + ")", [&](const SizedPlan& row) {
    return row.time.value() / time.size;
  }));
  use_logarithms(chart.panels.front());
  add_ideals(chart.panels.front());
  const Scale cost = scale_of_costs(sizing);
  chart.panels.push_back(panel_of(sizing, "cost (" + cost.unit + ")", [&](const SizedPlan& row) {
    return cost_of(sizing, row) / cost.size;
  }));
  const bool tokens = sizing.tokens_per_sample.has_value();
  chart.panels.push_back(
      panel_of(sizing, tokens ? "tokens/s/GPU" : "samples/s/GPU", [&](const SizedPlan& row) {
        const PlanEstimate& estimate = row.plan->estimate;
        return per_device(*row.plan, tokens ? estimate.tokens : estimate.samples);
      }));
  chart.notes.push_back(
      "Pale: another size takes no more time and costs no more. Grey: twice the devices in half "
      "the "
      "time.");
  return chart;
}

std::string sizing_markup(const Sizing& sizing, bool leads) {
  std::string content;
  for (const std::string& sentence : recommendation(sizing)) {
    content += tagged("p", "", sentence);
  }
  content += long_table_html(sizing_grid(sizing), "sizing");
  for (const std::string& note : sizing_notes(sizing)) {
    content += tagged("p", "class=\"note\"", note);
  }
  if (!sizing.ranking.empty() && sizing.question.devices.size() > 1) {
    LineChart chart = sizing_chart(sizing);
    if (!leads) forget_sections(chart);
    content += tagged("h2", "", "Curves") + line_chart_html(chart);
  }
  content += tagged("h2", "", "Plans");
  Grid plans{{{"Machine", "", false}, {"Plan", "", false}}, {}};
  for (const SizedPlan& row : sizing.rows) {
    plans.rows.push_back({{name_of(sizing, row)}, {.text = row_words(row), .alarm = !row.fits}});
  }
  content += long_table_html(plans, "plans");
  return content;
}

std::string sizing_html(const Sizing& sizing) {
  return html_page(sizing.question.model + ": sizes",
                   tagged("h1", "", training_words(sizing)) + sizing_markup(sizing, false));
}

}  // namespace interlock
