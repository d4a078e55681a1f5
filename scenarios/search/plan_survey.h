// PlanSurvey: finds out about plans, one grade better at a time, by several workers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
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
};

/// Estimates of one candidate, or why there are none.
struct Findings {
  std::vector<std::optional<PlanEstimate>> estimates;  // nothing: the loader refuses it
  std::string refusal;                                 // why: the first
  std::string failure;  // how the worker died, or what it threw; empty: all is well
};

class PlanSurvey {
 public:
  /// REQUIRES: `space` outlives it. Bounds of layouts that need more memory of a device than
  /// `limits` leave have no time.
  PlanSurvey(const PlanSpace& space, const PlanLimits& limits, const Workers& workers);

  const std::vector<WorkOrder>& orders(std::size_t layout) const { return orders_[layout]; }

  /// Returns a bound of each layout for all of its plans.
  std::vector<Findings> bound_layouts() const;
  /// Returns better numbers of `candidates`: of a layout the bounds of all its plans, else one
  /// estimate.
  std::vector<Findings> know_better(const std::vector<Candidate>& candidates) const;

 private:
  Question question_of(std::size_t layout, const WorkOrder& order) const;
  LaidOut laid_out(std::size_t layout, const WorkOrder& order) const;
  double usable_share_of(const Question& question) const;
  std::string bound_of_layout(std::size_t layout) const;
  std::string bounds_of_plans(std::size_t layout) const;
  std::string better(const Candidate& candidate) const;
  std::vector<Findings> ask(std::size_t count,
                            const std::function<std::string(std::size_t)>& work) const;

  const PlanSpace& space_;
  PlanLimits limits_;
  std::shared_ptr<KnownExchanges> known_exchanges_ = std::make_shared<KnownExchanges>();
  Workers workers_;
  std::vector<std::vector<WorkOrder>> orders_;  // by layout
};

}  // namespace interlock
