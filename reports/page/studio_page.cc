// The studio's page, put together.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/studio_page.h"

#include <utility>
#include <vector>

#include "reports/answers/search_report.h"
#include "reports/page/page_frame.h"
#include "reports/result/gzip.h"
#include "reports/result/value_json.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"
#include "scenarios/contract/json_schema.h"

namespace interlock {
namespace {

/// Returns a script element that holds `bytes` for offline.js, compressed.
std::string packed_html(const char* id, std::string_view bytes) {
  const std::string packed = deflated(bytes);
  return "<script type=\"application/octet-stream\" id=\"" + std::string(id) + "\">" +
         base64(packed.data(), packed.size()) + "</script>\n";
}

std::string engine_html(const OfflineEngine& engine) {
  JsonValue files = json_object({});
  for (const auto& [path, contents] : engine.files) {
    files.members.push_back({path, json_text(contents)});
  }
  const JsonValue parts =
      json_object({{"script", json_text(engine.script + embedded({"offline_worker.js"}))},
                   {"files", std::move(files)}});
  return packed_html("engine-files", json_line(parts)) +
         packed_html("engine-program", engine.program);
}

/// The policies of pages: their own scripts, and the engine inside or that of their server.
constexpr const char* kServedPolicy = "script-src 'unsafe-inline'; connect-src 'self'";
constexpr const char* kOfflinePolicy =
    "script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:";

}  // namespace

std::string studio_page(const StudioOpening& opening) {
  const JsonValue data = json_object({{"file", json_text(opening.file)},
                                      {"text", json_text(opening.text)},
                                      {"version", json_text(INTERLOCK_VERSION)},
                                      {"schema", json_schema()}});
  const bool offline = opening.engine.has_value();
  return filled_page(
      "studio.html",
      {{"style", embedded({"codemirror.css", "show-hint.css", "lint.css", "page.css", "views.css",
                           "studio.css"})},
       {"policy", offline ? kOfflinePolicy : kServedPolicy},
       {"data", data_html("application/studio+json", json_line(data))},
       {"engine", offline ? engine_html(*opening.engine) : ""},
       {"editor_script", embedded({"codemirror.js", "javascript.js", "matchbrackets.js",
                                   "closebrackets.js", "show-hint.js", "lint.js"})},
       {"script",
        embedded(
            {"axis.js",      "data.js",        "view.js",     "chart.js",
             "graph.js",     "describe.js",    "coverage.js", "timeline.js",
             "selection.js", "utilisation.js", "memory.js",   "choices.js",
             "charts.js",    "json_text.js",   "engine.js",   offline ? "offline.js" : "served.js",
             "editor.js",    "controls.js",    "results.js",  "answers.js",
             "studio.js"})}});
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
