// Spreads of step time, rate and busy share over seeds.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/variation_headlines.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/headlines/run_json.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Spread times(Spread spread, double factor) {
  for (double* value : {&spread.mean, &spread.deviation, &spread.p5, &spread.p50, &spread.p95}) {
    *value *= factor;
  }
  return spread;
}

Json rate_json(const Spread& steps_per_s, const std::optional<double>& mean) {
  if (!mean || steps_per_s.mean <= 0) return nullptr;
  return spread_json(times(steps_per_s, *mean / steps_per_s.mean));
}

}  // namespace

std::vector<Headline> variation_headlines(const ScenarioResult& result) {
  if (!result.varied) return {};
  const VariedOutcome& varied = *result.varied;
  const Spread& step = varied.step_time;
  std::string note = format(varied.undisturbed_step_time) + " without it";
  if (varied.seeds > 1) {
    note = "mean of " + std::to_string(varied.seeds) + " seeds; 5th to 95th percentile " +
           format(Seconds(step.p5)) + " to " + format(Seconds(step.p95)) + "; " + note;
  }
  return {{"Variation", format(Seconds(step.mean)), note}};
}

void add_variation_columns(const std::vector<ScenarioResult>& results, Grid& grid) {
  std::vector<double> steps;
  for (const ScenarioResult& result : results) {
    if (!result.varied) continue;
    steps.push_back(result.varied->step_time.p95);
    steps.push_back(result.varied->undisturbed_step_time.value());
  }
  if (steps.empty()) return;
  const Scale scale = scale_of_seconds(steps);
  grid.columns.push_back({"95th", scale.unit});
  grid.columns.push_back({"Undisturbed", scale.unit});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& varied = results[i].varied;
    grid.rows[i].push_back({varied ? scaled(varied->step_time.p95, scale) : kUnknown});
    grid.rows[i].push_back(
        {varied ? scaled(varied->undisturbed_step_time.value(), scale) : kUnknown});
  }
}

Json variation_json(const ScenarioResult& result) {
  const VariedOutcome& varied = *result.varied;
  const Metrics& metrics = result.measurement.metrics;
  return {{"seeds", varied.seeds},
          {"undisturbed_step_time_s", varied.undisturbed_step_time.value()},
          {"step_time_s", spread_json(varied.step_time)},
          {"samples_per_s", rate_json(varied.steps_per_s, metrics.samples_per_s)},
          {"tokens_per_s", rate_json(varied.steps_per_s, metrics.tokens_per_s)},
          {"busy", spread_json(varied.busy)}};
}

}  // namespace interlock
