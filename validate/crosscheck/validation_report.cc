// Comparisons for people and for programs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/result/execution_report.h"
#include "reports/terminal/layout.h"
#include "reports/words/mesh_words.h"
#include "reports/words/scale.h"
#include "validate/crosscheck/validation.h"

namespace interlock {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ErrorSummary& summary) {
  return {{"count", summary.count},  {"mape", summary.mape},     {"median", summary.median},
          {"p95", summary.p95},      {"max", summary.most},      {"bias", summary.bias},
          {"mape_low", summary.low}, {"mape_high", summary.high}};
}

Json json_of(const OpComparison& op) {
  return {{"op", std::string(1, letter(op.kind))},
          {"stage", op.stage},
          {"loss", op.loss},
          {"predicted_s", op.predicted.value()},
          {"measured_s", op.measured.value()},
          {"alone_s", op.alone ? Json(op.alone->value()) : Json(nullptr)}};
}

Json json_of(const CollectiveComparison& one) {
  return {{"collective", name_of(one.kind)},
          {"stage", one.stage},
          {"members", one.members},
          {"bytes", one.bytes.value()},
          {"predicted_s", one.predicted.value()},
          {"measured_s", one.measured.value()}};
}

Json json_of(const DeviceComparison& device) {
  return {{"predicted_busy", device.predicted_busy},
          {"measured_busy", device.measured_busy},
          {"predicted_peak_bytes", device.predicted_peak.value()},
          {"measured_peak_bytes", device.measured_peak.value()},
          {"held_peak_bytes", device.held_peak ? Json(device.held_peak->value()) : Json(nullptr)}};
}

Json json_of(const Comparison& comparison, const std::string& prediction) {
  Json json{{"format", "interlock-validation/1"},
            {"name", comparison.name},
            {"prediction_sha256", prediction},
            {"clock", name_of(comparison.clock)},
            {"steps", comparison.steps},
            {"predicted_step_time_s", comparison.predicted.value()},
            {"measured_step_time_s", comparison.measured.value()},
            {"replayed_step_time_s", comparison.replayed.value()},
            {"from_alone_step_time_s",
             comparison.from_alone ? Json(comparison.from_alone->value()) : Json(nullptr)},
            {"wall_step_time_s", comparison.wall.value()},
            {"end_to_end_error", comparison.end_to_end_error()},
            {"replay_error", comparison.replay_error()},
            {"from_alone_error",
             comparison.from_alone ? Json(*comparison.from_alone_error()) : Json(nullptr)},
            {"spread", comparison.spread},
            {"op_model_error", json_of(comparison.op_model)},
            {"interference", json_of(comparison.interference)},
            {"collective_error", json_of(comparison.collective_model)}};
  for (const DeviceComparison& device : comparison.devices) {
    json["devices"].push_back(json_of(device));
  }
  for (const OpComparison& op : comparison.ops) json["ops"].push_back(json_of(op));
  json["collectives"] = Json::array();
  for (const CollectiveComparison& one : comparison.collectives) {
    json["collectives"].push_back(json_of(one));
  }
  json["execution"] = execution_json(comparison.execution);
  return json;
}

