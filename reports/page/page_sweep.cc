// Sweeps: a heat-map and curves for each measure, of which the page's script shows one.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_sweep.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "reports/charts/measures.h"
#include "reports/charts/page_picture.h"
#include "reports/charts/paper_figures.h"
#include "reports/charts/swept.h"
#include "reports/page/page_frame.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Results = std::vector<ReadResult>;

constexpr std::size_t kFewestUnswept = 3;  // results that are worth a front
constexpr std::size_t kMostCurves = 12, kMostDots = 240;

/// The results of a page, as its views need them.
struct Sweep {
  const Results& read;
  const std::vector<std::string>& why;  // results do not fit
  std::optional<SweptTable> table;      // of several rows and columns
  const std::vector<bool>& drawn;       // those that have a section
};

/// Returns a table in which every result has a place of its own, its columns ascending if they are
/// numbers; nothing if there is none.
std::optional<SweptTable> table_of(const Results& results) {
  const auto same_paths = [&](const ReadResult& result) {
    return std::equal(result.swept.begin(), result.swept.end(), results[0].swept.begin(),
                      results[0].swept.end(),
                      [](const SweptValue& a, const SweptValue& b) { return a.path == b.path; });
  };
  if (results[0].swept.size() < 2 || !std::all_of(results.begin(), results.end(), same_paths))
    return std::nullopt;
  SweptTable table = swept_table(results);
  std::vector<std::size_t> order(table.columns.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::all_of(table.columns.begin(), table.columns.end(),
                  [](const SweptValue& value) { return value.number.has_value(); })) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return *table.columns[a].number < *table.columns[b].number;
    });
  }
  SweptTable sorted{table.rows, {}, std::vector(table.rows.size(), table.cells[0])};
  std::size_t places = 0;
  for (std::size_t c = 0; c < order.size(); ++c) {
    sorted.columns.push_back(table.columns[order[c]]);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      sorted.cells[row][c] = table.cells[row][order[c]];
      places += sorted.cells[row][c] ? 1 : 0;
    }
  }
  const bool several = sorted.rows.size() > 1 && sorted.columns.size() > 1;
  return several && places == results.size() ? std::optional(sorted) : std::nullopt;
}

/// A measure of a table's results.
struct Heat {
  const Results& results;
  const Measured& measure;
  std::optional<std::size_t> best = {}, worst = {};  // of those that fit

  double value(std::size_t result) const { return *measure.values[result]; }
};

Heat heat_of(const Results& results, const Measured& measure, bool more_is_better) {
  Heat heat{results, measure};
  const auto better = [&](std::size_t a, std::size_t b) {
    return more_is_better ? heat.value(a) > heat.value(b) : heat.value(a) < heat.value(b);
  };
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!results[r].fits) continue;
    if (!heat.best || better(r, *heat.best)) heat.best = r;
    if (!heat.worst || better(*heat.worst, r)) heat.worst = r;
  }
  return heat;
}

/// Returns a cell. `why`: the sentence of a result that does not fit.
std::string cell_html(const Heat& heat, std::size_t result, const std::string& why, bool leads) {
  constexpr double kStrong = 0.6;  // share of the ramp from which letters change their colour
  std::string text = shown(heat.measure, result), look;
  if (!heat.results[result].fits) {
    text = "✗ " + text;
    look = " class=\"fails\" title=\"" + escape_markup(why) + "\"";
  } else {
    const bool best = result == *heat.best;
    const double whole = heat.value(*heat.best) - heat.value(*heat.worst);
    const double share = whole == 0 ? 0.5 : (heat.value(result) - heat.value(*heat.worst)) / whole;
    const std::string classes =
        std::string(share > kStrong ? "strong" : "") + (best ? " best" : "");
    if (best) text = "★ " + text;
    look = (classes.empty() ? "" : " class=\"" + classes + "\"") + std::string(" style=\"--t:") +
           fixed(share, 2) + "\"";
  }
  if (leads) text = "<a href=\"#" + section_name(result) + "\">" + text + "</a>";
  return "<td" + look + ">" + text + "</td>";
}

