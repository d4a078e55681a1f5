// The answers of interlock explain as JSON: "interlock-explanation/1", see docs/explain.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "reports/answers/answer_report.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"
#include "reports/words/mesh_words.h"
#include "reports/words/op_words.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPartNames[] = {"compute",  "memory_bandwidth", "launches", "inside_ops",
                                      "transfer", "latency",          "bubble",   "unknown"};
constexpr const char* kKindNames[] = {"machine", "plan", "training"};

Json device_of_rank(const Answers& answers, int rank) {
  if (rank < 0) return nullptr;
  return device_numbers(answers.baseline.result.plan).at(static_cast<std::size_t>(rank));
}

Json part_json(const StepPiece& part, const Answers& answers) {
  return {{"limit", kPartNames[static_cast<std::size_t>(part.kind)]},
          {"words", clean_utf8(words_of(part, answers))},
          {"device", device_of_rank(answers, part.rank)},
          {"where", part.where.empty() ? Json(nullptr) : Json(clean_utf8(part.where))},
          {"time_s", part.seconds}};
}

Json path_json(const PathShare& share, const Answers& answers) {
  Json json{{"words", clean_utf8(words_of(share, answers))}};
  json["op"] = share.kind == PathShare::Kind::Op ? Json(category(share.op)) : Json(nullptr);
  json["device"] = device_of_rank(answers, share.rank);
  json["link"] = share.link.empty() ? Json(nullptr) : Json(clean_utf8(share.link));
  json["time_s"] = share.seconds;
  return json;
}

Json change_json(const TriedChange& tried, double step) {
  Json json{{"kind", kKindNames[static_cast<std::size_t>(tried.change.kind)]},
            {"change", clean_utf8(tried.change.words)}};
  json["set"] = Json::array();
  for (const std::string& setting : tried.change.settings) json["set"].push_back(setting);
  json["step_time_s"] = tried.step_time.value();
  json["work"] = tried.work;
  json["gain_s"] = tried.gain.value();
  json["gain"] = step > 0 ? tried.gain.value() / step : 0;
  json["peak_memory_bytes"] = tried.peak_memory.value();
  json["fits_in_memory"] = tried.fits;
  json["energy"] = tried.energy ? Json(*tried.energy) : Json(nullptr);
  json["cost"] = tried.cost ? Json(*tried.cost) : Json(nullptr);
  return json;
}

Json waiting_json(const Answers& answers) {
  const Metrics& metrics = answers.baseline.result.measurement.metrics;
  Json devices = Json::array();
  for (const DeviceMetrics& device : metrics.devices) {
    Json json{{"device", device_of_rank(answers, device.rank)}, {"stages", device.stages}};
    for (int use = 0; use < kTimeUses; ++use) {
      json["time_shares"][name_of(static_cast<TimeUse>(use))] =
          device.time[static_cast<std::size_t>(use)];
    }
    json["bubble_s"] = nullptr;
    if (metrics.explanation) {
      const Bubbles& bubbles = metrics.explanation->devices[static_cast<std::size_t>(device.rank)];
      json["bubble_s"] = Json::object();
      for (int cause = 0; cause < kBubbleCauses; ++cause) {
        json["bubble_s"][name_of(static_cast<BubbleCause>(cause))] =
            bubbles[static_cast<std::size_t>(cause)];
      }
    }
    devices.push_back(std::move(json));
  }
  return devices;
}

}  // namespace

std::string answers_json(const Answers& answers) {
  const ScenarioResult& result = answers.baseline.result;
  const Metrics& metrics = result.measurement.metrics;
  const double step = metrics.step_time.value();
  Json json{{"format", "interlock-explanation/1"},
            {"program_version", INTERLOCK_VERSION},
            {"name", clean_utf8(result.plan.question.name)},
            {"step_time_s", step},
            {"limited_by", clean_utf8(limit_sentence(answers))},
            {"fits_in_memory", metrics.fits_in_memory}};
  json["notes"] = unexplained(answers);
  json["parts"] = Json::array();
  for (const StepPiece& part : answers.baseline.limits.parts) {
    json["parts"].push_back(part_json(part, answers));
  }
  json["critical_path"] = Json::array();
  for (const PathShare& share : answers.baseline.limits.path) {
    json["critical_path"].push_back(path_json(share, answers));
  }
  json["devices"] = waiting_json(answers);
  json["changes"] = Json::array();
  for (const TriedChange& tried : answers.changes) {
    json["changes"].push_back(change_json(tried, step));
  }
  json["refused_changes"] = answers.refused;
  json["untried_changes"] = answers.untried;
  json["scenario"] = scenario_json(result.plan.question);
  return json.dump(1) + "\n";
}

}  // namespace interlock