double worst_busy_error(const Comparison& comparison) {
  double worst = 0;
  for (const DeviceComparison& device : comparison.devices) {
    const double error = device.predicted_busy - device.measured_busy;
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  return worst;
}

/// Returns the largest difference, in bytes, between what tensors held and what was foreseen.
double worst_memory_error(const Comparison& comparison) {
  double worst = 0;
  for (const DeviceComparison& device : comparison.devices) {
    const double error =
        (device.predicted_peak - device.held_peak.value_or(device.measured_peak)).value();
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  return worst;
}

std::vector<Cell> row_of(const Comparison& comparison, const Scale& time) {
  const bool wall = comparison.clock == OpClock::Wall;
  return {
      {comparison.name},
      {scaled(comparison.predicted.value(), time)},
      {scaled(comparison.measured.value(), time)},
      {signed_percent(comparison.end_to_end_error())},
      {wall ? signed_percent(comparison.replay_error()) : kUnknown},
      {comparison.from_alone ? signed_percent(*comparison.from_alone_error()) : kUnknown},
      {fixed(100 * comparison.op_model.mape, 1)},
      {comparison.interference.count > 0 ? signed_percent(comparison.interference.bias) : kUnknown},
      {comparison.collectives.empty() ? kUnknown
                                      : fixed(100 * comparison.collective_model.mape, 1)},
      {signed_percent(worst_busy_error(comparison))},
      {fixed(worst_memory_error(comparison), 0)},
      {scaled(comparison.wall.value(), time)},
      {fixed(100 * comparison.spread, 1)}};
}

}  // namespace

std::string prediction_json(const std::vector<ScenarioResult>& predictions, int fill, int steps) {
  Json list = Json::array();
  for (const ScenarioResult& result : predictions) {
    const Metrics& metrics = result.measurement.metrics;
    Json json{{"format", "interlock-prediction/1"},
              {"name", result.plan.question.name},
              {"engine", metrics.engine},
              {"fill_steps", fill},
              {"steps", steps},
              {"step_time_s", metrics.step_time.value()}};
    for (const DeviceMetrics& device : metrics.devices) {
      json["devices"].push_back(
          {{"busy", device.busy}, {"peak_memory_bytes", device.peak_memory.value()}});
    }
    for (const OpInfo& op : result.measurement.program.ops) {
      json["ops"].push_back({{"op", std::string(1, letter(op.kind))},
                             {"stage", op.stage},
                             {"loss", op.loss},
                             {"duration_s", op.duration.value()}});
    }
    list.push_back(std::move(json));
  }
  return list.dump(2) + "\n";
}

std::vector<std::string> validation_summary(const std::vector<Comparison>& comparisons) {
  std::vector<double> errors, alone, predicted, measured;
  for (const Comparison& comparison : comparisons) {
    errors.push_back(comparison.end_to_end_error());
    predicted.push_back(comparison.predicted.value());
    measured.push_back(comparison.measured.value());
    if (comparison.from_alone) alone.push_back(*comparison.from_alone_error());
  }
  const ErrorSummary all = error_summary(errors);
  std::vector<std::string> lines = {"Step time, end to end: MAPE " + fixed(100 * all.mape, 1) +
                                    "%, median " + fixed(100 * all.median, 1) + "%, bias " +
                                    signed_percent(all.bias) + "%."};
  if (!alone.empty()) {
    lines.push_back("From the times of ops alone: median " +
                    fixed(100 * error_summary(alone).median, 1) + "%.");
  }
  if (comparisons.size() < 2) return lines;
  const RankAgreement order = rank_agreement(predicted, measured);
  lines.push_back("Order of the scenarios: Kendall's tau " + fixed(order.tau, 2) + "; " +
                  std::to_string(order.clear_pairs_right) + " of " +
                  std::to_string(order.clear_pairs) +
                  " pairs that are predicted to differ by more than 5% are in the measured order.");
  return lines;
}

Grid validation_grid(const std::vector<Comparison>& comparisons) {
  std::vector<double> times;
  for (const Comparison& comparison : comparisons) {
    for (const Seconds value : {comparison.predicted, comparison.measured, comparison.wall}) {
      times.push_back(value.value());
    }
  }
  const Scale time = scale_of_seconds(times);
  Grid grid{.columns = {{"Scenario", "", false},
                        {"Predicted", time.unit},
                        {"Measured", time.unit},
                        {"Error", "%"},
                        {"Replay", "%"},
                        {"Alone", "%"},
                        {"Ops", "%"},
                        {"Beside", "%"},
                        {"Sums", "%"},
                        {"Busy", "points"},
                        {"Memory", "B"},
                        {"Wall", time.unit},
                        {"Spread", "%"}}};
  for (const Comparison& comparison : comparisons) grid.rows.push_back(row_of(comparison, time));
  return grid;
}

std::vector<std::string> validation_notes(const std::vector<Comparison>& comparisons) {
  std::vector<std::string> notes = {
      "Error: of the predicted step time. Replay: of a simulation with the times of ops in the "
      "run; Alone: with those of ops alone. Ops: mean error of predicted ops, alone. Beside: how "
      "much longer ops take beside others. Sums: mean error of collectives. Busy, Memory: the "
      "largest errors of a device. Wall: the "
      "step on the wall. Spread: 95th step over the median."};
  const bool processors = std::any_of(
      comparisons.begin(), comparisons.end(),
      [](const Comparison& comparison) { return comparison.clock == OpClock::Processor; });
  if (processors) {
    notes.emplace_back(
        "Measured: ops by the time that their threads were on processors, since there are fewer "
        "processors than devices, and the step that the engine makes of these.");
  }
  return notes;
}

std::string validation_table(const std::vector<Comparison>& comparisons, const TableStyle& style) {
  std::string text = lay_out(validation_grid(comparisons), style) + "\n";
  for (const std::string& note : validation_notes(comparisons))
    text += paragraph(note, Ink::Plain, style);
  text += "\n";
  for (const std::string& line : validation_summary(comparisons))
    text += paragraph(line, Ink::Plain, style);
  for (const Comparison& comparison : comparisons) {
    if (!comparison.execution) continue;
    text += paragraph(execution_sentence(*comparison.execution), Ink::Plain, style);
  }
  return text;
}

std::string validation_json(const std::vector<Comparison>& comparisons,
                            const std::string& prediction) {
  Json list = Json::array();
  for (const Comparison& comparison : comparisons) list.push_back(json_of(comparison, prediction));
  return list.dump(2) + "\n";
}

}  // namespace interlock
