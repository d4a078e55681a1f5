// estimate_step: how long a step takes, as exactly as the caller can afford.
// SPDX-License-Identifier: Apache-2.0
//
// One ladder. Each grade is dearer than the one before, and none says more time than the next (but
// for ranks that choose their order at run time, which contention may help):
//
//   LayoutBound  microseconds  no plan of the layout is shorter, whatever its schedule
//   PlanBound    10 us         no step of the plan is shorter
//   Look         ms            two steps, as if no two messages ever met on a link
//   Simulation   ms to s       the plan as it is; natively, unless it asks for SimGrid
//
// The search climbs it plan by plan and stops where a bound decides; "auto", `explain`, `init` and
// ranges take its top. Below it lies what a stage takes for one micro-batch (busy_time), which
// partitions and slices balance. The list scheduler behind "auto" compares thousands of orders of
// one program: it has a judge of its own, sim/measure/quick_look.
#pragma once

#include <functional>
#include <optional>

#include "scenarios/plan/plan.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// Tells how much is known of a step.
enum class Grade { LayoutBound, PlanBound, Look, Simulation };
inline constexpr int kGrades = 4;

/// Example: two devices of 80 GiB, forwards of 1 ms, backwards of 2 ms, 10 MB of stash, messages of
/// 1 MB that take 1 ms, two micro-batches under 1F1B. A Simulation says: time 11 ms, memory and
/// fullest 22 MB, memory_capacity 80 GiB, busy 6 / 11.
struct StepEstimate {
  Seconds time;               // of a step
  Bytes memory;               // of the device that takes most
  Bytes fullest;              // of the device that takes the largest part of its own
  Bytes memory_capacity;      // of that device; 0: unknown
  Bytes kept;                 // of LayoutBound: of `memory`, the part that no host can hold
  double busy = 0;            // share of the time in which kernels run, a mean over the devices
  Metrics metrics;            // of Look and Simulation
  bool exact = true;          // false: a Look at what shares links, or at devices that differ
  bool shares_links = false;  // the simulated program does
  bool folds = true;          // of Look: devices that stand for others do so exactly
  Seconds expected;           // of PlanBound: if no op computed while another waits, to order by
  bool chooses = false;       // some rank chooses its order at run time: contention may help it
};

/// Estimates a step of `plan`, which is no workload but for a Simulation. REQUIRES: its order is
/// known; of a Simulation it is folded, see fold(); grade > LayoutBound.
StepEstimate estimate_step(const Plan& plan, Grade grade);

/// Asked when the memory of a bound is known; if it is enough, the time stays 0.
using EnoughKnown = std::function<bool(const StepEstimate&)>;
/// Bounds a step of `plan`: Grade::PlanBound. REQUIRES: its order is known, and no workload.
StepEstimate bound_plan(const Plan& plan, const EnoughKnown& enough = {});

/// Facts that hold for all schedules that a layout may have.
struct ScheduleFamily {
  double overlap = 0;       // the most that one lets ops overlap, see SchedulePolicy
  bool keeps_stash = true;  // each keeps all that a forward made until its backward
  /// Says if a rank may have several streams, one of which computes while another waits; empty: if
  /// it has several stages.
  std::optional<bool> streams = {};
};

/// Bounds the steps of every plan that differs from that of `question` in partition, placement and
/// schedule only: Grade::LayoutBound.
StepEstimate bound_layout(const Question& question, const ScheduleFamily& family);

}  // namespace interlock
