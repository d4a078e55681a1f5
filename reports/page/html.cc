// HTML report: one offline page with headlines, tables and charts of every scenario.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/text.h"
#include "reports/charts/page_picture.h"
#include "reports/headlines/explanation_headlines.h"
#include "reports/headlines/headlines.h"
#include "reports/page/page_breakdown.h"
#include "reports/page/page_data.h"
#include "reports/page/page_frame.h"
#include "reports/page/page_sections.h"
#include "reports/page/page_sweep.h"
#include "reports/page/scenario_markup.h"
#include "reports/report.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"
#include "reports/words/excerpt.h"
#include "reports/words/mesh_words.h"

namespace interlock {
namespace {

constexpr std::int64_t kSpansOfPage = 2'000'000;
constexpr std::size_t kBarsOfPage = 768;

std::string headlines_html(const ScenarioResult& result) {
  constexpr std::size_t kLongNote = 120;  // more than a card of its own width holds well
  std::string html = "<dl class=\"headlines\">\n";
  for (const Headline& headline : all_headlines(result)) {
    html += headline.note.size() > kLongNote ? "<div class=\"wide\">" : "<div>";
    html += tagged("dt", "", headline.label);
    html +=
        tagged("dd", headline.alarm ? "class=\"value alarm\"" : "class=\"value\"", headline.value);
    if (!headline.note.empty()) html += tagged("dd", "class=\"note\"", headline.note);
    html += "</div>\n";
  }
  return html + "</dl>\n";
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

/// Names all that is needed to get the same numbers again.
std::string origin_html(const ScenarioResult& result) {
  constexpr std::size_t kDigits = 12;
  const std::string hash = sha256(scenario_json(result.plan.question).dump()).substr(0, kDigits);
  return tagged("p", "class=\"note origin\"",
                "Scenario " + hash + " (start of its SHA-256), engine " +
                    result.measurement.metrics.engine + ", seed " +
                    std::to_string(result.plan.question.simulation.seed) +
                    ", interlock " INTERLOCK_VERSION ".");
}

/// Returns how much of scenario `index` is drawn, in a page of `drawn` scenarios.
DrawnRoom room_for(std::size_t drawn, std::size_t index) {
  const DrawnRoom alone;
  return {std::min(kSpansOfPage / static_cast<std::int64_t>(drawn), alone.spans),
          std::min(kBarsOfPage / drawn, alone.bars), section_name(index) + "-"};
}

std::string scenario_html(const ScenarioResult& result, const DrawnRoom& room) {
  const ScenarioMarkup markup = scenario_markup(result, room);
  return markup.origin + markup.headlines + markup.tables + tagged("h3", "", "Over time") +
         markup.excerpt +
         tagged("p", "class=\"note\"",
                "Drag to move; pinch, or click and turn the wheel, or Ctrl and wheel, to zoom; "
                "touch or point for details; click an op for what it waited for. Keys do the same: "
                "arrows, + and -; Enter, comma, full stop and < for ops. Between the dashed lines: "
                "the measured window.") +
         data_html("application/scenario+json", markup.data);
}

std::string comparison_title(const std::vector<ScenarioResult>& results) {
  const std::string common = common_name(results);
  const std::string words = std::to_string(results.size()) + " scenarios compared";
  return common.empty() ? words : common + ": " + words;
}

/// Returns links to the parts of a page of several scenarios.
std::string contents_html(bool with_sweep) {
  std::vector<std::pair<const char*, const char*>> parts = {{"comparison", "Comparison"}};
  if (with_sweep) parts.push_back({"sweep", "Sweep and trade-offs"});
  parts.push_back({"timelines", "Scenarios"});
  std::string html = "<nav aria-label=\"Contents\">\n";
  for (const auto& [id, words] : parts) {
    html += tagged("a", std::string("href=\"#") + id + "\"", words);
  }
  return html + "</nav>\n";
}

std::string comparison_html(const std::vector<ScenarioResult>& results,
                            const PageSections& sections) {
  Grid grid = comparison_grid(results);
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!sections.drawn[i]) continue;
    grid.rows[i][0].link = "#" + section_name(i);
    ++drawn;
  }
  std::string html = "<div id=\"comparison\">\n" + table_html(grid, "comparison") + "</div>\n";
  html += tagged("p", "class=\"note\"", comparison_note());
  if (drawn == results.size()) return html;
  return html + tagged("p", "class=\"note\"",
                       "Drawn below: " + std::to_string(drawn) + " scenarios of " +
                           std::to_string(results.size()) +
                           ": the first, the fastest, the Pareto front of throughput against "
                           "memory, and others in their order.");
}

/// Returns the section of one scenario of several: folded, unless it tells most.
std::string section_html(const ScenarioResult& result, std::size_t index,
                         const PageSections& sections) {
  const auto drawn = std::count(sections.drawn.begin(), sections.drawn.end(), true);
  const std::string mark =
      sections.marks[index].empty()
          ? ""
          : " <span class=\"mark\">" + escape_markup(sections.marks[index]) + "</span>";
  return "<section id=\"" + section_name(index) + "\" tabindex=\"-1\"><details" +
         (sections.open[index] ? " open" : "") + "><summary><h2>" +
         escape_markup(result.plan.question.name) + "</h2>" + mark + "</summary>\n" +
         scenario_html(result, room_for(static_cast<std::size_t>(drawn), index)) +
         "</details></section>\n";
}

std::string content_html(const std::vector<ScenarioResult>& results) {
  if (results.size() == 1) {
    return "<section>" + tagged("h1", "", results[0].plan.question.name) +
           scenario_html(results[0], room_for(1, 0)) + "</section>\n";
  }
  const PageSections sections = page_sections(results);
  const std::vector<ReadResult> read =
      read_result_files({parse_json(result_json(results), "all")}).results;
  std::vector<std::string> why;
  for (const ScenarioResult& result : results) {
    std::string& said = why.emplace_back();
    for (const std::string& line : warnings(result)) said += line + " ";
  }
  const std::string sweep = sweep_html(read, why, sections.drawn);
  std::string html = tagged("h1", "", comparison_title(results)) + contents_html(!sweep.empty());
  html += comparison_html(results, sections) + sweep;
  html +=
      "<div class=\"tools\" id=\"timelines\"><label><input type=\"checkbox\" id=\"same-scale\" "
      "checked> same time scale in all charts</label></div>\n";
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (sections.drawn[i]) html += section_html(results[i], i, sections);
  }
  return html;
}

}  // namespace

