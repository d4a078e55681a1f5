// Plans in words, and why one comes after another.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "reports/answers/search_report.h"
#include "reports/result/scenario_json.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostReasons = 2;
constexpr int kMostStagesNamed = 16;

/// Names what a device spends time on. Backwards are whole or in two parts, as the schedule has
/// them.
const char* words_of(TimeUse use) {
  static constexpr std::array kWords = {"forwards",   "backwards", "backwards",
                                        "backwards",  "heads",     "recomputation",
                                        "extra work", "updates",   "exposed communication",
                                        "idle time"};
  static_assert(kWords.size() == kTimeUses, "words for each");
  return kWords[static_cast<std::size_t>(use)];
}

}  // namespace

std::string words_of_value(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::Null) return "-";
  return value.kind == JsonValue::Kind::String ? value.text : value_json(value).dump();
}

std::string recompute_words(const JsonValue& recompute) {
  const JsonValue* modules =
      recompute.kind == JsonValue::Kind::Object ? recompute.find("modules") : nullptr;
  if (modules == nullptr || recompute.members.size() > 1) return words_of_value(recompute);
  std::string words;
  for (const JsonValue& name : modules->items) words += (words.empty() ? "" : "+") + name.text;
  return words;
}

namespace {

/// Returns "11, 2x12, 10" of 11, 12, 12, 10.
std::string runs_of(const std::vector<int>& numbers) {
  std::string words;
  for (std::size_t i = 0, alike = 1; i < numbers.size(); i += alike, alike = 1) {
    while (i + alike < numbers.size() && numbers[i + alike] == numbers[i]) ++alike;
    words += words.empty() ? "" : ", ";
    if (alike > 1) words += std::to_string(alike) + "x";
    words += std::to_string(numbers[i]);
  }
  return words;
}

}  // namespace

std::string partition_words(const JsonValue& partition) {
  if (partition.kind != JsonValue::Kind::Array) return words_of_value(partition);
  std::vector<int> counts;
  for (const JsonValue& count : partition.items) counts.push_back(static_cast<int>(count.number));
  return runs_of(counts);
}

std::string tensor_words(const PlanLayout& layout) {
  return layout.tensors.empty() ? std::to_string(layout.tensor) : runs_of(layout.tensors);
}

std::vector<int> data_of_ranks(const PlanLayout& layout) {
  std::vector<int> data;
  for (const int tensor : layout.tensors) data.push_back(layout.tensor * layout.data / tensor);
  return data;
}

std::string data_words(const PlanLayout& layout) {
  const std::vector<int> data = data_of_ranks(layout);
  return data.empty() ? std::to_string(layout.data) : runs_of(data);
}

std::string zero_words(const FoundPlan& plan) {
  std::set<int> stages = {plan.layout.zero_stage};
  for (const PlanLayout& other : plan.alike) stages.insert(other.zero_stage);
  std::string words;
  for (const int stage : stages) words += (words.empty() ? "" : " or ") + std::to_string(stage);
  return words;
}

std::string precision_words(const FoundPlan& plan) {
  std::set<std::string> precisions;
  const auto add = [&](const PlanLayout& layout) {
    for (const Setting& option : layout.options) {
      if (option.path == kTrainingPrecision) precisions.insert(option.value.text);
    }
  };
  add(plan.layout);
  for (const PlanLayout& other : plan.alike) add(other);
  std::string words;
  for (const std::string& one : precisions) words += (words.empty() ? "" : " or ") + one;
  return words;
}

/// Names the machines of a mixed cluster in their order.
std::string machine_words(const JsonValue& machines) {
  std::string words;
  for (const JsonValue& machine : machines.items) {
    const JsonValue* name = nullptr;
    for (const char* key : {"machine", "name"}) {
      if (name == nullptr) name = machine.find(key);
    }
    words += words.empty() ? "" : ", ";
    words += name != nullptr ? name->text : !machine.text.empty() ? machine.text : "a machine";
  }
  return "stages on " + words;
}

