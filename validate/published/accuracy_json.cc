// Accuracy as JSON.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "reports/words/encode.h"
#include "validate/published/accuracy_report.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json row_errors_json(const ErrorSummary& summary) {
  return {{"count", summary.count},   {"mape", summary.mape}, {"median", summary.median},
          {"max", summary.most},      {"bias", summary.bias}, {"mape_low", summary.low},
          {"mape_high", summary.high}};
}

Json json_of(const AccuracySummary& summary) {
  Json json{{"rows", summary.rows},
            {"fitted", summary.fitted},
            {"refused", summary.refused},
            {"errors", row_errors_json(summary.errors)},
            {"p90", summary.p90},
            {"spearman_series", summary.order.series},
            {"spearman_mean", json_of(summary.order.mean)},
            {"spearman_least", json_of(summary.order.least)},
            {"pairs", summary.order.pairs},
            {"pairs_right", summary.order.pairs_right}};
  if (summary.fitted_errors) json["fitted_errors"] = row_errors_json(*summary.fitted_errors);
  return json;
}

Json document_json(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::Null:
      return nullptr;
    case JsonValue::Kind::Boolean:
      return value.boolean;
    case JsonValue::Kind::Number:
      return value.number;
    case JsonValue::Kind::String:
      return clean_utf8(value.text);
    case JsonValue::Kind::Array: {
      Json list = Json::array();
      for (const JsonValue& item : value.items) list.push_back(document_json(item));
      return list;
    }
    case JsonValue::Kind::Object: {
      Json object = Json::object();
      for (const JsonMember& member : value.members) {
        object[clean_utf8(member.first)] = document_json(member.second);
      }
      return object;
    }
  }
  return nullptr;
}

Json json_of(const Accuracy& accuracy, const AccuracyLine& line) {
  const MeasurementFile& file = accuracy.files[line.file];
  return {{"source", clean_utf8(file.name)},
          {"table", clean_utf8(file.tables[line.table].name)},
          {"group", clean_utf8(line.group)},
          {"quantity", measurand_names()[static_cast<int>(line.what)]},
          {"figures", json_of(line.summary)},
          {"missed", line.missed}};
}

Json json_of(const Accuracy& accuracy, const JudgedValue& value) {
  const MeasurementFile& file = accuracy.files[value.file];
  const MeasuredTable& table = file.tables[value.table];
  const MeasuredRow& row = table.rows[value.row];
  Json json{{"source", clean_utf8(file.name)},
            {"table", clean_utf8(table.name)},
            {"id", clean_utf8(row.id)},
            {"group", clean_utf8(row.group)},
            {"series", clean_utf8(row.series)},
            {"quantity", measurand_names()[static_cast<int>(value.what)]},
            {"measured", value.measured},
            {"predicted", json_of(value.predicted)},
            {"error", value.predicted ? Json(value.error()) : Json(nullptr)},
            {"fitted", clean_utf8(fitted_on(row, value.what))},
            {"problem", clean_utf8(value.problem)},
            {"note", clean_utf8(row.note)},
            {"remark", clean_utf8(row.remark)}};
  const RowPrediction& prediction = accuracy.predictions[value.file][value.table][value.row];
  json["device"] = prediction.setup.device;
  json["framework"] = prediction.setup.framework;
  json["mfu"] = prediction.values.mfu;
  json["wall_time_s"] = prediction.wall_time;
  if (!prediction.choice.empty()) json["choice"] = clean_utf8(prediction.choice);
  if (table.memory_stated) {
    json["fits"] = prediction.values.fits;
    json["leaves_room"] = prediction.values.leaves_room;
  }
  json["scenario"] = document_json(row.document);
  return json;
}

Json values_json(const Accuracy& accuracy) {
  Json list = Json::array();
  for (const JudgedValue& value : accuracy.values) list.push_back(json_of(accuracy, value));
  return list;
}

Json sources_json(const Accuracy& accuracy) {
  Json list = Json::array();
  for (const MeasurementFile& file : accuracy.files) {
    list.push_back({{"name", clean_utf8(file.name)},
                    {"title", clean_utf8(file.title)},
                    {"paper", clean_utf8(file.paper)},
                    {"place", clean_utf8(file.place)},
                    {"address", clean_utf8(file.address)},
                    {"licence", clean_utf8(file.licence)}});
  }
  return list;
}

}  // namespace

std::string accuracy_json(const Accuracy& accuracy) {
  Json lines = Json::array();
  for (const AccuracyLine& line : accuracy.lines) lines.push_back(json_of(accuracy, line));
  const FitSummary& fit = accuracy.fit;
  const Json json{{"format", "interlock-accuracy/1"},
                  {"speed", json_of(accuracy.speed)},
                  {"memory", json_of(accuracy.memory)},
                  {"fit",
                   {{"ran", fit.ran},
                    {"ran_without_room", fit.ran_without_room},
                    {"over_capacity", fit.over_capacity},
                    {"out_of_memory", fit.failed},
                    {"out_of_memory_with_room", fit.failed_with_room}}},
                  {"sources", sources_json(accuracy)},
                  {"figures", std::move(lines)},
                  {"values", values_json(accuracy)}};
  return json.dump(1) + "\n";
}

}  // namespace interlock
