// Losses of trained scenarios as a table, as JSON and as a chart.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/training_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text.h"
#include "reports/result/execution_report.h"
#include "reports/result/seed_runs.h"
#include "reports/terminal/layout.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

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
  json["execution"] = execution_json(run.execution);
  return json;
}

/// Returns the time at which `steps` steps were done, in seconds; NaN of a run without a clock.
double end_of(const TrainingCurve& run, std::size_t steps) {
  if (run.ends.empty()) return std::nan("");
  return steps == 0 ? 0 : run.ends[steps - 1].value();
}

/// Returns the mean of values[begin, end). REQUIRES: begin < end.
double mean_of(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  const auto first = values.begin();
  const double sum = std::accumulate(first + static_cast<std::ptrdiff_t>(begin),
                                     first + static_cast<std::ptrdiff_t>(end), 0.0);
  return sum / static_cast<double>(end - begin);
}

/// Cuts `run` into stretches of equal length and adds the loss of each, at its middle, to the curve
/// against steps, the one against measured and the one against simulated time.
void add_losses(const TrainingCurve& run, std::vector<ChartPanel>& panels) {
  const std::size_t steps = run.losses.size(), points = std::min(steps, kMostLossPoints);
  for (ChartPanel& panel : panels) panel.curves.emplace_back();
  for (std::size_t p = 0; p < points; ++p) {
    const std::size_t begin = p * steps / points, end = (p + 1) * steps / points;
    const double middle = (static_cast<double>(begin) + static_cast<double>(end)) / 2;
    const double loss = mean_of(run.losses, begin, end);
    panels[0].curves.back().push_back({middle, loss});
    panels[1].curves.back().push_back({(end_of(run, begin) + end_of(run, end)) / 2, loss});
    panels[2].curves.back().push_back({middle * run.simulated_step.value(), loss});
  }
}

/// Steps whose mean is the first loss of `run`, and of others that of the last one.
std::size_t steps_at_end(const TrainingCurve& run) {
  return std::min(kEnds, std::max<std::size_t>(1, run.losses.size() / 2));
}

/// Returns the ages of the weights of each run that used old weights; empty if none did.
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

bool have_seeds(const std::vector<SeedRuns>& scenarios) {
  return std::any_of(scenarios.begin(), scenarios.end(),
                     [](const SeedRuns& runs) { return runs.size() > 1; });
}

/// Returns the steps whose mean is the last loss of every run; 0 if one has no step.
std::size_t steps_of_last_loss(const std::vector<TrainingCurve>& curves) {
  std::size_t few = kEnds;
  for (const TrainingCurve& run : curves) {
    few = run.losses.empty() ? 0 : std::min(few, steps_at_end(run));
    if (few == 0) break;
  }
  return few;
}

/// Returns the loss that all scenarios come to: the highest last loss, of means over seeds.
double common_loss(const std::vector<TrainingCurve>& means, std::size_t few) {
  double loss = 0;
  for (const TrainingCurve& run : means) loss = std::max(loss, last_losses({run}, few).mean);
  return loss;
}

/// Returns the simulated time in which every run is done with its steps.
double common_time(const std::vector<TrainingCurve>& means) {
  double time = std::numeric_limits<double>::infinity();
  for (const TrainingCurve& run : means) {
    time = std::min(time, run.simulated_step.value() * static_cast<double>(run.losses.size()));
  }
  return time;
}

/// Returns the loss of `run` when `time` is over by the simulated step: the mean of the last steps.
double loss_at_time(const TrainingCurve& run, double time, std::size_t few) {
  const double steps = time / run.simulated_step.value() * (1 + 1e-9);
  const auto end = std::clamp<std::size_t>(static_cast<std::size_t>(steps), 1, run.losses.size());
  return loss_before(run, end, std::min(few, end));
}

std::string loss_text(double loss) { return std::isfinite(loss) ? fixed(loss, 3) : "NaN"; }

std::string spread_text(const Spread& spread) {
  return loss_text(spread.mean) + " ± " + loss_text(spread.deviation);
}