std::string heat_html(const Sweep& sweep, const Heat& heat) {
  const SweptTable& table = *sweep.table;
  const std::vector<SweptValue>& swept = sweep.read[0].swept;
  std::string corner;
  for (std::size_t i = 0; i + 1 < swept.size(); ++i) {
    corner += (i == 0 ? "" : ", ") + last_key(swept[i].path);
  }
  std::string html =
      "<div class=\"scroll heat-place\"><table class=\"heat\">\n<caption class=\"note\">" +
      escape_markup(heat.measure.label) + "</caption>\n<thead><tr><th class=\"corner\">" +
      escape_markup(corner) + " ↓<br>" + escape_markup(last_key(swept.back().path)) + " →</th>";
  for (const SweptValue& value : table.columns) {
    html += "<th scope=\"col\">" + escape_markup(value.label) + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    html += "<tr><th scope=\"row\">" + escape_markup(table.rows[row]) + "</th>";
    for (const std::optional<std::size_t>& result : table.cells[row]) {
      html += result ? cell_html(heat, *result, sweep.why[*result], sweep.drawn[*result])
                     : "<td class=\"missing\">–</td>";
    }
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n<p class=\"note\">";
  html += !heat.best ? "Nothing fits"
                     : "Worst " + shown(heat.measure, *heat.worst) +
                           " <span class=\"ramp\"></span> " + shown(heat.measure, *heat.best);
  return html + " · ★ best · ✗ does not fit, point at it for why · – not run</p>\n";
}

/// Returns `chart` with links to sections that the page has. REQUIRES: its points are of results.
std::string linked_html(LineChart chart, const std::vector<bool>& drawn) {
  for (ChartPanel& panel : chart.panels) {
    for (ChartCurve& curve : panel.curves) {
      for (ChartPoint& point : curve) {
        if (point.result && !drawn[*point.result]) point.result.reset();
      }
    }
  }
  return line_chart_html(chart);
}

/// Returns the curves of one measure, not more than can be told apart.
std::string curves_html(const Sweep& sweep, LineChart chart) {
  chart.title = chart.panels[0].y_label + " along " + chart.panels[0].x_label;
  if (chart.names.size() > kMostCurves) {
    chart.notes.push_back("The first " + std::to_string(kMostCurves) + " of " +
                          std::to_string(chart.names.size()) + " curves; the tables have all.");
    chart.names.resize(kMostCurves);
    chart.panels[0].curves.resize(kMostCurves);
  }
  std::size_t points = 0;
  for (const ChartCurve& curve : chart.panels[0].curves) points += curve.size();
  if (points > kMostDots) chart.panels[0].dots = Dots::None;
  return linked_html(std::move(chart), sweep.drawn);
}

bool all_have(const Measured& measure) {
  return std::all_of(measure.values.begin(), measure.values.end(),
                     [](const std::optional<double>& value) { return value.has_value(); });
}

/// Returns a part of the page for each measure that all results have.
std::string measures_html(const Sweep& sweep) {
  std::string parts;
  for (const auto& [key, more_is_better] : page_measures()) {
    const Measured measure = measured(key, sweep.read).front();
    const std::optional<LineChart> chart = sweep_chart(sweep.read, key);
    if (!all_have(measure)) continue;
    parts += "<div class=\"beside\" data-name=\"" + escape_markup(measure.label) + "\">\n";
    if (sweep.table) {
      const Heat heat = heat_of(sweep.read, measure, more_is_better);
      parts += "<div>\n" + heat_html(sweep, heat) + "</div>\n";
    }
    if (chart) parts += curves_html(sweep, *chart);
    parts += "</div>\n";
  }
  if (!sweep.table && !find_axis(sweep.read)) return "";
  return tagged("h2", "id=\"the-sweep\"", "The sweep") +
         "<div class=\"choices\" data-words=\"Measure\">\n" + parts + "</div>\n";
}

/// Returns charts of throughput against the measures that all results have, of which less is
/// better: memory, whose front marks sections, and where results are few the others.
std::string trade_offs_html(const Results& results, const std::vector<bool>& drawn) {
  std::string parts;
  std::vector<PageMeasure> measures = page_measures();
  std::stable_partition(measures.begin(), measures.end(),
                        [](const PageMeasure& each) { return each.key == "memory"; });
  for (const auto& [key, more_is_better] : measures) {
    const bool inverse = key == "step_time";
    const bool few = parts.empty() || results.size() <= kMostDots;
    if (more_is_better || inverse || !few || !all_have(measured(key, results).front())) continue;
    const LineChart chart = pareto_chart(results, key);
    parts += "<div data-name=\"" + escape_markup(chart.panels[0].x_label) + "\">\n" +
             linked_html(chart, drawn) + "</div>\n";
  }
  return tagged("h2", "id=\"trade-offs\"", "Trade-offs") +
         "<div class=\"choices\" data-words=\"Throughput against\">\n" + parts + "</div>\n";
}

}  // namespace

std::string sweep_html(const std::vector<ReadResult>& results, const std::vector<std::string>& why,
                       const std::vector<bool>& drawn) {
  if (results.size() < 2) return "";
  const bool swept = std::none_of(results.begin(), results.end(),
                                  [](const ReadResult& result) { return result.swept.empty(); });
  if (!swept && results.size() < kFewestUnswept) return "";
  const std::string measures = swept ? measures_html({results, why, table_of(results), drawn}) : "";
  return "<div id=\"sweep\">\n" + measures + trade_offs_html(results, drawn) + "</div>\n";
}

}  // namespace interlock
