// Training curves as a page: a table, and losses against steps and time.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/training_page.h"

#include <algorithm>
#include <cmath>

#include "reports/page/page_frame.h"
#include "reports/result/execution_report.h"

namespace interlock {
namespace {

/// Says how to read the curves, and what they leave out.
std::string note_of(const std::vector<TrainingCurve>& curves) {
  std::size_t steps = 0;
  bool stopped = false, broken = false;
  for (const TrainingCurve& run : curves) {
    steps = std::max(steps, run.losses.size());
    stopped = stopped || static_cast<int>(run.losses.size()) < run.wanted_steps;
    broken = broken || std::any_of(run.losses.begin(), run.losses.end(),
                                   [](double loss) { return !std::isfinite(loss); });
  }
  std::string note = "Point at a curve for its values.";
  if (steps > kMostLossPoints) {
    note += " Each point is a mean over up to " +
            std::to_string((steps + kMostLossPoints - 1) / kMostLossPoints) + " steps.";
  }
  if (stopped) note += " A run was stopped before its last step.";
  if (broken) note += " Curves end where a loss was no number.";
  return note;
}

}  // namespace

std::string execution_html(const ExecutionRecord& record) {
  const Grid clocks = clock_grid(record), products = product_grid(record);
  std::string html = tagged("h3", "", "What ran") + table_html(execution_grid(record), "execution");
  html += clocks.rows.empty()
              ? tagged("p", "class=\"note\"", "Clocks are unknown: NVML is not there.")
              : tagged("h3", "", "Clocks during the run") + table_html(clocks, "clocks");
  return html + tagged("h3", "", "Products") + long_table_html(products, "products");
}

std::string training_html(const std::vector<TrainingCurve>& curves) {
  const std::string common = curves.empty() ? "" : common_name(names_of(curves));
  const std::string title = common.empty() ? "Training" : common + ": training";
  std::string content = tagged("h1", "", title) + table_html(training_grid(curves), "training") +
                        tagged("p", "class=\"note\"", training_note(curves)) +
                        tagged("h2", "", "Losses") + line_chart_html(training_chart(curves)) +
                        tagged("p", "class=\"note\"", note_of(curves));
  for (const TrainingCurve& run : curves) {
    if (!run.execution) continue;
    content += tagged("h2", "", own_name(run.name, common)) + execution_html(*run.execution);
  }
  return html_page(title, content);
}

}  // namespace interlock
