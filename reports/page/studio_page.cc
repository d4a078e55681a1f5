// The studio's page, put together.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/studio_page.h"

#include "reports/page/page_frame.h"
#include "reports/result/value_json.h"
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

}  // namespace interlock
