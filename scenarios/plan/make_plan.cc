// Question to Plan: every choice, in the order in which they depend on each other.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "scenarios/plan/choices.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/outer_steps.h"
#include "sim/lower/unfold.h"
#include "sim/sharing/binding_links.h"

namespace interlock {
namespace {

/// Returns the plan of a traced run: each of its stages is a module of its own.
Plan plan_of_trace(const Question& question, const TraceWorkload& trace) {
  const Program& program = *trace.program;
  Plan plan{.question = question,
            .rank_of_stage = std::vector<int>(static_cast<std::size_t>(program.stages)),
            .micro_batches = trace.steps.micro_batches,
            .unfolded = question.simulation.unfolded.value_or(kFolded)};
  for (int stage = 0; stage <= program.stages; ++stage) plan.partition.boundaries.push_back(stage);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    for (const int stage : program.ranks[rank].stages) {
      plan.rank_of_stage[static_cast<std::size_t>(stage)] = static_cast<int>(rank);
    }
  }
  return plan;
}

/// Adds a second copy of the model, whose stages lie on the ranks in reverse, or as the file of the
/// schedule says.
void add_copy(Plan& plan) {
  plan.copies = 2;
  if (!plan.schedule.placement.empty()) {
    plan.rank_of_stage = plan.schedule.placement;
    return;
  }
  const std::vector<int> first = plan.rank_of_stage;
  const int last = plan.question.layout.ranks() - 1;
  for (const int rank : first) plan.rank_of_stage.push_back(last - rank);
}

/// Says why replicas of `plan` do not all do the same, though one stands for all; or "".
std::string shares_folding_problem(const Plan& plan, const Unfolded& unfolded) {
  const bool folds = !unfolded[static_cast<std::size_t>(Dimension::Data)];
  return folds && !plan.replica_micro_batches.empty()
             ? "replicas have numbers of micro-batches of their own"
             : "";
}

/// Says why ranks of `plan` differ from those for which they would stand under `unfolded`; empty if
/// they do not.
std::string variation_folding_problem(const Plan& plan, const Unfolded& unfolded) {
  const Question& question = plan.question;
  if (!question.variation) return "";
  const VariationConditions& variation = *question.variation;
  const Layout& layout = question.layout;
  if (variation.jitters() && folded_ranks(layout.mesh, unfolded).size() > 1) {
    return "jitter makes equal devices differ";
  }
  if (variation.documents && layout.mesh.degree(Dimension::Data) > 1 &&
      !unfolded[static_cast<std::size_t>(Dimension::Data)]) {
    return "replicas read documents of their own";
  }
  std::string problem = slow_folding_problem(variation.always_slow(), layout.mesh, unfolded);
  for (const Straggler& straggler : variation.stragglers) {
    if (!problem.empty() || straggler.always()) continue;
    problem = slow_folding_problem({straggler.devices}, layout.mesh, unfolded);
  }
  return problem;
}

}  // namespace

Plan make_plan(const Question& question) { return complete(lay_out(question)); }

Plan complete(LaidOut laid_out) {
  if (laid_out.draft.question.trace()) return std::move(laid_out.draft);
  if (leaves_cut(laid_out.draft.question)) {
    Plan plan = search_cut(laid_out);
    plan.unfolded = exact_folding(plan);
    return plan;
  }
  const bool sought = laid_out.draft.schedule.is_sought();
  SchedulePolicy schedule = sought ? find_order(laid_out) : laid_out.draft.schedule;
  Plan plan = std::move(laid_out.draft);
  plan.schedule = std::move(schedule);
  plan.unfolded = exact_folding(plan);
  return plan;
}

LaidOut lay_out(const Question& question) {
  if (const TraceWorkload* const trace = question.trace()) return {plan_of_trace(question, *trace)};
  if (question.training().strategy.sought) return {choose_reach(question)};
  return {question.training().balances_batch ? balance_batch(question)
                                             : lay_out_one_size(question)};
}

const Plan& LaidOut::ordered() const {
  CHECK(!draft.schedule.is_sought(), "a bound or a look needs an order");
  return draft;
}

Plan lay_out_one_size(const Question& question) {
  CutModel cut = cut_model(question);
  const Training& training = question.training();
  Plan plan{.question = question,
            .rank_of_stage = std::move(cut.rank_of_stage),
            .partition = std::move(cut.partition),
            .schedule = training.schedule,
            .micro_batches = training.micro_batches,
            .unfolded = question.simulation.unfolded.value_or(kFolded)};
  if (training.slices) plan.slices = cut_sequences(plan, *training.slices);
  const StageLayout laid = plan.schedule.kind->layout;
  if (laid == StageLayout::Mirrored || plan.schedule.copies > 1) add_copy(plan);
  const bool balanced = question.layout.partition.kind == PartitionRule::Kind::Balanced;
  if (balanced && is_mixed(question.cluster) && question.layout.rank_layouts.empty()) {
    plan.partition = fitting_partition(plan);
  }
  return training.replica_batches.kind == ReplicaBatches::Kind::Equal ? plan : share_batches(plan);
}

Unfolded exact_folding(const Plan& plan) {
  const Question& question = plan.question;
  std::vector<Unfolded> all = foldings(question.layout.mesh);
  if (!question.layout.layer_layouts.empty()) {
    std::erase_if(all, [&](const Unfolded& unfolded) {
      return !folds_layers(question.layout.mesh, unfolded);
    });
  }
  if (all.size() == 1) return all.front();
  Plan tried = plan;
  std::string problem;
  for (const Unfolded& unfolded :
       question.simulation.unfolded ? std::vector{*question.simulation.unfolded} : all) {
    tried.unfolded = unfolded;
    problem = shares_folding_problem(plan, unfolded);
    if (problem.empty()) problem = variation_folding_problem(tried, unfolded);
    if (!problem.empty()) continue;
    const Program program = lower_plan(tried, 1);
    problem = program.folding_problem;
    if (problem.empty() && question.layout.data_parallel.outer.any()) {
      problem = lower_outer_step(tried, lower_inputs(tried)).folding_problem;
    }
    if (problem.empty() && question.simulation.engine == EngineKind::SimGrid &&
        crosses_again(program)) {
      problem = "of their equal messages several cross one link, which SimGrid cannot be told";
    }
    if (problem.empty()) return unfolded;
  }
  throw Error(question.file + ": " + question.name +
              ": /simulate/fold: ranks that stand for others would not do what those do: " +
              problem + "; expected \"auto\", which simulates them all where it must");
}

std::vector<int> device_numbers(const Plan& plan) {
  std::vector<int> numbers;
  for (const Coordinates& at : simulated_ranks(plan.question.layout.mesh, plan.unfolded)) {
    numbers.push_back(device_of(plan.question.layout.mesh, at));
  }
  return numbers;
}

Plan with_micro_batches(Plan plan, int micro_batches) {
  plan.micro_batches = plan.schedule.update_every = micro_batches;
  plan.replica_micro_batches.clear();
  return plan;
}

double all_micro_batches(const Plan& plan) {
  const std::vector<int>& counts = plan.replica_micro_batches;
  if (!counts.empty()) return std::accumulate(counts.begin(), counts.end(), 0.0);
  return static_cast<double>(plan.micro_batches) *
         plan.question.layout.mesh.degree(Dimension::Data);
}

}  // namespace interlock
