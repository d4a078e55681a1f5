// PlanSearch: the plans worth having, of all that a scenario may be trained by.
// SPDX-License-Identifier: Apache-2.0
//
// Best first. Layouts and plans wait in the order of what is known of them: no plan can take less
// than it is thought to. Whatever comes first is looked at more closely (bound, look, simulation,
// see PlanEstimate) and waits again; what comes first and is judged is the next best plan. So
// nothing is simulated that a bound can decide on, and what is found is what simulating all plans
// would find.
//
// Example: the best plan of scenarios/examples/gpt2-xl-1f1b.json has data 8, ZeRO 3 and
// micro-batches of 4 samples: a step of 654 ms in 40.2 GiB. The second takes 671 ms, but 22.9 GiB,
// and so is worth having.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scenarios/ranges/confidence.h"
#include "scenarios/search/plan_estimate.h"
#include "scenarios/search/plan_space.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {

/// Why a plan was looked at no further. By the limits of the request, in the order of Aim; or it is
/// no better than a plan that was found, or says by other settings what another plan says.
enum class Loss { Time, Memory, Cost, Energy, Power, HostMemory, Dominated, Identical };
inline constexpr int kLosses = 8;

/// Returns which limit what is known of a plan by `grade` is beyond.
std::optional<Loss> limit_met(const PlanLimits& limits, const PlanEstimate& known, Grade grade);

struct FoundPlan {
  PlanLayout layout;
  WorkOrder order;
  std::vector<Setting> settings;
  JsonValue document;  // its scenario
  PlanEstimate estimate;
  bool worth_having = true;  // else a plan before it is no worse in anything that counts
  bool simulated = true;     // else the search was stopped after a look at it, whose numbers it has
  /// Layouts that are this plan by other settings: e.g. ZeRO 2 where whole gradients are added up.
  std::vector<PlanLayout> alike;
};

struct SearchCounts {
  std::size_t layouts = 0, plans = 0;  // proposed
  std::size_t refused = 0;             // plans that the loader does not take
  std::string refusal;                 // why: of the first
  std::size_t useless = 0;             // plans that SearchRequest::check_use refuses
  std::string useless_because;         // of the first
  std::size_t bounded_layouts = 0;     // by one bound for all their plans
  std::size_t bounded = 0, looked_at = 0, judged = 0, shortened = 0, too_large = 0;  // plans
  std::array<std::array<std::size_t, kLosses>, kGrades> lost{};  // plans, by Grade and Loss
  std::size_t left = 0;  // plans that cost too much to look at
  /// Plans, of those and of the too large ones, that may be better than the best by what is known
  /// of them, or within the limits if there is no plan.
  std::size_t left_better = 0, large_better = 0;
  /// Plans that wait for a look when a search is stopped; and, before the best is proven, those of
  /// all that wait, for a look or a simulation, that may be better by what is known of them.
  std::size_t waiting = 0, waiting_better = 0;
  std::string left_out;        // values that were not proposed, in words: see cut_space()
  std::size_t cut_anew = 0;    // plans of which modules were moved, by looks
  std::size_t unfinished = 0;  // failed while simulated
  std::string failure;         // how: of the first
};

/// Adds all numbers, and takes the first refusal and the first failure.
SearchCounts& operator+=(SearchCounts& counts, const SearchCounts& more);
/// Thrown for a space of plans none of which the loader takes.
struct NoPlanPossible : Error {
  std::size_t tried = 0;  // plans
  std::string first;      // refusal, or ""
  NoPlanPossible(const std::string& text, std::size_t plans, std::string refusal)
      : Error(text), tried(plans), first(std::move(refusal)) {}
};
/// Throws: Error if there are no plans in `counts`, for a batch of `batch` samples; NoPlanPossible.
void refuse_empty(const SearchCounts& counts, int batch);
/// Returns the plans that were looked at no further because of `loss`.
std::size_t lost(const SearchCounts& counts, Loss loss);
/// Returns the plans that may be better than the best, or, if there is none, be one.
inline std::size_t unproven(const SearchCounts& counts) {
  return counts.left_better + counts.large_better + counts.unfinished + counts.waiting_better;
}

struct SearchResult {
  SearchRequest request;
  std::string name;
  Question scenario;               // of the best plan, or of the closest
  std::vector<FoundPlan> plans;    // the best first: worth having, and the next best
  std::vector<FoundPlan> closest;  // if none is within the limits: the one that needs least memory
  SearchCounts counts;
  bool stopped = false;        // others that are worth having may be missing
  bool cut_off = false;        // stopped before the best was proven: `plans` are the best by then
  Bytes memory_limit;          // of the device that `scenario` fills most; 0: unknown
  Confidence confidence = {};  // in the step time of the best plan, if there is one
};

/// Thrown by a SearchProgress to end a search: with the plans that are found or, before the best
/// is, those that were simulated or else looked at. Leaves a search that has looked at none.
struct StopSearch {};
/// Told how many layouts are bounded and plans decided, of all layouts and plans. Another exception
/// that it throws leaves the search.
using SearchProgress = std::function<void(std::size_t done, std::size_t of)>;

/// Returns what "search" of a scenario asks for. Throws: Error with its mistakes.
SearchRequest request_of(const JsonValue& document);

/// Searches the plans of the scenario of `document` by `workers`. What is found depends neither on
/// them nor on their speed. Throws: Error if the document is wrong, or nothing of the
/// space is a plan.
SearchResult search_plans(const JsonValue& document, const Workers& workers,
                          const SearchProgress& told = {});
/// Searches by `request`, whatever the document asks for.
SearchResult search_plans(const JsonValue& document, const SearchRequest& request,
                          const Workers& workers, const SearchProgress& told = {});

}  // namespace interlock
