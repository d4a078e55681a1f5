// Question to Plan: every choice, in the order in which they depend on each other.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "scenarios/plan/choices.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/outer_steps.h"
#include "sim/lower/unfold.h"
#include "sim/plan/layer_layouts.h"
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

/// Adds the other copies of the model: one, whose stages lie on the ranks in reverse, or as the
/// file of the schedule says; or one for each rank of a ring, which has all of its stages; or,
/// under HelixPipe, one for each place of a round, whose attention lies a rank further each.
void add_copies(Plan& plan) {
  if (plan.schedule.kind->layout == StageLayout::Helix) {
    const int ranks = plan.question.layout.ranks(), stages = plan.question.layout.stages;
    plan.copies = ranks;
    for (int place = 1; place < ranks; ++place) {
      for (int stage = 0; stage < stages; ++stage) {
        const int first = plan.rank_of_stage[static_cast<std::size_t>(stage)];
        plan.rank_of_stage.push_back(stage % 2 == 0 ? first : (first + place) % ranks);
      }
    }
    return;
  }
  if (plan.schedule.kind->layout == StageLayout::Ring) {
    const int ranks = plan.question.layout.ranks();
    plan.copies = ranks;
    plan.rank_of_stage.clear();
    for (int rank = 0; rank < ranks; ++rank) {
      plan.rank_of_stage.insert(plan.rank_of_stage.end(), plan.question.layout.stages, rank);
    }
    return;
  }
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
std::string shares_folding_problem(const Plan& plan) {
  const bool folds = !plan.unfolded[static_cast<std::size_t>(Dimension::Data)];
  return folds && !plan.replica_micro_batches.empty()
             ? "replicas have numbers of micro-batches of their own"
             : "";
}

/// Says why ranks of `plan` differ from those for which they stand; empty if they do not.
std::string variation_folding_problem(const Plan& plan) {
  const Question& question = plan.question;
  const Mesh& mesh = simulated_mesh(plan);
  const Unfolded& unfolded = plan.unfolded;
  if (!question.variation) return "";
  const VariationConditions& variation = *question.variation;
  if (variation.jitters() && folded_ranks(mesh, unfolded).size() > 1) {
    return "jitter makes equal devices differ";
  }
  if (variation.documents && mesh.degree(Dimension::Data) > 1 &&
      !unfolded[static_cast<std::size_t>(Dimension::Data)]) {
    return "replicas read documents of their own";
  }
  std::string problem = slow_folding_problem(variation.always_slow(), mesh, unfolded);
  for (const Straggler& straggler : variation.stragglers) {
    if (!problem.empty() || straggler.always()) continue;
    problem = slow_folding_problem({straggler.devices}, mesh, unfolded);
  }
  return problem;
}

/// Returns whether of tensor and data devices one kind is folded and the other is not.
bool folds_one_kind(const Mesh& mesh, const Unfolded& unfolded) {
  constexpr auto kTensor = static_cast<std::size_t>(Dimension::Tensor);
  constexpr auto kData = static_cast<std::size_t>(Dimension::Data);
  return mesh.degrees[kTensor] > 1 && mesh.degrees[kData] > 1 &&
         unfolded[kTensor] != unfolded[kData];
}

/// Says why tensor devices cannot be folded without data devices, or the other way round, where
/// layers and experts divide both in ways of their own; or "".
std::string layers_folding_problem(const Plan& plan) {
  const Layout& layout = plan.question.layout;
  const Mesh& mesh = simulated_mesh(plan);
  if (layout.layer_layouts.empty() || !folds_one_kind(mesh, plan.unfolded)) return "";
  const int neighbours = mesh.degree(Dimension::Tensor);
  if (std::ranges::binary_search(cuts_of_layers(layout.layers()), neighbours)) return "";
  const bool contexts = mesh.degree(Dimension::Context) > 1;
  return std::string(contexts ? "experts and contexts may" : "layers and experts") +
         " lie across blocks of " + std::to_string(neighbours) + " tensor devices";
}

/// Says why `plan`, as it is folded, differs from one of which nothing is; empty if it does not.
/// Notes the tasks of a step that was lowered to know.
std::string folding_problem(const Plan& plan, std::optional<std::int64_t>& tasks) {
  const Question& question = plan.question;
  std::string problem = shares_folding_problem(plan);
  if (problem.empty()) problem = variation_folding_problem(plan);
  if (problem.empty()) problem = layers_folding_problem(plan);
  if (!problem.empty()) return problem;
  const Program program = lower_plan(plan, 1);
  tasks = count_tasks(program);
  problem = program.folding_problem;
  if (problem.empty() && question.layout.data_parallel.outer.any()) {
    problem = lower_outer_step(plan, lower_inputs(plan)).folding_problem;
  }
  if (problem.empty() && question.simulation.engine == EngineKind::SimGrid &&
      crosses_again(program)) {
    problem = "of their equal messages several cross one link, which SimGrid cannot be told";
  }
  return problem;
}

}  // namespace

