// PlanEstimate: what a plan takes, as exactly as was worth the effort.
// SPDX-License-Identifier: Apache-2.0
//
// Known by one of the grades of scenarios/plan/step_time.h. A simulation that would take long is
// made of a shorter step: that one over a look at it, times the look at the whole.
//
// Example: the best plan of scenarios/examples/gpt2-xl-1f1b.json, simulated, has step_time 0.654
// and mfu 0.412.
#pragma once

#include <array>
#include <cstdint>

#include "scenarios/plan/step_time.h"
#include "scenarios/search/search_request.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// The quantities of which a plan should have little, by Aim; 0 where a price or power is unknown.
using PlanValues = std::array<double, kAims>;

struct PlanEstimate {
  PlanValues values{};
  double power = 0;                      // watts, of all devices; 0: unknown
  double step_time = 0;                  // seconds
  double busy = 0;                       // share of the time, a mean over devices
  double working_power = 0;              // watts that kernels add to a waiting device's, a mean
  double working_links = 0;              // links, each by the share of the time in which it works
  double peak_memory = 0;                // bytes, of the device that takes most
  std::array<double, kTimeUses> time{};  // shares of a step of the busiest device
  // Bytes of the device that takes the largest part of its own, and what that has; 0: unknown.
  double fullest_memory = 0, memory_capacity = 0;
  std::array<Bytes, kMemoryClasses> memory{};  // of that device, at its peak
  double memory_share = 0;  // the part of its own that it takes at least, as `values` are least
  double kept_share = 0;    // of a layout's bound: the part that it takes whatever hosts hold
  double usable_share = 1;  // that it may take, see reserve.h; PlanSurvey knows it
  double samples = 0, tokens = 0;   // of a step; 0: unknown
  double mfu = 0, flops_per_s = 0;  // of a device, by the model's flops; 0: unknown
  int micro_batches = 1;            // of a step
  int judged_micro_batches = 0;     // of the step that was simulated in full; 0: not needed
  bool fits = true;                 // devices and hosts
  bool exact = false;               // a look at what shares no links
  bool folds = true;                // of a look: devices that stand for others do so exactly
  /// Says of a plan's bound that an order before this one has the same stages; of a layout's, that
  /// all its plans are those of ZeRO 1.
  bool repeats = false;
  bool too_large = false;  // to be simulated: the numbers are those of the look
  bool unjudged = false;   // and was so when it led
  bool nearly = false;     // simulated with devices that stand for others nearly, see fold()
};

/// Returns what is known of a plan like `plan` whose steps are bounded by `bound`.
PlanEstimate estimate_by_bound(const Plan& plan, const StepEstimate& bound);

/// Estimates `plan` by Grade::Look.
PlanEstimate estimate_by_look(const Plan& plan);
/// Returns the `look` at `plan` with its own numbers as values, which were least ones.
PlanEstimate priced_look(const Plan& plan, PlanEstimate look);
/// Estimates the plan of `laid_out`, at which `look` was, by Grade::Simulation. A plan that takes
/// more than `most_flows` flows, with devices folded as simulate does, keeps the numbers of the
/// look, as if no two messages met on a link, and is marked as too large.
PlanEstimate estimate_by_simulation(const LaidOut& laid_out, const PlanEstimate& look,
                                    double most_flows = kFlowsOfSimulation);

/// Returns a step of fewer micro-batches, so that about `most_tasks` tasks are simulated of
/// `tasks_in_step`; the step itself where its schedule has no steady loop.
Plan shortened(const Plan& plan, std::int64_t tasks_in_step, std::int64_t most_tasks);

}  // namespace interlock
