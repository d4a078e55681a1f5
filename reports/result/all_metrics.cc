// The rows of metrics that are made after a measurement; metrics of a step as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/all_metrics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a row without a member.
MetricRow later_metric(const char* key, const char* pointer, MetricKind kind, Better better,
                       Columns columns, const char* figure = nullptr, const char* words = nullptr) {
  return {key, pointer, figure, words, kind, better, columns, Growth::None, 0, {}, ""};
}

/// Returns a row of what identifies a result.
MetricRow identity_metric(const char* key, const char* pointer, MetricKind kind) {
  return later_metric(key, pointer, kind, Better::Neither, Columns::Identity);
}

std::vector<MetricRow> made_afterwards() {
  using enum MetricKind;
  constexpr Better kMore = Better::More, kLess = Better::Less;
  constexpr Columns kFirst = Columns::Headline, kNone = Columns::None;
  return {
      later_metric("run_time_s", "/run/wall_s/mean", Time, kLess, kNone, "run_time", "run time"),
      later_metric("energy_j", "/energy_j", Energy, kLess, kFirst, "energy", "energy of a step"),
      later_metric("mean_power_w", "/energy/mean_power_w", Power, kLess, kFirst, "power", "power"),
      later_metric("cost", "/cost/step", Money, kLess, kFirst, "cost", "cost of a step"),
      later_metric("cost_per_million_tokens", "/cost/million_tokens", Money, kLess, kFirst),
      later_metric("cost_per_million_samples", "/cost/million_samples", Money, kLess, kFirst),
      later_metric("currency", "/cost/currency", Words, Better::Neither, kFirst),
      later_metric("goal_time_s", "/goal/time_s", Time, kLess, kFirst, "goal_time",
                   "time to the goal"),
      later_metric("goal_energy_j", "/goal/energy_j", Energy, kLess, kFirst, "goal_energy",
                   "energy to the goal"),
      later_metric("goal_cost", "/goal/cost/amount", Money, kLess, kFirst, "goal_cost",
                   "cost of the goal"),
      later_metric("range_low_s", "/range/low_s", Time, kLess, kFirst, "least_time",
                   "step time at least"),
      later_metric("range_high_s", "/range/high_s", Time, kLess, kFirst, "most_time",
                   "step time at most"),
      later_metric("peers_at_work", nullptr, Count, kMore, kNone, "at_work", "peers at work"),
      later_metric("share_of_best", "/swarm/share_of_best/mean", Share, kMore, kNone,
                   "share_of_best", "of the best rate"),
      later_metric("quality", "/scenario/quality/value", Count, Better::Neither, kNone, "quality",
                   "quality"),
      identity_metric("model", "/model", Words),
      identity_metric("cluster", "/cluster", Words),
      identity_metric("strategy", "/strategy", Words),
      identity_metric("schedule", "/schedule", Words),
      identity_metric("devices_total", "/devices_total", Count),
      identity_metric("devices_simulated", "/devices_simulated", Count),
      identity_metric("micro_batches", "/micro_batches", Count),
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

Json bytes_json(Bytes bytes) {
  const double value = bytes.value();
  const bool whole = std::floor(value) == value && std::abs(value) < 0x1p53;
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

}  // namespace interlock