ScenarioMarkup scenario_markup(const ScenarioResult& result, const DrawnRoom& room) {
  const Excerpt excerpt = choose_excerpt(result.measurement, room.spans);
  ScenarioMarkup markup;
  markup.origin = tagged("p", "class=\"note\"", subtitle(result));
  const std::string layout = layout_words(result.plan.question);
  if (!layout.empty()) markup.origin += tagged("p", "class=\"note\"", layout);
  markup.origin += origin_html(result);
  markup.headlines = warnings_html(result) + headlines_html(result);
  markup.tables = "<div class=\"beside\">\n<div>" + tagged("h3", "", "Devices") +
                  long_table_html(device_grid(result), "devices") + "</div>\n<div>" +
                  breakdown_html(result, room.bars, room.id) + "</div>\n</div>\n";
  const Grid idle = idle_grid(result);
  if (idle.columns.size() > 1) {
    markup.tables += "<details><summary>Why devices are idle</summary>\n" +
                     long_table_html(idle, "idle") + "</details>\n";
  }
  const auto links = result.measurement.metrics.links.size();
  if (links > 0) {
    markup.tables += "<details><summary>Links (" + std::to_string(links) + ")</summary>\n" +
                     long_table_html(link_grid(result), "links") + "</details>\n";
  }
  markup.excerpt = excerpt_html(result, excerpt);
  markup.data = page_data(result, excerpt);
  return markup;
}

std::string html_report(const std::vector<ScenarioResult>& results) {
  CHECK(!results.empty(), "a report needs a result");
  const std::string title =
      results.size() == 1 ? results[0].plan.question.name : comparison_title(results);
  return html_page(title, content_html(results));
}

}  // namespace interlock
