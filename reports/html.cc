// HTML report: one offline page with figures, tables and charts of every scenario.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/text.h"
#include "reports/encode.h"
#include "reports/excerpt.h"
#include "reports/explanation_figures.h"
#include "reports/figures.h"
#include "reports/mesh_words.h"
#include "reports/page_data.h"
#include "reports/report.h"
#include "reports/scale.h"
#include "reports/scenario_json.h"
#include "reports/web_file.h"

namespace interlock {
namespace {

constexpr std::int64_t kMostSpans = 1'000'000;  // of one scenario
constexpr std::int64_t kSpansOfPage = 2'000'000;
constexpr std::size_t kMostRows = 512;  // of a table

std::string tagged(const std::string& tag, const std::string& attributes, const std::string& text) {
  const std::string space = attributes.empty() ? "" : " ";
  return "<" + tag + space + attributes + ">" + escape_markup(text) + "</" + tag + ">\n";
}

std::string figures_html(const ScenarioResult& result) {
  std::string html = "<dl class=\"figures\">\n";
  for (const Figure& figure : headline_figures(result)) {
    html += "<div>" + tagged("dt", "", figure.label);
    html += tagged("dd", figure.alarm ? "class=\"value alarm\"" : "class=\"value\"", figure.value);
    if (!figure.note.empty()) html += tagged("dd", "class=\"note\"", figure.note);
    html += "</div>\n";
  }
  return html + "</dl>\n";
}

std::string cell_html(const Cell& cell, const Column& column) {
  std::string classes = column.number ? "number" : "";
  if (cell.alarm) classes += classes.empty() ? "alarm" : " alarm";
  const std::string open = classes.empty() ? "<td>" : "<td class=\"" + classes + "\">";
  std::string bar;
  if (cell.bar) {
    const double share = std::clamp(*cell.bar, 0.0, 1.0);
    bar = "<span class=\"bar\"><i style=\"width:" + fixed(100 * share, 1) + "%\"></i></span>";
  }
  return open + bar + escape_markup(cell.text) + "</td>";
}

std::string table_html(const Grid& grid, const std::string& kind) {
  std::string html = "<div class=\"scroll\"><table class=\"" + kind + "\">\n<thead><tr>";
  for (const Column& column : grid.columns) {
    html += "<th" + std::string(column.number ? " class=\"number\"" : "") + ">" +
            escape_markup(column.head);
    if (!column.unit.empty()) html += "<small>" + escape_markup(column.unit) + "</small>";
    html += "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : grid.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += cell_html(row[i], grid.columns[i]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

/// The table, shortened if it would swamp the page.
std::string long_table_html(const Grid& grid, const std::string& kind) {
  const Grid shown = shorten(grid, kMostRows, {});
  std::string html = table_html(shown, kind);
  if (shown.rows.size() == grid.rows.size()) return html;
  return html + tagged("p", "class=\"note\"", rows_left_out(shown, grid));
}

std::string warnings_html(const ScenarioResult& result) {
  std::string html;
  for (const auto& line : warnings(result)) html += tagged("p", "class=\"alarm\"", line);
  return html;
}

/// Says which part of the run the charts hold, if it is not all of it.
std::string excerpt_html(const ScenarioResult& result, const Excerpt& excerpt) {
  if (excerpt.whole) return "";
  const auto all = static_cast<double>(result.measurement.log.spans.size());
  return tagged("p", "class=\"note\"",
                "The charts hold " + excerpt.caption + ": " +
                    format_number(static_cast<double>(excerpt.spans)) + " of the " +
                    format_number(all) + " ops that ran. The figures above are of all " +
                    "measured steps.");
}

/// What it takes to get the same numbers again.
std::string origin_html(const ScenarioResult& result) {
  constexpr std::size_t kDigits = 12;
  const std::string hash = sha256(scenario_json(result.scenario).dump()).substr(0, kDigits);
  return tagged("p", "class=\"note origin\"",
                "Scenario " + hash + " (begin of its SHA-256), engine " +
                    result.measurement.metrics.engine + ", seed " +
                    std::to_string(result.scenario.seed) + ", interlock " INTERLOCK_VERSION ".");
}

std::string scenario_html(const ScenarioResult& result, std::int64_t most_spans) {
  const Excerpt excerpt = choose_excerpt(result.measurement, most_spans);
  std::string html = tagged("p", "class=\"note\"", subtitle(result));
  const std::string layout = layout_words(result.scenario);
  if (!layout.empty()) html += tagged("p", "class=\"note\"", layout);
  html += origin_html(result);
  html += warnings_html(result) + figures_html(result);
  html += tagged("h3", "", "Devices") + long_table_html(device_grid(result), "devices");
  const Grid bubbles = bubble_grid(result);
  if (bubbles.columns.size() > 1) {
    html += "<details><summary>Why devices are idle</summary>\n" +
            long_table_html(bubbles, "bubbles") + "</details>\n";
  }
  const auto links = result.measurement.metrics.links.size();
  if (links > 0) {
    html += "<details><summary>Links (" + std::to_string(links) + ")</summary>\n" +
            long_table_html(link_grid(result), "links") + "</details>\n";
  }
  html += tagged("h3", "", "Over time") + excerpt_html(result, excerpt);
  html += tagged(
      "p", "class=\"note\"",
      "Drag to move; pinch, or click and turn the wheel, or Ctrl and wheel, to zoom; touch "
      "or point for details; click an op for what it waited for. Keys do the same: arrows, + "
      "and -; Enter, comma, full stop and < for ops. Between the dashed lines: the measured "
      "window.");
  return html + "<script type=\"application/json\" class=\"scenario\">" +
         page_data(result, excerpt) + "</script>\n";
}

std::string comparison_title(const std::vector<ScenarioResult>& results) {
  const std::string common = common_name(results);
  const std::string words = std::to_string(results.size()) + " scenarios compared";
  return common.empty() ? words : common + ": " + words;
}

std::string content_html(const std::vector<ScenarioResult>& results) {
  if (results.size() == 1) {
    return "<section>" + tagged("h1", "", results[0].scenario.name) +
           scenario_html(results[0], kMostSpans) + "</section>\n";
  }
  const std::size_t drawn = std::min(results.size(), kMostDrawn);
  const auto count = static_cast<std::int64_t>(drawn);
  const auto most_spans = std::min(kSpansOfPage / count, kMostSpans);
  std::string html = tagged("h1", "", comparison_title(results));
  html += table_html(comparison_grid(results), "comparison");
  html += tagged("p", "class=\"note\"", comparison_note());
  if (drawn < results.size()) {
    html += tagged("p", "class=\"note\"",
                   "Drawn below: the first " + std::to_string(drawn) + " scenarios of " +
                       std::to_string(results.size()) + ".");
  }
  html +=
      "<p><label><input type=\"checkbox\" id=\"same-scale\" checked> same time scale in all "
      "charts</label></p>\n";
  for (std::size_t i = 0; i < drawn; ++i) {
    html += "<section>" + tagged("h2", "", results[i].scenario.name) +
            scenario_html(results[i], most_spans) + "</section>\n";
  }
  return html;
}

std::string scripts() {
  std::string script;
  for (const char* name :
       {"axis.js", "data.js", "view.js", "chart.js", "graph.js", "describe.js", "coverage.js",
        "timeline.js", "selection.js", "utilisation.js", "memory.js", "main.js"}) {
    CHECK(!web_file(name).empty(), std::string("the page has its script ") + name);
    script += web_file(name);
  }
  return script;
}

/// `page` with each {{name}} replaced. What is put in is never searched for further names.
std::string fill(std::string_view page,
                 const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string html;
  for (std::size_t at = 0;;) {
    const std::size_t open = page.find("{{", at);
    html += page.substr(at, open - at);
    if (open == std::string_view::npos) return html;
    const std::size_t close = page.find("}}", open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    for (const auto& [part, text] : parts) {
      if (part == name) html += text;
    }
    at = close + 2;
  }
}

}  // namespace

std::string html_report(const std::vector<ScenarioResult>& results) {
  CHECK(!results.empty(), "a report needs a result");
  const std::string title =
      results.size() == 1 ? results[0].scenario.name : comparison_title(results);
  return fill(web_file("page.html"), {{"title", escape_markup(title)},
                                      {"style", std::string(web_file("page.css"))},
                                      {"content", content_html(results)},
                                      {"footer", "Made by interlock " INTERLOCK_VERSION "."},
                                      {"script", scripts()}});
}

}  // namespace interlock