/// Returns a row for each scenario. REQUIRES: each run has `few` steps, above 0.
Grid seeds_grid(const std::vector<SeedRuns>& scenarios, std::size_t few) {
  std::vector<TrainingCurve> means;
  for (const SeedRuns& runs : scenarios) means.push_back(mean_of_seeds(runs));
  const double goal = common_loss(means, few), time = common_time(means);
  std::vector<double> steps = {0}, whole = {0};
  for (const TrainingCurve& run : means) {
    steps.push_back(std::max(run.simulated_step, run.measured_step).value());
    whole.push_back(steps.back() * static_cast<double>(run.losses.size()));
  }
  const Scale step = scale_of_seconds(steps), all = scale_of_seconds(whole);
  const std::string to = "to " + loss_text(goal) + ", ";
  Grid grid{.columns = {{"Scenario", "", false},
                        {"Runs", ""},
                        {"Last loss", ""},
                        {"Over the first", ""},
                        {"Simulated", step.unit + "/step"},
                        {"Loss after", scaled(time, all) + " " + all.unit},
                        {"Measured", step.unit + "/step"},
                        {"Simulated", to + all.unit},
                        {"Measured", to + all.unit, true, true}}};
  const std::string common = common_name(names_of(means));
  for (std::size_t s = 0; s < means.size(); ++s) {
    const TrainingCurve& run = means[s];
    const std::optional<std::size_t> reached = steps_to_loss(run, goal, few);
    const bool paired = s > 0 && scenarios[s].size() == scenarios.front().size();
    const bool clock = run.measured_step > Seconds(0);
    const auto until = [&](double seconds) { return reached ? scaled(seconds, all) : "–"; };
    grid.rows.push_back(
        {{own_name(run.name, common)},
         {std::to_string(scenarios[s].size())},
         {spread_text(last_losses(scenarios[s], few))},
         {paired ? spread_text(more_than(scenarios[s], scenarios.front(), few)) : "–"},
         {scaled(run.simulated_step.value(), step)},
         {loss_text(loss_at_time(run, time, few))},
         {clock ? scaled(run.measured_step.value(), step) : "–"},
         {until(run.simulated_step.value() * static_cast<double>(reached.value_or(0)))},
         {clock ? until(end_of(run, reached.value_or(0))) : "–"}});
  }
  return grid;
}

}  // namespace

std::vector<std::string> names_of(const std::vector<TrainingCurve>& curves) {
  std::vector<std::string> names;
  names.reserve(curves.size());
  for (const TrainingCurve& run : curves) names.push_back(run.name);
  return names;
}

Grid training_grid(const std::vector<TrainingCurve>& curves) {
  const std::vector<SeedRuns> scenarios = by_scenario(curves);
  const std::size_t last = steps_of_last_loss(curves);
  if (last > 0 && have_seeds(scenarios)) return seeds_grid(scenarios, last);
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
  const std::size_t last = steps_of_last_loss(curves);
  if (last > 0 && have_seeds(by_scenario(curves))) {
    return "Last loss: of the whole network, mean of the last " + std::to_string(last) +
           " steps of each run; mean and standard deviation over seeds. Over the first: how much "
           "more than that of the first scenario under the same seed, likewise. Loss "
           "after: at equal simulated time, that of the run which is done first. The last two "
           "columns: time until the mean over seeds of as many steps is down to the highest of "
           "the last losses.";
  }
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
  std::string text = lay_out(training_grid(curves), style) + "\n" + training_note(curves) + "\n" +
                     staleness_note(means_of_seeds(curves));
  for (const TrainingCurve& run : curves) {
    if (run.execution) text += execution_sentence(*run.execution) + "\n";
  }
  return text;
}

std::string training_json(const std::vector<TrainingCurve>& curves) {
  if (curves.size() == 1) return json_of(curves[0]).dump(2) + "\n";
  Json list = Json::array();
  for (const TrainingCurve& run : curves) list.push_back(json_of(run));
  return list.dump(2) + "\n";
}

LineChart training_chart(const std::vector<TrainingCurve>& runs) {
  const std::vector<TrainingCurve> curves = means_of_seeds(runs);
  LineChart chart{.title = "Loss against steps and time",
                  .subtitle =
                      "loss of the whole network; simulated time: steps x predicted step "
                      "time"};
  for (const char* x : {"steps", "measured time (s)", "simulated time (s)"}) {
    chart.panels.push_back(
        {.x_label = x, .y_label = "loss (nats)", .curves = {}, .dots = Dots::OnPages});
  }
  if (curves.size() < runs.size()) chart.subtitle += "; means over seeds";
  const std::string common = curves.empty() ? "" : common_name(names_of(curves));
  if (!common.empty()) chart.title = common + ": loss against steps and time";
  for (const TrainingCurve& run : curves) {
    chart.names.push_back(own_name(run.name, common));
    add_losses(run, chart.panels);
  }
  return chart;
}

}  // namespace interlock
