// The studio's page, put together.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/studio_page.h"

#include <vector>

#include "reports/answers/search_report.h"
#include "reports/page/page_frame.h"
#include "reports/result/value_json.h"
#include "reports/words/scale.h"
#include "scenarios/contract/json_schema.h"

namespace interlock {
std::string studio_page(const StudioOpening& opening) {
  const JsonValue data = json_object({{"file", json_text(opening.file)},
                                      {"text", json_text(opening.text)},
                                      {"version", json_text(INTERLOCK_VERSION)},
                                      {"schema", json_schema()}});
  return filled_page(
      "studio.html",
      {{"style", embedded({"codemirror.css", "show-hint.css", "lint.css", "page.css", "views.css",
                           "studio.css"})},
       {"data", data_html("application/studio+json", json_line(data))},
       {"editor_script", embedded({"codemirror.js", "javascript.js", "matchbrackets.js",
                                   "closebrackets.js", "show-hint.js", "lint.js"})},
       {"script",
        embedded({"axis.js",     "data.js",     "view.js",     "chart.js",     "graph.js",
                  "describe.js", "coverage.js", "timeline.js", "selection.js", "utilisation.js",
                  "memory.js",   "choices.js",  "charts.js",   "json_text.js", "engine.js",
                  "editor.js",   "controls.js", "results.js",  "answers.js",   "studio.js"})}});
}

LineChart search_front(const SearchResult& result) {
  std::vector<double> times = {0};
  for (const FoundPlan& plan : result.plans) times.push_back(plan.estimate.step_time);
  const Scale time = scale_of_seconds(times);
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  ChartCurve having, others;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const FoundPlan& plan = result.plans[i];
    (plan.worth_having ? having : others)
        .push_back({.x = plan.estimate.peak_memory / kGibibyte,
                    .y = plan.estimate.step_time / time.size,
                    .name = plan_words(plan),
                    .word = i == 0 ? "best" : "",
                    .mark = plan.worth_having ? PointMark::Dot : PointMark::Pale,
                    .result = i});
  }
  LineChart chart{
      .title = "Plans", .names = {"worth having", "next best"}, .unjoined = {true, true}};
  chart.panels.push_back({.x_label = "memory of the fullest device (GiB)",
                          .y_label = "step time (" + time.unit + ")",
                          .curves = {having, others},
                          .dots = Dots::Drawn});
  return chart;
}

}  // namespace interlock
