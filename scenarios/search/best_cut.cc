// Searches the cut of the best plan, and judges it as other plans are.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/best_cut.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/load/loader.h"
#include "scenarios/plan/choices.h"
#include "scenarios/plan/known_prices.h"
#include "scenarios/search/rank_layouts.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

// A fraction of the time that the search took before.
constexpr int kLooksAtCut = 20;
constexpr std::int64_t kOpsOfLook = 12'000;
constexpr std::int64_t kOpsOfStage = 6;  // and micro-batch, with messages

JsonValue modules_of(const Partition& partition) {
  std::vector<JsonValue> counts;
  counts.reserve(static_cast<std::size_t>(partition.stages()));
  for (int stage = 0; stage < partition.stages(); ++stage) {
    counts.push_back(json_number(partition.boundaries[stage + 1] - partition.boundaries[stage]));
  }
  return json_list(std::move(counts));
}

void set_partition(FoundPlan& found, const JsonValue& partition) {
  const std::string path = "partition";
  found.order.partition = partition;
  for (Setting& setting : found.settings) {
    if (setting.path == path) setting.value = partition;
  }
  set_key(found.document, path, partition, "search");
}

LaidOut laid_out(const FoundPlan& found) {
  Question question = load_point(std::make_shared<const JsonValue>(found.document));
  question.known_prices = std::make_shared<KnownPrices>();
  return lay_out(question);
}

/// Returns `plan` with a cut that is searched, as it is simulated; nothing if it is of no use.
std::optional<FoundPlan> cut_anew(FoundPlan plan, const SearchRequest& request,
                                  const std::function<void()>& looked) {
  set_partition(plan, json_text("auto"));
  LaidOut laid = laid_out(plan);
  Plan& draft = laid.draft;
  draft = shortened(draft, kOpsOfStage * draft.question.layout.stages * draft.micro_batches,
                    kOpsOfLook);
  const CutEffort effort = {.usable = request.limits.memory ? 1 : plan.estimate.usable_share,
                            .memory = request.limits.memory,
                            .looks = kLooksAtCut,
                            .simulates = false,
                            .looked = looked};
  set_partition(plan, modules_of(search_cut(laid, effort).partition));
  const LaidOut cut = laid_out(plan);
  try {
    if (request.check_use) request.check_use(cut.draft);
  } catch (const Error&) {
    return std::nullopt;
  }
  const double usable = plan.estimate.usable_share;
  plan.estimate = estimate_by_simulation(cut, estimate_by_look(cut.ordered()));
  plan.estimate.usable_share = usable;
  return plan;
}

}  // namespace

void take_if_better(FoundPlan found, SearchResult& result) {
  const SearchRequest& request = result.request;
  const PlanEstimate& estimate = found.estimate;
  const bool alike = !estimate.too_large || result.plans.front().estimate.too_large;
  if (!alike || limit_met(request.limits, estimate, Grade::Simulation)) return;
  const double worth = 1 + request.worth;
  const PlanValues& values = estimate.values;
  const auto aim = static_cast<std::size_t>(request.aim);
  if (values[aim] * worth >= result.plans.front().estimate.values[aim]) return;
  for (FoundPlan& plan : result.plans) {
    bool beaten = true;
    for (std::size_t i = 0; i < kAims; ++i) {
      beaten = beaten && values[i] <= plan.estimate.values[i] * worth;
    }
    plan.worth_having = plan.worth_having && !beaten;
  }
  result.plans.insert(result.plans.begin(), std::move(found));
}

void cut_best_plan(SearchResult& result, const std::function<void()>& looked) {
  const FoundPlan& best = result.plans.front();
  const bool several = best.order.chunks > 1 && !best.estimate.too_large;
  if (!several || !result.request.partitions.empty()) return;
  ++result.counts.cut_anew;
  std::optional<FoundPlan> found = cut_anew(best, result.request, looked);
  if (found) take_if_better(*std::move(found), result);
}

void refine_best(SearchResult& result, const SearchProgress& told) {
  if (result.plans.empty() || result.stopped || result.request.aim == Aim::Memory) return;
  const SearchCounts& counts = result.counts;
  const auto looked = [&] {
    if (told) told(counts.layouts + counts.plans, counts.layouts + counts.plans);
  };
  try {
    lay_ranks_apart(result, looked);
    cut_best_plan(result, looked);
  } catch (const StopSearch&) {
    result.stopped = true;
  }
}

}  // namespace interlock
