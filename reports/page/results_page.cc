// Lays a page of results out that were read back: there are no timelines to draw.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/results_page.h"

#include <algorithm>

#include "base/error.h"
#include "reports/charts/measures.h"
#include "reports/charts/paper_figures.h"
#include "reports/headlines/headlines.h"
#include "reports/page/page_frame.h"
#include "reports/page/page_sweep.h"

namespace interlock {
namespace {

/// Returns a row for each result, with the measures of pages that some result has.
Grid results_grid(const std::vector<ReadResult>& results) {
  constexpr std::size_t npos = std::string::npos;
  const std::vector<std::string> names = names_of(results);
  const std::string common = common_name(names);
  Grid grid{{{"Scenario", "", false}}, {}};
  for (const std::string& name : names) grid.rows.push_back({{own_name(name, common)}});
  for (const PageMeasure& each : page_measures()) {
    const Measured measure = measured(each.key, results).front();
    if (std::ranges::none_of(measure.values, [](const auto& value) { return value.has_value(); })) {
      continue;
    }
    const std::size_t unit = measure.label.ends_with(")") ? measure.label.rfind(" (") : npos;
    grid.columns.push_back(
        {measure.label.substr(0, unit),
         unit == npos ? "" : measure.label.substr(unit + 2, measure.label.size() - unit - 3)});
    for (std::size_t r = 0; r < results.size(); ++r) {
      const bool alarm = each.key == "memory" && !results[r].fits;
      grid.rows[r].push_back({.text = shown(measure, r), .alarm = alarm});
    }
  }
  return grid;
}

}  // namespace

std::string results_html(const std::vector<ReadResult>& results) {
  CHECK(!results.empty(), "a page has results");
  const std::string common = common_name(names_of(results));
  const std::string count = std::to_string(results.size());
  const std::string title = results.size() == 1 ? results[0].name
                            : common.empty()    ? count + " results"
                                                : common + ": " + count + " results";
  std::string html = tagged("h1", "", title);
  html += "<div id=\"comparison\">\n" + long_table_html(results_grid(results), "comparison") +
          "</div>\n";
  const std::vector<std::string> why(results.size(), "Does not fit in memory.");
  html += sweep_html(results, why, std::vector(results.size(), false));
  return html_page(title, html);
}

}  // namespace interlock
