// Plan: a question with every choice made; LaidOut: one whose order may still be open.
// SPDX-License-Identifier: Apache-2.0
//
// Example: 24 equal layers, "partition": "balanced", "schedule": "1f1b" on 4 ranks with data 8. The
// plan has the boundaries {0, 6, 12, 18, 24}, the ranks {0, 1, 2, 3}, the order 1F1B, and simulates
// one replica for all eight, as they do the same at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scenarios/load/question.h"
#include "sim/plan/partition.h"

namespace interlock {

/// A micro-batch of a step whose micro-batches differ in size.
struct SizedBatch {
  int samples = 1;
  std::shared_ptr<const ModelGraph> graph;  // of that number of samples
  std::vector<TokenSlice> slices;           // in order
};

struct Plan {
  Question question;               // what was asked; where it left that open, with the batch chosen
  int copies = 1;                  // of the model, where a schedule keeps several
  std::vector<int> rank_of_stage;  // (stages of all copies)
  Partition partition;
  SchedulePolicy schedule;
  int micro_batches = 1;                   // M, of the replica that has most
  std::vector<int> replica_micro_batches;  // of each, where they differ; else empty
  std::vector<TokenSlice> slices;          // of each micro-batch, in order; empty: it is whole
  std::vector<SizedBatch>
      sized_batches;            // the micro-batches, where they differ in size; else empty
  Unfolded unfolded = kFolded;  // dimensions of which every coordinate is simulated
  std::string uneven;           // why the folding is nearly exact only; empty: it is exact
  /// Whose dimensions these are, if not the run's: where layers have degrees of their own.
  std::optional<Mesh> folded_as;
};

/// Returns the mesh some of whose dimensions are simulated whole, and the others folded.
inline const Mesh& simulated_mesh(const Plan& plan) {
  return plan.folded_as ? *plan.folded_as : plan.question.layout.mesh;
}

/// A question that is cut, placed and sliced. The order behind "auto" is still open, and devices
/// are folded as far as was asked, or as can be, whether that is exact or not.
///
/// Example: with "schedule": "auto", `draft.schedule` is {auto} and no plan can be bounded;
/// complete() finds e.g. zb-h1 and that both replicas of a shared link must be simulated.
struct LaidOut {
  Plan draft;

  /// Returns the draft for bounds and looks, which need no exact folding. REQUIRES: its order is
  /// known: it is not "auto", or was found.
  const Plan& ordered() const;
};

/// Makes every choice that `question` leaves open: partition, placement, slices, the sizes of
/// micro-batches, the order of "auto", and which devices are simulated for others.
/// Throws: Error if no order fits into the memory of a device, or a folding that is asked for is
/// not exact.
Plan make_plan(const Question& question);

/// Makes the choices that take no search for an order.
LaidOut lay_out(const Question& question);
/// Finds the order of "auto" and a folding for what is laid out. Throws: Error as make_plan().
Plan complete(LaidOut laid_out);

/// Chooses the dimensions of `plan` that are simulated whole. Folding the others is exact, but
/// where "nearly" is asked for, or "auto" would have to simulate hundreds of devices; `plan.uneven`
/// says so. Throws: Error if the scenario asks for a folding that is not exact.
void fold(Plan& plan);
struct FoldedWithin {
  bool folded = false;
  std::optional<std::int64_t> tasks = {};  // of a step, if it was lowered to know
  /// By what links carry in a step, which depends on its micro-batches; exact foldings do not.
  bool by_bytes = false;
};
/// Folds `plan` if that simulates at most `most_ranks` ranks.
FoldedWithin fold_within(Plan& plan, double most_ranks);
/// Has `plan` simulate one device for all that those of `other` do it for.
void fold_as(const Plan& other, Plan& plan);
/// A way to fold a plan.
struct Folding {
  Unfolded unfolded = kFolded;
  std::optional<Mesh> as;  // see Plan::folded_as
};
/// Returns the ways to fold a plan of `layout`, whether they are exact or not, by the number of
/// ranks that are simulated.
std::vector<Folding> foldings_of(const Layout& layout);

/// Returns the number in the cluster of the device of each simulated rank.
std::vector<int> device_numbers(const Plan& plan);

/// Returns `plan` with another number of micro-batches in a step of each replica, all of which
/// update once.
Plan with_micro_batches(Plan plan, int micro_batches);
/// Returns how many micro-batches all replicas together have in a step.
double all_micro_batches(const Plan& plan);

}  // namespace interlock