/// Returns "50% of activations and optimizer on the host" of {"activations": 0.5, "optimizer": 1}.
std::string offload_words(const JsonValue& offload) {
  std::string words;
  for (const auto& [what, share] : offload.members) {
    if (share.number <= 0) continue;
    words += words.empty() ? "" : " and ";
    words += (share.number < 1 ? fixed(100 * share.number, 0) + "% of " : "") + what;
  }
  return words.empty() ? "" : words + " on the host";
}

/// An option that has words of its own: those of each value; none for the usual one.
struct OptionWords {
  const char* key;
  const char* value;
  const char* words;
};

constexpr OptionWords kOptionWords[] = {
    {"sequence_parallel", "true", ""},
    {"sequence_parallel", "false", "whole sequences"},
    {"overlap_weights", "true", ""},
    {"overlap_weights", "false", "weights gathered before forwards"},
    {"gradient_reduction", "step", ""},
    {"gradient_reduction", "micro_batch", "gradients of each micro-batch"},
    {"overlap_gradients", "true", ""},
    {"overlap_gradients", "false", "gradients after the backward"},
    {"expert_overlap", "none", ""},
    {"expert_overlap", "shared_experts", "tokens beside shared experts"},
    {"expert_overlap", "micro_batches", "tokens beside micro-batches"},
};

std::string words_of_option(const Setting& option) {
  const std::string key = option.path.substr(option.path.find('.') + 1);
  const std::string value = words_of_value(option.value);
  if (key == "machines") return machine_words(option.value);
  if (key == "offload" && option.value.kind == JsonValue::Kind::Object) {
    return offload_words(option.value);
  }
  if (key == "shard") return "shards of " + value;
  for (const OptionWords& one : kOptionWords) {
    if (key == one.key && value == one.value) return one.words;
  }
  return key + " " + value;
}

std::string option_words(const PlanLayout& layout) {
  std::string words;
  for (const Setting& option : layout.options) {
    if (option.path == kTrainingPrecision) continue;  // see precision_words()
    const std::string one = words_of_option(option);
    if (!one.empty()) words += (words.empty() ? "" : ", ") + one;
  }
  return words;
}

double per_device(const FoundPlan& plan, double amount) {
  return amount / plan.estimate.step_time / plan.layout.devices;
}

std::string rate_words(const PlanEstimate& estimate) {
  if (estimate.mfu <= 0) return "";
  return format(FlopsPerSecond(estimate.flops_per_s)) + "/GPU, MFU " + format_percent(estimate.mfu);
}

std::string plan_words(const FoundPlan& plan) {
  const PlanLayout& layout = plan.layout;
  std::string words = "tensor " + tensor_words(layout) + ", pipeline " +
                      std::to_string(layout.pipeline) + ", data " + data_words(layout);
  if (layout.context > 1) {
    words += ", context " + std::to_string(layout.context);
    words += layout.context_all_to_all > 0
                 ? " in rings of all-to-alls of " + std::to_string(layout.context_all_to_all)
             : layout.context_layout.text == "all_to_all" ? " by all-to-all"
                                                          : " in a ring";
  }
  if (layout.expert > 1) words += ", expert " + std::to_string(layout.expert);
  if (layout.expert_tensor != layout.tensor) {
    words += ", expert tensor " + std::to_string(layout.expert_tensor);
  }
  if (const std::string zero = zero_words(plan); zero != "0") words += ", ZeRO " + zero;
  words += ", micro-batch " + std::to_string(layout.micro_batch_size);
  const std::string again = recompute_words(layout.recompute);
  words += again == "none" ? ", no recomputation" : ", " + again + " recomputation";
  if (plan.order.schedule.kind != JsonValue::Kind::Null) {
    words += ", " + words_of_value(plan.order.schedule);
  }
  if (plan.order.chunks > 1) words += " of " + std::to_string(plan.order.chunks) + " stages a rank";
  if (plan.order.partition.kind == JsonValue::Kind::Array) {
    words += ", stages of " + partition_words(plan.order.partition) + " modules";
  }
  if (const std::string precision = precision_words(plan); !precision.empty()) {
    words += ", " + precision;
  }
  const std::string options = option_words(layout);
  return options.empty() ? words : words + ", " + options;
}

