// Changes of the layout: other degrees and placements of as many devices.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "scenarios/explain/change.h"

namespace interlock {
namespace {

using ChangeKind = Change::Kind;

std::string set(const std::string& path, int value) { return path + "=" + std::to_string(value); }

/// Returns whether any layers have several of these devices. Layers may have degrees of their own.
bool has_several(const Layout& layout, int (*devices)(const Mesh&)) {
  return std::ranges::any_of(layout.layers(), [&](const Mesh& mesh) { return devices(mesh) > 1; });
}

bool has_replicas(const Layout& layout) {
  return has_several(layout, [](const Mesh& mesh) { return mesh.replicas(); });
}

/// Twice of one dimension for half of another.
void trade(const Baseline& baseline, Dimension more, Dimension less, std::vector<Change>& changes) {
  const Layout& layout = baseline.result.plan.question.layout;
  const Mesh& mesh = layout.mesh;
  if (mesh.degree(less) % 2 != 0) return;
  const bool apart =
      !layout.layer_layouts.empty() && more != Dimension::Pipeline && less != Dimension::Pipeline;
  Change change{ChangeKind::Plan,
                "twice the " + dimension_names()[static_cast<std::size_t>(more)] +
                    " degree for half the " + dimension_names()[static_cast<std::size_t>(less)] +
                    " degree" + (apart ? " of layers without degrees of their own" : ""),
                {}};
  Mesh traded = mesh;
  traded.degree(more) *= 2;
  traded.degree(less) /= 2;
  for (const Dimension dimension :
       {Dimension::Pipeline, Dimension::Data, Dimension::Context, Dimension::Tensor}) {
    const int degree = traded.degree(dimension);
    const std::string path = "parallel." + dimension_names()[static_cast<std::size_t>(dimension)];
    const bool told = value_at(baseline.document, path) != nullptr;
    if (told || degree != mesh.degree(dimension)) change.settings.push_back(set(path, degree));
  }
  const int context = traded.degree(Dimension::Context), turning = layout.sharding.context_columns;
  if (turning > 1 && (context <= turning || context % turning != 0)) {
    const bool all = context == turning;
    change.settings.push_back(std::string("parallel.context_layout=") +
                              (all ? "all_to_all" : "ring"));
    change.settings.push_back("parallel.context_all_to_all=null");
  }
  if (more == Dimension::Pipeline || less == Dimension::Pipeline) {
    lay_stages_anew(baseline, change);
    // Other stages have other losses.
    const StrategyKind kind = baseline.result.plan.question.training().strategy.kind;
    const bool one_loss = kind == StrategyKind::Global || kind == StrategyKind::Inference;
    if (!one_loss) change.kind = ChangeKind::Training;
  }
  changes.push_back(change);
}

void states(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& scenario = baseline.result.plan.question;
  if (!has_replicas(scenario.layout)) return;
  const int most = scenario.layout.layer_layouts.empty() ? 3 : 2;
  const int stage = scenario.layout.data_parallel.zero_stage;
  constexpr const char* kDivided[] = {"nothing", "the optimiser's states", "gradients too",
                                      "weights too"};
  for (const int other : {stage + 1, stage - 1}) {
    if (other < 0 || other > most) continue;
    changes.push_back({ChangeKind::Plan,
                       "ZeRO " + std::to_string(other) + ": replicas divide " + kDivided[other],
                       {set("parallel.zero_stage", other)}});
  }
}

void overlaps(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& scenario = baseline.result.plan.question;
  const DataParallel& policy = scenario.layout.data_parallel;
  const auto switch_on = [&](const std::string& words, const std::string& path) {
    changes.push_back({ChangeKind::Plan, words, {path + "=true"}});
  };
  if (scenario.training().framework.blocking_launches) {
    changes.push_back({ChangeKind::Plan,
                       "kernels issued before others have ended",
                       {"training.blocking_launches=false"}});
  }
  const Framework& framework = scenario.training().framework;
  const bool fuses = framework.fused_routing.router && framework.fused_routing.permutation;
  if (framework.routes_in_steps && scenario.training().graph.experts > 0 && !fuses) {
    changes.push_back({ChangeKind::Plan,
                       "routers and permutations of tokens by single kernels",
                       {R"(training.fused_routing=["router", "permutation"])"}});
  }
  if (policy.outer.any() && policy.outer.overlap < policy.outer.every) {
    changes.push_back({ChangeKind::Plan,
                       "one step more beside the exchange of outer steps",
                       {set("parallel.outer.overlap", policy.outer.overlap + 1)}});
  }
  if (has_replicas(scenario.layout)) {
    if (!policy.overlap_gradients) {
      switch_on("gradients that leave beside the last backward", "parallel.overlap_gradients");
    }
    if (!policy.overlap_weights && policy.zero_stage > 0 && policy.zero_stage < 3) {
      switch_on("weights gathered beside the next forward", "parallel.overlap_weights");
    }
    if (policy.zero_stage == 3) {
      changes.push_back({ChangeKind::Plan,
                         "weights gathered one module earlier",
                         {set("parallel.prefetch", policy.prefetch + 1)}});
    }
  }
  const auto tensor = [](const Mesh& mesh) { return mesh.degree(Dimension::Tensor); };
  if (!has_several(scenario.layout, tensor)) return;
  if (value_at(baseline.document, "parallel.sequence_parallel") == nullptr) {
    switch_on("sequence parallelism between the layers", "parallel.sequence_parallel");
  }
  if (!scenario.training().framework.overlaps_sums) {
    switch_on("sums over tensor devices beside weight gradients",
              "training.framework.overlaps_sums");
  }
}

/// Tokens that hide behind another micro-batch, or take a shorter way.
void token_ways(const Baseline& baseline, std::vector<Change>& changes) {
  const Plan& plan = baseline.result.plan;
  const Question& scenario = plan.question;
  const Sharding& sharding = scenario.layout.sharding;
  if (sharding.expert == 1) return;
  const ScheduleEntry& entry = *plan.schedule.kind;
  const ScheduleShape shape = {scenario.layout.ranks(), scenario.layout.stages, plan.micro_batches,
                               plan.schedule.update_every};
  const bool pairs = entry.pair_problem != nullptr ? entry.pair_problem(shape).empty()
                                                   : entry.overlaps && plan.schedule.overlap == 0;
  if (pairs && sharding.expert_overlap == ExpertOverlap::None) {
    changes.push_back({ChangeKind::Plan,
                       "tokens on their way to experts beside another micro-batch",
                       {"parallel.expert_overlap=micro_batches"}});
  }
  if (sharding.expert_dispatch == ExpertDispatch::AllToAll) {
    changes.push_back({ChangeKind::Plan,
                       "tokens sent once to each node, as DeepEP does",
                       {"parallel.expert_dispatch=deepep"}});
  }
}

}  // namespace

std::vector<Change> layout_changes(const Baseline& baseline) {
  std::vector<Change> changes;
  const Question& scenario = baseline.result.plan.question;
  if (scenario.trace() || !scenario.layout.rank_layouts.empty()) return changes;
  constexpr Dimension kTraded[] = {Dimension::Pipeline, Dimension::Data, Dimension::Context,
                                   Dimension::Tensor};
  for (const Dimension more : kTraded) {
    for (const Dimension less : kTraded) {
      // Contexts are for those that have them.
      if (more == Dimension::Context && scenario.layout.mesh.degree(more) == 1) continue;
      if (more != less) trade(baseline, more, less, changes);
    }
  }
  states(baseline, changes);
  overlaps(baseline, changes);
  token_ways(baseline, changes);
  return changes;
}

}  // namespace interlock
