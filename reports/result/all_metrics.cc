// The rows of metrics that are made after a measurement; metrics of a step as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/all_metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/result/value_json.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

std::vector<MetricRow> made_afterwards() {
  using enum MetricKind;
  constexpr Better kMore = Better::More, kLess = Better::Less, kNeither = Better::Neither;
  constexpr Columns kFirst = Columns::Headline, kId = Columns::Identity, kNone = Columns::None;
  constexpr Growth kStays = Growth::None;
  return {
      {"run_time_s", "/run/wall_s/mean", "run_time", "run time", Time, kLess, kNone, kStays,
       kOnPage},
      {"energy_j", "/energy_j", "energy", "energy of a step", Energy, kLess, kFirst, kStays,
       kOnPage},
      {"mean_power_w", "/energy/mean_power_w", "power", "power", Power, kLess, kFirst},
      {"cost", "/cost/step", "cost", "cost of a step", Money, kLess, kFirst, kStays, kOnPage},
      {"cost_per_million_tokens", "/cost/million_tokens", nullptr, nullptr, Money, kLess, kFirst},
      {"cost_per_million_samples", "/cost/million_samples", nullptr, nullptr, Money, kLess, kFirst},
      {"currency", "/cost/currency", nullptr, nullptr, Words, kNeither, kFirst},
      {"goal_time_s", "/goal/time_s", "goal_time", "time to the goal", Time, kLess, kFirst},
      {"goal_energy_j", "/goal/energy_j", "goal_energy", "energy to the goal", Energy, kLess,
       kFirst},
      {"goal_cost", "/goal/cost/amount", "goal_cost", "cost of the goal", Money, kLess, kFirst},
      {"range_low_s", "/range/low_s", "least_time", "step time at least", Time, kLess, kFirst},
      {"range_high_s", "/range/high_s", "most_time", "step time at most", Time, kLess, kFirst},
      {"peers_at_work", nullptr, "at_work", "peers at work", Count, kMore, kNone, kStays, kOnPage},
      {"share_of_best", "/swarm/share_of_best/mean", "share_of_best", "of the best rate", Share,
       kMore, kNone, kStays, kOnPage},
      {"quality", "/scenario/quality/value", "quality", "quality", Count, kNeither, kNone},
      {"model", "/model", nullptr, nullptr, Words, kNeither, kId},
      {"cluster", "/cluster", nullptr, nullptr, Words, kNeither, kId},
      {"strategy", "/strategy", nullptr, nullptr, Words, kNeither, kId},
      {"schedule", "/schedule", nullptr, nullptr, Words, kNeither, kId},
      {"devices_total", "/devices_total", nullptr, nullptr, Count, kNeither, kId},
      {"devices_simulated", "/devices_simulated", nullptr, nullptr, Count, kNeither, kId},
      {"micro_batches", "/micro_batches", nullptr, nullptr, Count, kNeither, kId},
  };
}

/// Returns the JSON of what a row stands for.
struct JsonOf {
  const MetricRow& row;
  const Metrics& metrics;
  Json operator()(std::string Metrics::*member) const { return metrics.*member; }
  Json operator()(bool Metrics::*member) const { return metrics.*member; }
  Json operator()(int Metrics::*member) const { return metrics.*member; }
  Json operator()(std::int64_t Metrics::*member) const { return metrics.*member; }
  template <class Field>
  Json operator()(Field) const {
    const std::optional<double> value = number_of(row, metrics);
    if (!value) return nullptr;
    return row.kind == MetricKind::Size ? bytes_json(Bytes(*value)) : Json(*value);
  }
};

}  // namespace

const std::vector<MetricRow>& all_metrics() {
  static const std::vector<MetricRow> all = [] {
    std::vector<MetricRow> rows = step_metrics();
    for (const MetricRow& later : made_afterwards()) rows.push_back(later);
    return rows;
  }();
  return all;
}

const MetricRow* find_metric(std::string_view key) {
  const auto found = std::find_if(all_metrics().begin(), all_metrics().end(),
                                  [&](const MetricRow& one) { return key == one.key; });
  return found == all_metrics().end() ? nullptr : &*found;
}

void add_step_metrics(Json& json, const Metrics& metrics) {
  for (const MetricRow& row : step_metrics()) {
    if (row.pointer == nullptr) continue;
    json[Json::json_pointer(row.pointer)] = std::visit(JsonOf{row, metrics}, row.field);
  }
}

Json bytes_json(Bytes bytes) { return number_json(bytes.value()); }

}  // namespace interlock
