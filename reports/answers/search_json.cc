// The result of a search as JSON: "interlock-search/1", see docs/search.md.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "reports/answers/search_report.h"
#include "reports/headlines/economics_headlines.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"
#include "scenarios/contract/contract.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kGradeNames = {"layout_bounds", "plan_bounds", "looks", "judgements"};
constexpr std::array kLossNames = {"time",  "memory",      "cost",      "energy",
                                   "power", "host_memory", "dominated", "identical"};
static_assert(kGradeNames.size() == kGrades && kLossNames.size() == kLosses, "a name for each");

Json known(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json counts_json(const SearchCounts& counts) {
  Json json{{"layouts", counts.layouts},     {"plans", counts.plans},
            {"refused", counts.refused},     {"layout_bounds", counts.bounded_layouts},
            {"plan_bounds", counts.bounded}, {"looks", counts.looked_at},
            {"judgements", counts.judged},   {"shortened", counts.shortened},
            {"too_large", counts.too_large}, {"not_looked_at", counts.left},
            {"interrupted", counts.waiting}, {"unproven", unproven(counts)},
            {"cut_anew", counts.cut_anew},   {"failed", counts.unfinished}};
  for (std::size_t grade = 0; grade < kGrades; ++grade) {
    for (std::size_t loss = 0; loss < kLosses; ++loss) {
      const std::size_t plans = counts.lost[grade][loss];
      if (plans > 0) json["lost"][kGradeNames[grade]][kLossNames[loss]] = plans;
    }
  }
  if (counts.refused > 0) json["first_refusal"] = clean_utf8(counts.refusal);
  if (counts.useless > 0) {
    json["useless"] = counts.useless;
    json["first_useless"] = clean_utf8(counts.useless_because);
  }
  if (counts.unfinished > 0) json["first_failure"] = clean_utf8(counts.failure);
  return json;
}

/// Returns the precision that the scenario of `plan` says, or leaves as it is.
std::string precision_of(const FoundPlan& plan) {
  const JsonValue* training = plan.document.find("training");
  const JsonValue* own = training != nullptr ? training->find("precision") : nullptr;
  if (own != nullptr) return own->text;
  return contract_key(contract_object("training"), "precision").value->text;
}

Json plan_json(const FoundPlan& plan, const FoundPlan& best, Aim aim) {
  Json json = found_json(plan);
  if (&plan != &best) json["behind"] = loss_words(plan, best, aim);
  return json;
}

}  // namespace

Json found_json(const FoundPlan& plan) {
  const PlanLayout& layout = plan.layout;
  const PlanEstimate& estimate = plan.estimate;
  const auto at = [&](Aim one) { return estimate.values[static_cast<std::size_t>(one)]; };
  Json json{{"words", clean_utf8(plan_words(plan))},
            {"worth_having", plan.worth_having},
            {"time_s", at(Aim::Time)},
            {"memory_bytes", at(Aim::Memory)},
            {"cost", known(at(Aim::Cost))},
            {"energy_j", known(at(Aim::Energy))},
            {"power_w", known(estimate.power)},
            {"step_time_s", estimate.step_time},
            {"tokens_per_s_per_device", known(per_device(plan, estimate.tokens))},
            {"samples_per_s_per_device", known(per_device(plan, estimate.samples))},
            {"flops_per_s_per_device", known(estimate.flops_per_s)},
            {"mfu", known(estimate.mfu)},
            {"micro_batches", estimate.micro_batches},
            {"judged_micro_batches", estimate.judged_micro_batches},
            {"too_large_to_simulate", estimate.too_large},
            {"simulated", plan.simulated && !estimate.too_large},
            {"devices", layout.devices},
            {"tensor", layout.tensor},
            {"pipeline", layout.pipeline},
            {"data", layout.data},
            {"context", layout.context},
            {"context_layout", value_json(layout.context_layout)},
            {"expert", layout.expert},
            {"expert_tensor", layout.expert_tensor},
            {"zero_stage", layout.zero_stage},
            {"micro_batch_size", layout.micro_batch_size},
            {"precision", precision_of(plan)},
            {"strategy", value_json(layout.strategy)},
            {"recompute", value_json(layout.recompute)},
            {"schedule", value_json(plan.order.schedule)},
            {"stages_of_a_rank", plan.order.chunks},
            {"partition", value_json(plan.order.partition)}};
  if (estimate.nearly) json["folded_nearly"] = true;
  if (layout.context_all_to_all > 0) json["context_all_to_all"] = layout.context_all_to_all;
  for (const Setting& option : layout.options) {
    json["options"][option.path] = value_json(option.value);
  }
  for (std::size_t use = 0; use < kTimeUses; ++use) {
    json["time_shares"][name_of(static_cast<TimeUse>(use))] = estimate.time[use];
  }
  if (!layout.tensors.empty()) {  // of each pipeline rank
    json["tensor"] = layout.tensors;
    json["data"] = data_of_ranks(layout);
  }
  json["alike"] = Json::array();
  for (const PlanLayout& other : plan.alike) {
    json["alike"].push_back(clean_utf8(plan_words({.layout = other, .order = plan.order})));
  }
  json["set"] = Json::array();
  for (const Setting& setting : plan.settings) {
    const Json value = value_json(setting.value);
    json["set"].push_back(setting.path + "=" +
                          (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  json["scenario"] = value_json(plan.document);
  return json;
}

std::string search_json(const SearchResult& result) {
  Json json{
      {"format", "interlock-search/1"},
      {"program_version", INTERLOCK_VERSION},
      {"name", clean_utf8(result.name)},
      {"minimize", name_of(result.request.aim)},
      {"stopped", result.stopped},
      {"proven", unproven(result.counts) == 0 && !result.cut_off},
      {"left_out",
       result.counts.left_out.empty() ? Json(nullptr) : Json(clean_utf8(result.counts.left_out))},
      {"one_stage",
       one_stage_words(result).empty() ? Json(nullptr) : Json(clean_utf8(one_stage_words(result)))},
      {"worth", result.request.worth},
      {"memory_limit_bytes", known(result.memory_limit.value())},
      {"reserve", result.request.limits.memory || result.memory_limit <= Bytes(0)
                      ? Json(nullptr)
                      : Json(reserve_words(result.scenario, result.request.limits.reserve))},
      {"counts", counts_json(result.counts)}};
  add_confidence(json, result.confidence);
  json["plans"] = Json::array();
  for (const FoundPlan& plan : result.plans) {
    json["plans"].push_back(plan_json(plan, result.plans.front(), result.request.aim));
  }
  json["closest"] = nullptr;
  if (!result.closest.empty()) {
    json["closest"] = plan_json(result.closest.front(), result.closest.front(), result.request.aim);
  }
  return json.dump(1) + "\n";
}

}  // namespace interlock
