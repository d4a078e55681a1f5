// The catalogue of schedules: names, what they need, and the function that makes each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/plan/schedules/schedule.h"
#include "sim/plan/schedules/strategy.h"

namespace interlock {

enum class ScheduleKind {
  Naive,
  NaiveSplit,
  GPipe,
  OneFOneB,
  EagerOneFOneB,
  Interleaved,
  BreadthFirst,
  ZbH1,
  ZbH2,
  ZbV,
  InterleavedZb,
  DualPipe,
  DualPipeV,
  Chimera,
  Hanayo,
  PipeDream,
  PipeDream2Bw,
  PipelinedBackprop,
  DelayedGradients,
  FeaturesReplay,
  Petra,
  Ppll,
  Dgl,
  TeraPipe,
  Eager,
  List,
  Auto,
  File,
};

/// How a schedule lays stages on ranks. Any: as the scenario says. Loop: 0, 1, 2, 0, 1, 2, ...; V:
/// 0, 1, 2, 2, 1, 0, ...; Mirrored: one stage a rank, and a second copy of the model in reverse.
enum class StageLayout { Any, OneEach, Loop, V, Mirrored };

/// What a backward finds of its forward. Kept: all of it; Replayed: the input of the stage, from
/// which the forward is run again; Rebuilt: nothing, the input is computed back from the output,
/// which therefore travels with the gradient (reversible stages); the last one holds its input.
enum class StashMode { Kept, Replayed, Rebuilt };

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
  bool waits_for_sends = false;   // a stream stands until what it sends has left
  int message_parts = 1;          // tensor devices that send a part each of what all of them hold
  int in_flight = 1;              // micro-batches a stage may have begun and not updated on
  int update_every = 1;           // micro-batches between two updates of a stage; divides M
  bool barrier = false;           // no stage updates before every stage has its gradients
  bool bulk_synchronous = false;  // all ranks wait for each other after every row of the order
  StashMode stash = StashMode::Kept;
  bool replays = false;  // a stage keeps its last `queue.depth` inputs, and learns from them again
  int chunks = 1;        // stages of a rank where the schedule lays them
  /// Share of the shorter of two overlapped ops that costs no time: a pair takes
  /// F + B - overlap * min(F, B).
  double overlap = 0;
  std::vector<int> placement;  // (stages of all copies) File: the ranks that it lays them on
  int copies = 1;              // File
  /// File, Auto: the order of one step, every rank's ops.
  std::shared_ptr<const std::vector<std::vector<Op>>> order;
  Bytes memory;                    // Auto: of each device at most; 0: what it has
  std::optional<int> evaluations;  // Auto: orders to look at
};

/// What a schedule is made from.
struct ScheduleInputs {
  int stages = 1;  // of all copies
  int copies = 1;
  int slices = 1;
  int micro_batches = 1;   // M, slices counted singly
  std::vector<int> parts;  // slices of each micro-batch of a step that has several sizes of them
  int steps = 1;
  std::vector<int> rank_of_stage;  // (stages)
  std::vector<StageRole> roles;    // (stages)
  SchedulePolicy policy;
  int unroll = 1;  // bodies of local and interlocking runs span a multiple of this
};

/// The sizes that a family may have to refuse.
struct ScheduleShape {
  int ranks = 1;
  int stages = 1;         // of one copy
  int micro_batches = 1;  // M
  int update_every = 1;   // micro-batches between updates
};

Schedule make_schedule(const ScheduleInputs& inputs);

/// A line of the catalogue.
struct ScheduleEntry {
  ScheduleKind kind;
  std::string name;             // as scenarios write it
  bool global = true;           // for global training; else for local and interlocking
  bool any_strategy = false;    // for both
  bool local = false;           // only where no gradient crosses a boundary
  bool split_backward = false;  // the default
  bool flushes = false;         // updates once a step, after all of it
  bool updates_each = false;    // updates after each micro-batch, by default
  bool overlaps = false;        // runs pairs of ops as one
  bool slices = false;          // cuts sequences into token slices
  bool replays = false;         // learns again from old inputs rather than wait for a new one
  StashMode stash = StashMode::Kept;
  int queue = 1;  // local and interlocking: messages that may wait, by default
  StageLayout layout = StageLayout::Any;
  int chunks = 1;  // stages of a rank, by default
  std::string summary;
  std::string source;
  Schedule (*make)(const ScheduleInputs&);
  /// What is wrong with a shape, as "...; expected ..., got ..."; empty if nothing.
  std::string (*problem)(const ScheduleShape&) = nullptr;
  /// Micro-batches by which a step can grow so that its steady loop makes one more turn and nothing
  /// else changes; none: the order has no such loop, or its memory grows with M.
  int (*period)(const ScheduleShape&) = nullptr;
};
const std::vector<ScheduleEntry>& schedule_catalogue();
const ScheduleEntry& schedule_entry(ScheduleKind kind);

}  // namespace interlock
