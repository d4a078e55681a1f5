// What training came to, as a table, as JSON and as a picture.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/training_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "reports/charts/line_chart.h"
#include "reports/charts/loss_points.h"
#include "reports/terminal/layout.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPointsInFile = 100;
constexpr std::size_t kEnds = 20;  // steps whose mean is the first, or the last, loss, at most

Json staleness_json(const TrainingCurve& run) {
  Json json = Json::object();
  for (const auto& [updates, count] : run.staleness) json[std::to_string(updates)] = count;
  return json;
}

Json json_of(const TrainingCurve& run) {
  std::vector<double> ends;
  for (const Seconds end : run.ends) ends.push_back(end.value());
  Json json{{"format", "interlock-training/1"},
            {"name", run.name},
            {"strategy", run.strategy},
            {"schedule", run.schedule},
            {"executor", run.executor},
            {"seed", run.seed},
            {"steps", run.losses.size()},
            {"stopped", static_cast<int>(run.losses.size()) < run.wanted_steps},
            {"staleness", staleness_json(run)},
            {"simulated_step_time_s", run.simulated_step.value()},
            {"loss", Json(run.losses)},
            {"measured_end_s", Json(ends)},
            {"held_peak_bytes", run.peaks},
            {"simulated_peak_bytes", run.simulated_peaks}};
  json["measured_step_time_s"] =
      run.measured_step > Seconds(0) ? Json(run.measured_step.value()) : Json(nullptr);
  Json& stages = json["stage_loss"] = Json::array();
  for (const std::vector<double>& losses : run.stage_losses) stages.push_back(Json(losses));
  return json;
}

std::vector<std::pair<double, double>> pairs(const std::vector<double>& x,
                                             const std::vector<double>& y) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < x.size(); ++i) points.emplace_back(x[i], y[i]);
  return points;
}

/// Steps whose mean is the first loss of `run`, and of others that of the last one.
std::size_t steps_at_end(const TrainingCurve& run) {
  return std::min(kEnds, std::max<std::size_t>(1, run.losses.size() / 2));
}

/// How old the weights were, of each run whose weights were; empty if none's.
std::string staleness_note(const std::vector<TrainingCurve>& curves) {
  const std::string common = curves.empty() ? "" : common_name(names_of(curves));
  std::string note;
  for (const TrainingCurve& run : curves) {
    if (run.staleness.empty() || run.staleness.rbegin()->first == 0) continue;
    std::string counts;
    for (const auto& [updates, count] : run.staleness) {
      counts +=
          (counts.empty() ? "" : ", ") + std::to_string(updates) + ": " + std::to_string(count);
    }
    note += "Staleness" + (curves.size() > 1 ? " of " + own_name(run.name, common) : "") +
            " (updates between a forward and its own update: micro-batches): " + counts + ".\n";
  }
  return note;
}

std::string loss_text(double loss) { return std::isfinite(loss) ? fixed(loss, 3) : "NaN"; }

}  // namespace

std::vector<std::string> names_of(const std::vector<TrainingCurve>& curves) {
  std::vector<std::string> names;
  names.reserve(curves.size());
  for (const TrainingCurve& run : curves) names.push_back(run.name);
  return names;
}

Grid training_grid(const std::vector<TrainingCurve>& curves) {
  std::vector<double> times = {0};
  double most = 0;
  for (const TrainingCurve& run : curves) {
    times.push_back(run.simulated_step.value());
    times.push_back(run.measured_step.value());
    for (const std::int64_t peak : run.peaks) most = std::max(most, static_cast<double>(peak));
  }
  const Scale time = scale_of_seconds(times), memory = scale_of_bytes({most});
  Grid grid{.columns = {{"Scenario", "", false},
                        {"Steps", ""},
                        {"First loss", ""},
                        {"Last loss", ""},
                        {"Measured", time.unit + "/step"},
                        {"Simulated", time.unit + "/step"},
                        {"Memory", memory.unit}}};
  const std::string common = curves.empty() ? "" : common_name(names_of(curves));
  for (const TrainingCurve& run : curves) {
    const std::size_t steps = run.losses.size(), few = steps_at_end(run);
    const auto peak = std::max_element(run.peaks.begin(), run.peaks.end());
    grid.rows.push_back(
        {{own_name(run.name, common)},
         {std::to_string(steps)},
         {steps > 0 ? loss_text(mean_of(run.losses, 0, few)) : "–"},
         {steps > 1 ? loss_text(mean_of(run.losses, steps - few, steps)) : "–"},
         {run.measured_step > Seconds(0) ? scaled(run.measured_step.value(), time) : "–"},
         {scaled(run.simulated_step.value(), time)},
         {peak == run.peaks.end() ? "–" : scaled(static_cast<double>(*peak), memory)}});
  }
  return grid;
}

std::string training_note(const std::vector<TrainingCurve>& curves) {
  std::size_t least = kEnds, most = 0;
  for (const TrainingCurve& run : curves) {
    least = std::min(least, steps_at_end(run));
    most = std::max(most, steps_at_end(run));
  }
  const std::string steps =
      least < most ? std::to_string(least) + " to " + std::to_string(most) : std::to_string(least);
  const bool one = least == 1 && most <= 1;
  return "First, last loss: of the whole network, " +
         (one ? std::string("of the first and of the last step")
              : "means of the first " + steps + " and of the last " + steps + " steps") +
         ". Memory: the most that tensors of a device held.";
}

std::string training_table(const std::vector<TrainingCurve>& curves, const TableStyle& style) {
  return lay_out(training_grid(curves), style) + "\n" + training_note(curves) + "\n" +
         staleness_note(curves);
}

std::string training_json(const std::vector<TrainingCurve>& curves) {
  if (curves.size() == 1) return json_of(curves[0]).dump(2) + "\n";
  Json list = Json::array();
  for (const TrainingCurve& run : curves) list.push_back(json_of(run));
  return list.dump(2) + "\n";
}

std::string training_svg(const std::vector<TrainingCurve>& curves) {
  LineChart chart{.title = "Loss against steps and time",
                  .subtitle =
                      "loss of the whole network; simulated time: steps x predicted step "
                      "time"};
  ChartPanel by_step{.x_label = "steps", .y_label = "loss (nats)", .curves = {}};
  ChartPanel measured{.x_label = "measured time (s)", .y_label = "loss (nats)", .curves = {}};
  ChartPanel simulated{.x_label = "simulated time (s)", .y_label = "loss (nats)", .curves = {}};
  const std::string common = curves.empty() ? "" : common_name(names_of(curves));
  if (!common.empty()) chart.title = common + ": loss against steps and time";
  for (const TrainingCurve& run : curves) {
    chart.names.push_back(own_name(run.name, common));
    const LossPoints points = loss_points(run, kPointsInFile);
    by_step.curves.push_back(pairs(points.steps, points.loss));
    measured.curves.push_back(pairs(points.measured, points.loss));
    simulated.curves.push_back(pairs(points.simulated, points.loss));
  }
  chart.panels = {std::move(by_step), std::move(measured), std::move(simulated)};
  return line_chart_svg(chart);
}

}  // namespace interlock
