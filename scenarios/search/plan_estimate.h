// PlanEstimate: what a plan takes, as exactly as was worth the effort.
// SPDX-License-Identifier: Apache-2.0
//
// Three ways to know it, each dearer than the one before and none below it: a bound, without
// simulation; a look, two steps as if no two messages ever met on a link; and a judgement, the
// scenario as it is, by SimGrid where links are shared. A judgement that would take long is made of
// a shorter step: that one over a look at it, times the look at the whole.
#pragma once

#include <array>

#include "scenarios/search/plan_bound.h"
#include "scenarios/search/search_request.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// What a plan should have little of, by Aim. Of what nobody knows (a price, a power), 0.
using PlanFigures = std::array<double, kAims>;

struct PlanEstimate {
  PlanFigures figures{};
  double power = 0;                      // watts, of all devices; 0: unknown
  double step_time = 0;                  // seconds
  double busy = 0;                       // share of the time, a mean over devices
  double working_links = 0;              // links, each by the share of the time in which it works
  double peak_memory = 0;                // bytes, of the fullest device
  std::array<double, kTimeUses> time{};  // shares of a step of the busiest device
  double memory_capacity = 0;            // bytes of a device
  int micro_batches = 1;                 // of a step
  int judged_micro_batches = 0;          // of the step that SimGrid simulated; 0: none was needed
  bool fits = true;                      // devices and hosts
  bool exact = false;                    // a look at what shares no links
};

/// How much is known of a plan: a bound of its layout, a bound of its own, a look, a judgement.
enum class Grade { LayoutBound, PlanBound, Look, Judgement };
inline constexpr int kGrades = 4;

/// What `bound` of a step of `scenario` means.
PlanFigures figures_of(const Scenario& scenario, const StepBound& bound);

/// REQUIRES: the order of work of `scenario` is known.
PlanEstimate look_at(const Scenario& scenario);
PlanEstimate judge(const Scenario& scenario, const PlanEstimate& look);

}  // namespace interlock
