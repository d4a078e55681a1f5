// The catalogue of schedules: names, what they need, and the function that makes each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/plan/schedule.h"
#include "sim/plan/strategy.h"

namespace interlock {

enum class ScheduleKind { Naive, NaiveSplit, GPipe, OneFOneB, Eager, List };

/// Room of a channel between two stages. Depth d: a sender waits while d messages are untaken;
/// Rendezvous: a sender waits for as long as its message would wait at the receiver; Unlimited: it
/// never waits.
struct QueuePolicy {
  enum class Kind { Rendezvous, Buffered, Unlimited };
  Kind kind = Kind::Unlimited;
  int depth = 1;  // Buffered
};

/// Everything under training.schedule of a scenario, defaults already filled in.
struct SchedulePolicy {
  ScheduleKind kind = ScheduleKind::OneFOneB;
  bool split_backward = false;
  QueuePolicy queue;
  bool copies_on_compute_stream = false;
  int in_flight = 1;     // micro-batches a stage may have begun and not updated on
  int update_every = 1;  // micro-batches between two updates of a stage; divides M
  bool barrier = false;  // no stage updates before every stage has its gradients
};

/// What a schedule is made from.
struct ScheduleInputs {
  int stages = 1;
  int micro_batches = 1;  // M
  int steps = 1;
  std::vector<int> rank_of_stage;  // (stages)
  std::vector<StageRole> roles;    // (stages)
  SchedulePolicy policy;
  int unroll = 1;  // bodies of local and interlocking runs span a multiple of this
};

Schedule make_schedule(const ScheduleInputs& inputs);

/// A line of the catalogue.
struct ScheduleEntry {
  ScheduleKind kind;
  std::string name;     // as scenarios write it
  bool global;          // for global training; else for local and interlocking
  bool split_backward;  // the default
  std::string summary;
  std::string source;
  Schedule (*make)(const ScheduleInputs&);
};
const std::vector<ScheduleEntry>& schedule_catalogue();
const ScheduleEntry& schedule_entry(ScheduleKind kind);

}  // namespace interlock