std::string loss_words(const FoundPlan& plan, const FoundPlan& best, Aim aim) {
  const std::size_t at = static_cast<std::size_t>(aim);
  const double own = plan.estimate.values[at], least = best.estimate.values[at];
  const double more = least > 0 ? own / least - 1 : 0;
  std::string words = more < kLeastShare ? "the same " + std::string(name_of(aim))
                                         : signed_percent(more) + "% " + name_of(aim);
  std::map<std::string, double> longer;  // over the step of the best, by words
  for (std::size_t use = 0; use < kTimeUses; ++use) {
    longer[words_of(static_cast<TimeUse>(use))] +=
        plan.estimate.time[use] * plan.estimate.step_time / best.estimate.step_time -
        best.estimate.time[use];
  }
  std::vector<std::pair<double, std::string>> reasons;
  for (const auto& [use, share] : longer) {
    if (share > kLeastShare) reasons.emplace_back(share, use);
  }
  std::sort(reasons.rbegin(), reasons.rend());
  if (reasons.size() > kMostReasons) reasons.resize(kMostReasons);
  for (std::size_t i = 0; i < reasons.size() && more >= kLeastShare; ++i) {
    words += (i == 0 ? ": " : ", ") + signed_percent(reasons[i].first) + "% " + reasons[i].second;
  }
  const std::size_t memory = static_cast<std::size_t>(Aim::Memory);
  const double room = plan.estimate.values[memory] - best.estimate.values[memory];
  if (aim != Aim::Memory && best.estimate.values[memory] > 0) {
    words += "; " + signed_percent(room / best.estimate.values[memory]) + "% memory";
  }
  return words;
}

std::string set_options(const FoundPlan& plan) {
  std::string text;
  for (const Setting& setting : plan.settings) {
    const bool removed = setting.value.kind == JsonValue::Kind::Null;
    const std::string value = removed ? "null" : words_of_value(setting.value);
    const bool plain = value.find_first_of(" \"{}[]'") == std::string::npos;
    text += text.empty() ? "--set " : " --set ";
    text += plain ? setting.path + "=" + value : "'" + setting.path + "=" + value + "'";
  }
  return text;
}

std::string one_stage_words(const SearchResult& result) {
  const auto stages = [](const FoundPlan& plan) {
    return plan.layout.pipeline * plan.order.chunks;
  };
  if (result.plans.empty()) return "";
  const FoundPlan& best = result.plans.front();
  const std::string strategy = kind_of(best.layout.strategy);
  if (stages(best) > 1 || (strategy != "local" && strategy != "interlocking")) return "";
  std::string words = "Its one stage has one loss, so that " +
                      std::string(strategy == "local" ? "local" : "N-wise") +
                      " training is global training in replicas";
  const auto other = std::ranges::find_if(result.plans, [&](const FoundPlan& plan) {
    return stages(plan) > 1 && kind_of(plan.layout.strategy) == strategy;
  });
  if (other == result.plans.end()) {
    std::string degrees;
    for (int ranks = 2; ranks <= best.layout.devices; ++ranks) {
      if (best.layout.devices % ranks != 0 || ranks > kMostStagesNamed) continue;
      degrees += (degrees.empty() ? "" : ", ") + std::to_string(ranks);
    }
    if (degrees.empty()) return words + ".";
    return words + "; --set 'search.pipeline=[" + degrees + "]' finds the best of several stages.";
  }
  return words + ". The best of several stages: " + plan_words(*other) + " (" +
         loss_words(*other, best, result.request.aim) + ").";
}

std::string no_plan_words(const SearchCounts& counts) {
  if (unproven(counts) == 0) return "No plan is within the limits";
  return "No plan that was looked at is within the limits; " + std::to_string(unproven(counts)) +
         " may be, and cost too much to look at: fewer values under \"search\" reach them";
}

}  // namespace interlock
