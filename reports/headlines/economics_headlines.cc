// Energy, money, goals and ranges in words, as columns, and as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/economics_headlines.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"
#include "scenarios/simulate/economics.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMillion = 1e6;

std::string money_words(const Money& money) {
  return format_number(money.amount) + " " + money.currency;
}

/// The unit of which a million is counted: tokens, else samples, else steps.
struct Unit {
  double per_step = 1;
  std::string name = "steps";
};
Unit unit_of(const Metrics& metrics) {
  const double step = metrics.step_time.value();
  if (metrics.tokens_per_s) return {*metrics.tokens_per_s * step, "tokens"};
  if (metrics.samples_per_s) return {*metrics.samples_per_s * step, "samples"};
  return {};
}

Headline range_headline(const Confidence& confidence) {
  const TimeRange& range = *confidence.range;
  Headline headline{"Range", format(range.low) + " to " + format(range.high),
                    format_number(100 * range.level) + "% of " + range.basis};
  for (const std::string& reason : confidence.extrapolates) headline.note += "; " + reason;
  return headline;
}

Headline energy_headline(const Economics& economics) {
  std::string note = "a step; " + format(*economics.power) + " on average";
  if (!economics.covers_nodes) note += ", nodes left out";
  if (!economics.covers_links) note += ", links left out";
  return {"Energy", format(*economics.energy), note};
}

Headline cost_headline(const Question& scenario, const Metrics& metrics, const Money& cost) {
  const Unit unit = unit_of(metrics);
  return {"Cost", money_words({cost.amount / unit.per_step * kMillion, cost.currency}),
          "for a million " + unit.name + ", at " +
              money_words({device_hour(scenario)->amount, cost.currency}) + " a device and hour"};
}

Headline goal_headline(const TrainingCosts& costs) {
  std::string note = format_number(costs.steps) + " steps";
  if (costs.goodput < 1) note += " at a goodput of " + format_percent(costs.goodput);
  note += "; " + format_number(costs.device_hours) + " GPU-hours";
  if (costs.energy) note += "; " + format(*costs.energy);
  if (costs.cost) note += "; " + money_words(*costs.cost);
  return {"Goal", format(costs.time), note};
}

Json or_null(const std::optional<Joules>& energy) {
  return energy ? Json(energy->value()) : Json(nullptr);
}

Json money_json(const std::optional<Money>& money) {
  if (!money) return nullptr;
  return {{"amount", money->amount}, {"currency", money->currency}};
}

Json energy_json(const Question& scenario, const Economics& economics) {
  if (!economics.energy) return nullptr;
  const auto if_known = [](bool known, Joules energy) {
    return known ? Json(energy.value()) : Json(nullptr);
  };
  return {{"mean_power_w", economics.power ? Json(economics.power->value()) : Json(nullptr)},
          {"devices_j", economics.device_energy.value()},
          {"links_j", if_known(economics.covers_links, economics.link_energy)},
          {"nodes_j", if_known(economics.covers_nodes, economics.node_energy)},
          {"pue", scenario.cluster.machines.front().power.pue}};
}

Json cost_json(const ScenarioResult& result, const Economics& economics) {
  if (!economics.cost) return nullptr;
  const Unit unit = unit_of(result.measurement.metrics);
  return {{"currency", economics.cost->currency},
          {"device_hour", device_hour(result.plan.question)->amount},
          {"step", economics.cost->amount},
          {"million_" + unit.name, economics.cost->amount / unit.per_step * kMillion}};
}

Json goal_json(const std::optional<TrainingCosts>& costs) {
  if (!costs) return nullptr;
  return {{"steps", costs->steps},
          {"time_s", costs->time.value()},
          {"goodput", costs->goodput},
          {"energy_j", or_null(costs->energy)},
          {"cost", money_json(costs->cost)}};
}

Json range_json(const std::optional<TimeRange>& range) {
  if (!range) return nullptr;
  return {{"low_s", range->low.value()},
          {"high_s", range->high.value()},
          {"level", range->level},
          {"basis", clean_utf8(range->basis)}};
}

/// Returns the currency of all that have a price, "" if they differ.
std::string common_currency(const std::vector<ScenarioResult>& results) {
  std::string common;
  for (const ScenarioResult& result : results) {
    const std::optional<HourlyPrice> price = device_hour(result.plan.question);
    if (!price) continue;
    if (!common.empty() && common != price->currency) return "";
    common = price->currency;
  }
  return common;
}

using Amounts = std::vector<std::optional<double>>;

std::vector<double> known(const Amounts& amounts) {
  std::vector<double> values;
  for (const auto& amount : amounts) {
    if (amount) values.push_back(*amount);
  }
  return values;
}

