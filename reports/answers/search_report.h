// SearchReport: what interlock search found, for people and for programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/report.h"
#include "scenarios/search/plan_search.h"

namespace interlock {

/// Returns a text as it is, anything else as JSON; "-" for nothing.
std::string words_of_value(const JsonValue& value);
/// Returns "selective", or "layernorm+mlp" where modules are computed again.
std::string recompute_words(const JsonValue& recompute);
/// Returns the plan in words: "tensor 4, pipeline 8, data 2, ZeRO 2, micro-batch 1, selective
/// recomputation, zb-v". Stages of ZeRO that are the same plan follow each other: "ZeRO 1 or 2".
std::string plan_words(const FoundPlan& plan);
/// Returns what `layout` has beside degrees, where that is not usual: "shards of 8,
/// tokens beside micro-batches".
std::string option_words(const PlanLayout& layout);
/// Returns the data degree of each pipeline rank; none where all have the same.
std::vector<int> data_of_ranks(const PlanLayout& layout);
/// Returns the degree of all ranks, or those of each: "1, 7x8".
std::string tensor_words(const PlanLayout& layout);
std::string data_words(const PlanLayout& layout);
/// Returns the name of a partition, or the modules of its stages: "11, 2x12, 10".
std::string partition_words(const JsonValue& partition);
/// Returns the stages of ZeRO that `plan` may have: "1 or 2".
std::string zero_words(const FoundPlan& plan);
/// Returns the precisions that `plan` may have, if a search chose among some: "bf16 or fp16".
std::string precision_words(const FoundPlan& plan);
/// Returns `amount` of a step a second and device.
double per_device(const FoundPlan& plan, double amount);
/// Returns "532 TFLOP/s/GPU, MFU 53.8%"; empty if that is unknown.
std::string rate_words(const PlanEstimate& estimate);

/// Returns why `plan` comes after `best`: by how much it is worse in what the search minimizes, and
/// into what the busiest device puts the time that a step takes longer.
std::string loss_words(const FoundPlan& plan, const FoundPlan& best, Aim aim);

/// Says that the best plan of `result` has one stage, so that its local or N-wise training is
/// global, and which plan of several stages is the best; or "".
std::string one_stage_words(const SearchResult& result);
/// Says that no plan is within the limits, of all, or of those that were looked at.
std::string no_plan_words(const SearchCounts& counts);

/// Returns `--set parallel.tensor=4 --set ...`, as a shell takes it.
std::string set_options(const FoundPlan& plan);

/// Returns the plans worth having, why the next best lost, and what became of all the others.
std::string search_text(const SearchResult& result, const TableStyle& style);
/// Returns `plan` as one of "plans" of "interlock-search/1".
nlohmann::ordered_json found_json(const FoundPlan& plan);
/// Returns the document "interlock-search/1", see docs/search.md.
std::string search_json(const SearchResult& result);

}  // namespace interlock
