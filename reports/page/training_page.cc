// Training curves as a page: a table, then data that the page's scripts draw.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/training_page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/charts/loss_points.h"
#include "reports/page/page_frame.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPointsOnPage = 500;

Json curve_json(const TrainingCurve& run, const std::string& name) {
  const LossPoints points = loss_points(run, kPointsOnPage);
  return {{"name", clean_utf8(name)},
          {"steps", Json(points.steps)},
          {"measured_s", Json(points.measured)},
          {"simulated_s", Json(points.simulated)},
          {"loss", Json(points.loss)}};
}

/// What the curves leave out.
std::string note_of(const std::vector<TrainingCurve>& curves) {
  std::size_t steps = 0;
  bool stopped = false, broken = false;
  for (const TrainingCurve& run : curves) {
    steps = std::max(steps, run.losses.size());
    stopped = stopped || static_cast<int>(run.losses.size()) < run.wanted_steps;
    broken = broken || std::any_of(run.losses.begin(), run.losses.end(),
                                   [](double loss) { return !std::isfinite(loss); });
  }
  std::string note = "Loss of the whole network; simulated time: steps × predicted step time.";
  if (steps > kPointsOnPage) {
    note += " Each point is a mean over up to " +
            std::to_string((steps + kPointsOnPage - 1) / kPointsOnPage) + " steps.";
  }
  if (stopped) note += " A run was stopped before its last step.";
  if (broken) note += " Curves end where a loss was no number.";
  return note;
}

}  // namespace

std::string training_html(const std::vector<TrainingCurve>& curves) {
  const std::string common = curves.empty() ? "" : common_name(names_of(curves));
  const std::string title = common.empty() ? "Training" : common + ": training";
  Json data = Json::array();
  for (const TrainingCurve& run : curves)
    data.push_back(curve_json(run, own_name(run.name, common)));
  const std::string content =
      tagged("h1", "", title) + table_html(training_grid(curves), "training") +
      tagged("p", "class=\"note\"", training_note(curves)) + tagged("h2", "", "Losses") +
      tagged("p", "class=\"note\"", note_of(curves)) +
      tagged("p", "class=\"note\"",
             "Point at a plot, or reach it with the Tab key and move with the arrow keys.") +
      "<div>\n" + data_html("application/losses+json", data.dump()) + "</div>\n";
  return html_page(title, content);
}

}  // namespace interlock