/// A column of `amounts` in the unit that `scale_of` chooses; none if nothing is known.
template <class ScaleOf>
void add_column(const std::string& head, const Amounts& amounts, const ScaleOf& scale_of,
                Grid& grid) {
  const std::vector<double> values = known(amounts);
  if (values.empty()) return;
  const Scale scale = scale_of(values);
  grid.columns.push_back({head, scale.unit});
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    grid.rows[i].push_back({amounts[i] ? scaled(*amounts[i], scale) : kUnknown});
  }
}

}  // namespace

std::vector<Headline> range_headlines(const Confidence& confidence) {
  if (confidence.range) return {range_headline(confidence)};
  if (confidence.at_peak.empty()) return {};
  return {
      {"Range", "none", "no measured run had kernels priced at the peak rates, as this one has"}};
}

std::string error_between_words(double error) {
  return "predictions of two runs of one published table typically err by " +
         format_percent(error) + " from each other";
}

std::vector<Headline> economics_headlines(const ScenarioResult& result) {
  std::vector<Headline> headlines = range_headlines(result.confidence);
  const Question& scenario = result.plan.question;
  if (!scenario.goal && !device_hour(scenario)) return headlines;
  const Economics economics = economics_of(result);
  if (economics.power) headlines.push_back(energy_headline(economics));
  if (economics.cost) {
    headlines.push_back(cost_headline(scenario, result.measurement.metrics, *economics.cost));
  }
  if (economics.training) headlines.push_back(goal_headline(*economics.training));
  return headlines;
}

void add_range_columns(const std::vector<ScenarioResult>& results, Grid& grid) {
  // Ranges of published runs, which every catalogue device has, would be in every table.
  const auto is_drawn = [](const ScenarioResult& result) {
    return result.confidence.range && is_calibrated(result.plan.question.cluster);
  };
  if (std::none_of(results.begin(), results.end(), is_drawn)) return;
  Amounts lows, highs;
  for (const ScenarioResult& result : results) {
    const std::optional<TimeRange>& range = result.confidence.range;
    lows.push_back(range ? std::optional(range->low.value()) : std::nullopt);
    highs.push_back(range ? std::optional(range->high.value()) : std::nullopt);
  }
  add_column("Low", lows, scale_of_seconds, grid);
  add_column("High", highs, scale_of_seconds, grid);
}

void add_economics_columns(const std::vector<ScenarioResult>& results, Grid& grid) {
  Amounts times, hours, energies, costs, unit_costs;
  bool goals = false;
  const Unit first = unit_of(results.front().measurement.metrics);
  for (const ScenarioResult& result : results) {
    const Economics economics = economics_of(result);
    const Unit unit = unit_of(result.measurement.metrics);
    const bool goal = result.plan.question.goal && economics.training;
    goals = goals || goal;
    times.push_back(goal ? std::optional(economics.training->time.value()) : std::nullopt);
    hours.push_back(goal ? std::optional(economics.training->device_hours) : std::nullopt);
    energies.push_back(goal && economics.training->energy
                           ? std::optional(economics.training->energy->value())
                           : std::nullopt);
    costs.push_back(goal && economics.training->cost
                        ? std::optional(economics.training->cost->amount)
                        : std::nullopt);
    const bool same = economics.cost && unit.name == first.name;
    unit_costs.push_back(same ? std::optional(economics.cost->amount / unit.per_step * kMillion)
                              : std::nullopt);
  }
  const std::string currency = common_currency(results);
  const auto money = [&](const std::vector<double>& values) {
    return scale_of_numbers(values, currency);
  };
  add_column("To goal", times, scale_of_seconds, grid);
  const auto plain = [](const std::vector<double>& values) { return scale_of_numbers(values, ""); };
  add_column("GPU-hours", hours, plain, grid);
  add_column("Energy", energies, scale_of_joules, grid);
  if (currency.empty()) return;  // of several currencies no column is made; the JSON has all
  if (goals) add_column("Cost", costs, money, grid);
  if (!goals) add_column("Cost/M " + first.name, unit_costs, money, grid);
}

void add_economics(Json& json, const ScenarioResult& result) {
  const Economics economics = economics_of(result);
  json["energy_j"] = or_null(economics.energy);
  json["energy"] = energy_json(result.plan.question, economics);
  json["cost"] = cost_json(result, economics);
  json["goal"] = goal_json(economics.training);
  add_confidence(json, result.confidence);
}

void add_confidence(Json& json, const Confidence& confidence) {
  json["range"] = range_json(confidence.range);
  json["extrapolates"] = Json::array();
  for (const std::string& reason : confidence.extrapolates) {
    json["extrapolates"].push_back(clean_utf8(reason));
  }
}

}  // namespace interlock
