// A sizing as JSON: "interlock-plan/1", see docs/plan.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/answers/search_report.h"
#include "reports/answers/sizing_report.h"
#include "reports/headlines/economics_headlines.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const Sizing& sizing, std::size_t index) {
  const SizedPlan& row = sizing.rows[index];
  Json json{{"machine", clean_utf8(sizing.question.machines[row.machine].name)},
            {"devices", row.devices},
            {"devices_per_node", row.share > 0 ? Json(row.share) : Json(nullptr)},
            {"global_batch_size", row.global_batch_size},
            {"fits", row.fits},
            {"problem", row.fits ? Json(nullptr) : Json(clean_utf8(row_words(row)))},
            {"memory_limit_bytes",
             row.memory_limit > Bytes(0) ? Json(row.memory_limit.value()) : Json(nullptr)}};
  for (const char* key : {"rank", "time_s", "goodput", "device_hours", "energy_j", "cost"}) {
    json[key] = nullptr;
  }
  json["searched"] = row.searched;
  json["proven"] = row.proven;
  json["left_out"] = row.left_out.empty() ? Json(nullptr) : Json(clean_utf8(row.left_out));
  json["on_front"] = row.on_front;
  const std::optional<bool> within = wholly_within(sizing, row);
  json["range_within"] = within ? Json(*within) : Json(nullptr);
  json["efficiencies_of"] = row.borrowed ? clean_utf8(row.borrowed->from) : "its own";
  add_confidence(json, row.confidence);
  if (row.fits) {
    const auto& ranking = sizing.ranking;
    json["rank"] = std::find(ranking.begin(), ranking.end(), index) - ranking.begin() + 1;
    json["time_s"] = row.time.value();
    json["goodput"] = row.goodput.value_or(1);
    json["device_hours"] = row.device_hours;
    if (row.energy) json["energy_j"] = row.energy->value();
    if (row.energy) json["energy_of_devices_alone"] = row.devices_alone;
    if (row.cost) json["cost"] = {{"amount", row.cost->amount}, {"currency", row.cost->currency}};
  }
  json["plan"] = row.plan ? found_json(*row.plan) : Json(nullptr);
  return json;
}

}  // namespace

std::string sizing_json(const Sizing& sizing) {
  const SizingQuestion& question = sizing.question;
  Json json{{"format", "interlock-plan/1"},
            {"program_version", INTERLOCK_VERSION},
            {"model", clean_utf8(question.model)},
            {question.in_samples ? "samples" : "tokens", question.length},
            {"tokens_per_sample",
             sizing.tokens_per_sample ? Json(*sizing.tokens_per_sample) : Json(nullptr)},
            {"weak", question.weak},
            {"compared_by", sizing.by_money ? "cost" : "device_hours"},
            {"stopped", sizing.stopped}};
  json["recommendation"] = Json::array();
  for (const std::string& sentence : recommendation(sizing)) {
    json["recommendation"].push_back(clean_utf8(sentence));
  }
  json["near_tie"] = nullptr;
  if (const std::optional<NearTie> tie = near_tie(sizing)) {
    json["near_tie"] = {{"share", tie->share}, {"typical_error", tie->typical}};
  }
  json["rows"] = Json::array();
  for (std::size_t i = 0; i < sizing.rows.size(); ++i) json["rows"].push_back(row_json(sizing, i));
  return json.dump(1) + "\n";
}

}  // namespace interlock