Plan make_plan(const Question& question) { return complete(lay_out(question)); }

Plan complete(LaidOut laid_out) {
  if (laid_out.draft.question.trace()) return std::move(laid_out.draft);
  if (leaves_cut(laid_out.draft.question)) {
    Plan plan = search_cut(laid_out);
    fold(plan);
    return plan;
  }
  const bool sought = laid_out.draft.schedule.is_sought();
  SchedulePolicy schedule = sought ? find_order(laid_out) : laid_out.draft.schedule;
  Plan plan = std::move(laid_out.draft);
  plan.schedule = std::move(schedule);
  fold(plan);
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
  if (has_copies(laid) || plan.schedule.copies > 1) add_copies(plan);
  const bool balanced = question.layout.partition.kind == PartitionRule::Kind::Balanced;
  if (balanced && is_mixed(question.cluster) && question.layout.rank_layouts.empty()) {
    plan.partition = fitting_partition(plan);
  }
  return training.replica_batches.kind == ReplicaBatches::Kind::Equal ? plan : share_batches(plan);
}

std::vector<Folding> foldings_of(const Layout& layout) {
  std::multimap<std::size_t, Folding> by_ranks;  // by how many are simulated, else in order
  const auto add = [&](const Folding& folding) {
    const Mesh& mesh = folding.as ? *folding.as : layout.mesh;
    by_ranks.emplace(simulated_ranks(mesh, folding.unfolded).size(), folding);
  };
  const bool alike = layout.layer_layouts.empty();
  const std::vector<int> cuts = alike ? std::vector<int>() : cuts_of_layers(layout.layers());
  const int own = layout.mesh.degree(Dimension::Tensor);
  const bool cuts_own = alike || std::ranges::binary_search(cuts, own);
  for (const Unfolded& unfolded : foldings(layout.mesh)) {
    if (cuts_own || !folds_one_kind(layout.mesh, unfolded)) add({unfolded, {}});
  }
  for (const int cut : cuts) {
    const Mesh mesh = cut_after(layout.mesh, cut);
    for (const Unfolded& unfolded : foldings(mesh)) {
      if (cut != own && folds_one_kind(mesh, unfolded)) add({unfolded, mesh});
    }
  }
  std::vector<Folding> all;
  for (const auto& [ranks, folding] : by_ranks) all.push_back(folding);
  return all;
}

void fold_as(const Plan& other, Plan& plan) {
  plan.unfolded = other.unfolded;
  plan.uneven = other.uneven;
  plan.folded_as = other.folded_as;
}

