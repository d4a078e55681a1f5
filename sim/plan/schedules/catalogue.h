// The catalogue of schedules: names, what they need, and the function that makes each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "sim/plan/schedules/formulas.h"
#include "sim/plan/schedules/schedule.h"
#include "sim/plan/schedules/strategy.h"

namespace interlock {

struct ScheduleEntry;
/// Returns the schedule of that name. REQUIRES: there is one.
const ScheduleEntry& schedule_named(std::string_view name);

/// The part of a forward that its backward finds. Kept: all of it; Replayed: the input of the
/// stage, from which the forward is run again; Rebuilt: nothing, the input is computed back from
/// the output, which therefore travels with the gradient (reversible stages); the last stage holds
/// its input.
enum class StashMode { Kept, Replayed, Rebuilt };

/// Room of a channel between two stages. Depth d: a sender waits while d messages are untaken;
/// Rendezvous: a sender waits for as long as its message would wait at the receiver; Unlimited: it
/// never waits.
struct QueuePolicy {
  enum class Kind { Rendezvous, Buffered, Unlimited };
  Kind kind = Kind::Unlimited;
  int depth = 1;  // Buffered
  bool operator==(const QueuePolicy&) const = default;
};

/// Everything under training.schedule of a scenario, defaults already filled in.
struct SchedulePolicy {
  const ScheduleEntry* kind = &schedule_named("1f1b");
  bool split_backward = false;
  QueuePolicy queue;
  MessageOrder messages;
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
  int round = 0;         // micro-batches that pass a chunk before the next has them; 0: the ranks
  int folds = 2;         // Helix: micro-batches that a rank takes one behind the other
  /// Share of the shorter op of a pair that costs no time: it takes F + B - overlap * min(F, B).
  double overlap = 0;
  bool passes_in_pairs = false;   // pairs are made, and take turns, see sim/plan/passages.h
  bool recomputes_early = false;  // of ranks with one order, before the gradient is there
  int deferred_readout = 0;       // micro-batches of a step, see defer_readout()
  VocabularySplit vocabulary = VocabularySplit::Whole;
  bool delays_weights = false;  // then weight gradients come behind those that messages wait for
  bool trades_context = false;  // ranks even out the attention of slices, see ContextTrade
  std::vector<int> placement;   // (stages of all copies) File: the ranks that it lays them on
  int copies = 1;               // File
  /// File, Auto: the order of one step, every rank's ops.
  std::shared_ptr<const std::vector<std::vector<Op>>> order;
  Bytes memory;                    // Auto: of each device at most; 0: what it has
  std::optional<int> evaluations;  // Auto: orders to look at

  /// Returns whether a search has yet to find the order.
  bool is_sought() const;
  bool operator==(const SchedulePolicy&) const = default;
};

/// Holds all that a schedule is made from.
struct ScheduleInputs {
  int stages = 1;  // of all copies
  int copies = 1, slices = 1;
  int micro_batches = 1;          // M, slices counted singly
  std::vector<int> slice_counts;  // of each micro-batch of a step that has several sizes of them
  int steps = 1;
  std::vector<int> rank_of_stage;  // (stages)
  std::vector<StageRole> roles;    // (stages)
  SchedulePolicy policy;
  int unroll = 1;  // bodies of local and interlocking runs span a multiple of this
  bool operator==(const ScheduleInputs&) const = default;
};

/// The sizes that a family may have to refuse.
struct ScheduleShape {
  int ranks = 1, stages = 1;                // stages: of one copy
  int micro_batches = 1, update_every = 1;  // M, and those between updates
  int round = 0, folds = 2;                 // as in SchedulePolicy
  int slices = 1;                           // of a micro-batch
};

Schedule make_schedule(const ScheduleInputs& inputs);

/// Says who orders the ops of a schedule: its function, a search, a file.
enum class OrderSource { Function, Search, File };

/// A line of the catalogue, as e.g. sim/plan/schedules/gpipe.cc defines one.
struct ScheduleEntry {
  std::string name;  // as scenarios write it
  Trains trains = Trains::Global;
  OrderSource order = OrderSource::Function;
  bool infers = false;            // runs inference, too: forwards alone
  bool split_backward = false;    // the default
  bool flushes = false;           // updates once a step, after all of it
  bool one_at_a_time = false;     // a micro-batch leaves the pipeline before the next one enters
  bool updates_each = false;      // updates after each micro-batch, by default
  bool overlaps = false;          // runs pairs of ops as one
  bool slices = false;            // cuts sequences into token slices
  bool even_slices = false;       // all of them equally long
  bool rounds = false;            // takes micro-batches through its chunks in rounds
  bool replays = false;           // learns again from old inputs rather than wait for a new one
  bool limits_in_flight = false;  // a scenario may say how many micro-batches are in flight
  bool sends_lists = false;       // all gradients of a stage travel as one message
  bool for_hosts = false;         // "auto" tries it where stash leaves for hosts
  StashMode stash = StashMode::Kept;
  int queue = 1;  // but for global training: messages that may wait, by default
  StageLayout layout = StageLayout::Any;
  int chunks = 1;                   // stages of a rank, by default
  std::string other_backward = {};  // the schedule that this one is with the other kind of backward
  std::string summary;
  std::string source;
  Schedule (*make)(const ScheduleInputs&);
  /// Says what is wrong with a shape, as "...; expected ..., got ..."; empty if nothing.
  std::string (*problem)(const ScheduleShape&) = nullptr;
  /// Says likewise what keeps forwards and backwards from pairs; null: they never, or always are.
  std::string (*pair_problem)(const ScheduleShape&) = nullptr;
  /// Returns the micro-batches by which a step can grow so that its steady loop makes one more turn
  /// and nothing else changes; null: the order has no such loop, or its memory grows with M.
  int (*period)(const ScheduleShape&) = nullptr;
  Formula bubble = {}, stashed = {};  // what papers and derivations say, see formulas.h

  bool global() const { return trains == Trains::Global || trains == Trains::Any; }
  /// Returns whether a step is over before the next one begins.
  bool parts_steps() const { return flushes || one_at_a_time; }
};

/// Returns whether of all copies of a stage one has the states, and is updated.
constexpr bool updates_one_copy(StageLayout of) { return of >= StageLayout::Ring; }
/// Returns all schedules, in the order in which people read them.
const std::vector<ScheduleEntry>& schedule_catalogue();
/// Returns the schedule of that name; null if there is none.
const ScheduleEntry* find_schedule(std::string_view name);

}  // namespace interlock
