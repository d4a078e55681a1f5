// The choices that make_plan() makes, a function for each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "scenarios/plan/plan.h"

namespace interlock {

/// Lays `question` out as it is written, its micro-batches of the size that its model has.
Plan lay_out_one_size(const Question& question);

/// Returns the draft of least span among those of every size of micro-batch that divides the batch,
/// and of steps that mix sizes if these are faster still. REQUIRES: question.balances_batch; the
/// document says all that it does.
Plan balance_batch(const Question& question);

struct CutModel {
  Partition partition;
  std::vector<int> rank_of_stage;  // (stages)
};
/// Cuts the model as "partition" says. `balanced` minimises the busy time of the busiest stage for
/// one micro-batch, heads, recompute and every traversal included, or how long the longest message
/// occupies a link; where stages wait for the losses of others, the longest of their loops. Stages
/// that nothing lays on ranks are laid in contiguous blocks, so that the busiest rank is least
/// busy.
CutModel cut_model(const Question& question);

/// Returns the partition of `plan`, cut once more if a device lacks memory for its stages: then the
/// busiest stage is as little busy as it can be where each rank's stages fit its devices. Returns
/// that of `plan` if no cut fits. REQUIRES: it is balanced; ranks have no layouts of their own.
Partition fitting_partition(Plan plan);

/// Returns the slices of each micro-batch by `rule`. REQUIRES: `plan` is complete but for them.
std::vector<TokenSlice> cut_sequences(const Plan& plan, const SliceRule& rule);
/// Returns how long a step takes by the rule that balances slices, so without transfers and update.
/// REQUIRES: micro-batches of one size.
Seconds planned_span(const Plan& plan);

struct BatchMix {
  std::vector<SizedBatch> batches;  // empty: those of least span are all of one size
  Seconds span;
};
/// Returns the micro-batches, of the given sizes and each with slices of its own, that `samples`
/// take least time in. Searched in 32nds of a sequence; slices of the sizes found are then searched
/// in 128ths.
BatchMix mix_batches(const Plan& plan, std::vector<SizedBatch> sizes, int samples);

/// Returns `plan` with the micro-batches of each replica as training.replica_micro_batches says.
/// By speed: a replica whose ranks are busy t_0, t_1, ... for a micro-batch takes about
/// t_0 + t_1 + ... + (m - 1) x the largest of them for m micro-batches; the most of that over the
/// replicas is as little as it can be. REQUIRES: it says other than "equal".
/// Example: one rank each, busy 1 and 3 s, 8 micro-batches: 6 and 2, done after 6 s.
Plan share_batches(Plan plan);

/// Returns the schedules of the catalogue that compete with orders of the search behind "auto", for
/// stages as they lie in `plan`.
std::vector<SchedulePolicy> hand_made_schedules(const Plan& plan);

/// Returns a schedule that can be made: the hand-made one that nothing beats, or an order of its
/// own. REQUIRES: that of `laid_out` is to be found.
/// Throws: Error if no order fits into the memory of a device, saying what would.
SchedulePolicy find_order(const LaidOut& laid_out);

/// Returns the plan of `question` with the N that is best for each loss, everything chosen.
/// REQUIRES: its strategy leaves them open. Throws: Error if no N fits into the memory of a device.
Plan choose_reach(const Question& question);

/// Returns whether a search chooses modules or ranks of stages: "auto".
bool leaves_cut(const Question& question);

struct CutEffort {
  double usable = 1;             // share of each device's memory that may be taken
  std::optional<Bytes> memory;   // of each device, that may be taken beside that
  int looks = 300;               // quick estimates at most, fewer where steps are long
  bool simulates = true;         // the best few in the end, where links are shared
  std::function<void()> looked;  // called before each estimate; what it throws ends the search
};
/// Returns the draft of `laid_out` with what is "auto" of modules, ranks and schedule chosen
/// together: each device has room, if that was found, and a step is the shortest that was found,
/// judged by simulated steps. Throws: Error as find_order(). REQUIRES: leaves_cut().
Plan search_cut(const LaidOut& laid_out, const CutEffort& effort = {});

}  // namespace interlock