namespace {

/// The most devices that "auto" simulates before it folds nearly, and the most pairs of them and of
/// devices that each sends tokens for experts to: an all-to-all is a flow for each.
constexpr double kMostExact = 512, kMostPairs = 2048;

/// Returns how many devices of `layout` "auto" simulates before it folds nearly. Example: of 64
/// devices that share experts 32 have as many pairs as may be.
double most_exact(const Layout& layout) {
  return std::min(kMostExact, kMostPairs / layout.mesh.expert);
}

/// A way to fold, and why it is not exact, if that is known: "" if it is.
struct Way {
  Folding folding;
  std::optional<std::string> problem = {};
};

int ranks_of(const Layout& layout, const Folding& folding) {
  const Mesh& mesh = folding.as ? *folding.as : layout.mesh;
  return static_cast<int>(simulated_ranks(mesh, folding.unfolded).size());
}

enum class Exactness { Exact, Nearly };

/// Folds `plan` in the first of `ways` that is exact, or nearly so, and simulates at most
/// `most_ranks`; notes the problems of others.
FoldedWithin fold_first(Plan& plan, std::vector<Way>& ways, double most_ranks,
                        Exactness exactness) {
  bool by_bytes = false;
  for (Way& way : ways) {
    plan.unfolded = way.folding.unfolded;
    plan.folded_as = way.folding.as;
    plan.uneven.clear();
    const int ranks = ranks_of(plan.question.layout, way.folding);
    if (ranks > most_ranks) return {.by_bytes = by_bytes};
    FoldedWithin done = {.folded = true, .by_bytes = by_bytes};
    if (ranks == simulated_mesh(plan).devices()) return done;
    if (!way.problem) way.problem = folding_problem(plan, done.tasks);
    if (way.problem->empty()) return done;
    if (exactness == Exactness::Exact) continue;
    by_bytes = done.by_bytes = true;
    plan.uneven = *way.problem;
    if (folding_problem(plan, done.tasks).empty()) return done;
  }
  return {.by_bytes = by_bytes};
}

/// Returns whether "auto" may fold nearly: no way is left that simulates more than `tried` devices
/// and is few enough for an exact one.
bool may_fold_nearly(const Layout& layout, const std::vector<Way>& ways, double tried) {
  return std::ranges::none_of(ways, [&](const Way& way) {
    const int ranks = ranks_of(layout, way.folding);
    return ranks > tried && ranks <= most_exact(layout);
  });
}

}  // namespace

FoldedWithin fold_within(Plan& plan, double most_ranks) {
  const Question& question = plan.question;
  const SimulationSettings& settings = question.simulation;
  std::vector<Way> ways;
  for (const Folding& folding : foldings_of(question.layout)) ways.push_back({folding});
  if (ways.size() == 1) ways.front().problem = "";  // nothing stands for another
  if (settings.unfolded && ways.size() > 1) ways = {{{*settings.unfolded, {}}}};
  Exactness exactness = settings.folds_nearly ? Exactness::Nearly : Exactness::Exact;
  if (!settings.unfolded && !settings.folds_nearly) {
    const double tried = std::min(most_ranks, most_exact(question.layout));
    const FoldedWithin done = fold_first(plan, ways, tried, Exactness::Exact);
    if (done.folded) return done;
    if (!may_fold_nearly(question.layout, ways, tried)) return {};
    exactness = Exactness::Nearly;
  }
  const FoldedWithin done = fold_first(plan, ways, most_ranks, exactness);
  const bool too_many = ranks_of(question.layout, ways.back().folding) > most_ranks;
  if (done.folded || too_many) return done;
  throw Error(question.file + ": " + question.name +
              ": /simulate/fold: ranks that stand for others would not do what those do: " +
              ways.back().problem.value_or("") +
              "; expected \"auto\", which simulates them all where it must");
}

void fold(Plan& plan) { fold_within(plan, kInfinity); }

std::vector<int> device_numbers(const Plan& plan) {
  std::vector<int> numbers;
  const Mesh& mesh = simulated_mesh(plan);
  for (const Coordinates& at : simulated_ranks(mesh, plan.unfolded)) {
    numbers.push_back(device_of(mesh, at));
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
