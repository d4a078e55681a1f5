// PlanSurvey: finds out about plans, one grade better at a time, by several workers.
// SPDX-License-Identifier: Apache-2.0
//
// Example: layout 7 has eight orders. Of Candidate {LayoutBound, 7} know_better() returns eight
// bounds, those of its plans; of {PlanBound, 7, 2} one estimate, the look at its third plan; of
// {Look, 7, 2} the simulation of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/plan_estimate.h"
#include "scenarios/search/plan_space.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {

/// A layout, or a plan, and what is known of it.
struct Candidate {
  Grade grade = Grade::LayoutBound;
  std::size_t layout = 0, order = 0;
  PlanEstimate estimate;
  bool borrowed = false;  // of LayoutBound: that of the layout without offload
};

/// Estimates of one candidate, or why there are none.
struct Findings {
  std::vector<std::optional<PlanEstimate>> estimates;  // nothing: the loader refuses it
  std::string refusal;                                 // why: the first
  std::string failure;  // how the worker died, or what it threw; empty: all is well
  bool known = false;   // else the survey was ended before
};

/// Told how many of the layouts are bounded. An exception that it throws ends the survey.
using LayoutsBounded = std::function<void(std::size_t layouts)>;
/// Told that a candidate is better known. An exception that it throws ends the survey.
using Heard = std::function<void()>;

class PlanSurvey {
 public:
  /// REQUIRES: `space` and `request` outlive it.
  PlanSurvey(const PlanSpace& space, const SearchRequest& request, const Workers& workers);

  const std::vector<WorkOrder>& orders(std::size_t layout) const { return orders_[layout]; }

  /// Returns a bound of each layout for all of its plans.
  std::vector<Findings> bound_layouts(const LayoutsBounded& told);
  /// Finds better numbers of `candidates`: of a layout whose bound is borrowed its own, of another
  /// layout the bounds of all its plans, else one estimate; of a plan whose bound is known none
  /// where check_use() of the request refuses it. `findings` has room for each, and keeps those
  /// that there are when `heard` ends the survey.
  void know_better(const std::vector<Candidate>& candidates, const Heard& heard,
                   std::vector<Findings>& findings);

 private:
  const PlanSpace& space_;
  std::vector<std::vector<WorkOrder>> orders_;  // by layout
  std::size_t processes_;                       // or threads
  WorkerPool workers_;
};

}  // namespace interlock
