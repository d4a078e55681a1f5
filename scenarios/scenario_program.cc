// Scenario to Program: costs of stages, the order of work, lowering.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "scenarios/run_scenario.h"
#include "sim/plan/stage_cost.h"
#include "sim/run/bulk_synchronous.h"

namespace interlock {

namespace {

/// Neighbouring stages on different ranks, between which messages go.
std::vector<std::pair<StageCost*, StageCost*>> stages_apart(const Scenario& scenario,
                                                            std::vector<StageCost>& stages) {
  std::vector<std::pair<StageCost*, StageCost*>> pairs;
  for (std::size_t stage = 0; stage + 1 < stages.size(); ++stage) {
    if (scenario.rank_of_stage[stage] == scenario.rank_of_stage[stage + 1]) continue;
    pairs.emplace_back(&stages[stage], &stages[stage + 1]);
  }
  return pairs;
}

/// Adds the copies of messages between ranks that the framework has the kernels' queue make: each
/// op copies what it reads of another rank, and what another rank reads of it.
void add_message_copies(const Scenario& scenario, std::vector<StageCost>& stages) {
  const BytesPerSecond rate = scenario.framework.message_copies;
  if (rate == BytesPerSecond()) return;
  for (const auto& [before, after] : stages_apart(scenario, stages)) {
    const OpCost copy{.time = before->output / rate};
    for (StageCost* end : {before, after}) {
      end->forward += copy;
      if (scenario.strategy.kind == StrategyKind::Global) end->backward_input += copy;
    }
  }
}

/// Adds what puts messages together again that tensor devices sent in parts: an op gathers what it
/// reads of another rank.
void add_message_gathers(const Scenario& scenario, const PriceInputs& prices,
                         std::vector<StageCost>& stages) {
  if (scenario.schedule.message_parts == 1) return;
  for (const auto& [before, after] : stages_apart(scenario, stages)) {
    const Exchange gather{.kind = CollectiveKind::AllGather, .bytes = before->output};
    const OpCost cost{.waiting = prices.exchange_time(gather), .exchanges = {gather}};
    after->forward += cost;
    if (scenario.strategy.kind == StrategyKind::Global) before->backward_input += cost;
  }
}

/// Returns how many backwards of a micro-batch or of a slice one update of a stage adds up.
int backwards_of_update(const Scenario& scenario, const StageRole& role) {
  std::size_t pieces = static_cast<std::size_t>(scenario.schedule.update_every) *
                       std::max<std::size_t>(1, scenario.slices.size());
  if (!scenario.parts.empty()) pieces = 0;
  for (const BatchPart& part : scenario.parts) pieces += part.slices.size();
  const auto makes_gradients = [](const Traversal& traversal) { return traversal.weights; };
  const auto traversals =
      std::count_if(role.traversals.begin(), role.traversals.end(), makes_gradients);
  return static_cast<int>(pieces) * static_cast<int>(traversals);
}

/// The costs of stages that are divided in ways of their own, and what they hand on.
void lay_stages_out(const Scenario& scenario, LowerInputs& inputs) {
  StageLayouts& layouts = inputs.layouts;
  layouts.resharding = scenario.resharding;
  std::vector<std::vector<StageCost>> modules;  // by rank
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    layouts.meshes.push_back(mesh_of(scenario, rank));
    modules.push_back(
        price_modules(*scenario.rank_layouts[rank].graph, price_inputs(scenario, rank)));
  }
  const Partition& partition = scenario.partition;
  for (int stage = 0; stage < partition.stages(); ++stage) {
    const int rank = scenario.rank_of_stage[stage], first = partition.boundaries[stage];
    StageCost cost = price_stages(modules[rank], partition, scenario.strategy, inputs.roles)[stage];
    apply_zero(scenario.data_parallel, layouts.meshes[rank],
               backwards_of_update(scenario, inputs.roles[stage]), cost);
    apply_offload(scenario.offload, scenario.data_parallel, layouts.meshes[rank], cost);
    layouts.inputs.push_back(first == 0 ? Bytes(0) : modules[rank][first - 1].output);
    layouts.outputs.push_back(cost.output);
    layouts.whole_outputs.push_back(
        scenario.graph.modules[partition.boundaries[stage + 1] - 1].output);
    inputs.stages.push_back(std::move(cost));
  }
  add_message_copies(scenario, inputs.stages);
}

}  // namespace

LowerInputs lower_inputs(const Scenario& scenario) {
  const int stages = static_cast<int>(scenario.rank_of_stage.size()) / scenario.copies;
  const bool list = scenario.schedule.kind == ScheduleKind::List;
  LowerInputs inputs = {.policy = scenario.schedule,
                        .strategy = scenario.strategy,
                        .roles = make_roles(scenario.strategy, stages, list),
                        .cluster = scenario.cluster,
                        .mesh = scenario.mesh,
                        .unfolded = scenario.unfolded.value_or(kFolded),
                        .data_parallel = scenario.data_parallel,
                        .memory_contention = scenario.memory_contention};
  if (scenario.variation) inputs.slow = always_slow(*scenario.variation);
  const PriceInputs prices = price_inputs(scenario);
  const auto append_costs = [&](const ModelGraph& graph) {
    std::vector<StageCost> once = price_stages(price_modules(graph, prices), scenario.partition,
                                               scenario.strategy, inputs.roles);
    apply_stash_mode(scenario.schedule.stash, once);
    for (std::size_t s = 0; s < once.size(); ++s) {
      StageCost& stage = once[s];
      apply_zero(scenario.data_parallel, scenario.mesh,
                 backwards_of_update(scenario, inputs.roles[s]), stage);
      apply_offload(scenario.offload, scenario.data_parallel, scenario.mesh, stage);
    }
    add_message_copies(scenario, once);
    add_message_gathers(scenario, prices, once);
    for (int copy = 0; copy < scenario.copies; ++copy) {
      inputs.stages.insert(inputs.stages.end(), once.begin(), once.end());
    }
  };
  for (const BatchPart& part : scenario.parts) {
    for (const TokenSlice& slice : part.slices) append_costs(part.graph->slice(slice));
  }
  const bool whole = scenario.parts.empty() && scenario.slices.empty();
  if (!scenario.rank_layouts.empty()) {
    lay_stages_out(scenario, inputs);
  } else if (whole) {
    append_costs(scenario.graph);
  }
  for (const TokenSlice& slice : scenario.slices) append_costs(scenario.graph.slice(slice));
  inputs.roles = roles_of_copies(inputs.roles, scenario.copies);
  return inputs;
}

Schedule schedule_of(const Scenario& scenario, LowerInputs& inputs, int steps) {
  // Readouts travel once in a period of whole steps, so the written order must span one.
  const int period = scenario.strategy.readout_every * scenario.micro_batches;
  std::vector<int> parts;
  int slices = std::max(1, static_cast<int>(scenario.slices.size()));
  int turns = scenario.micro_batches;  // through the slices, in a step
  for (const BatchPart& part : scenario.parts)
    parts.push_back(static_cast<int>(part.slices.size()));
  if (!parts.empty()) {
    slices = std::accumulate(parts.begin(), parts.end(), 0);
    turns = inputs.policy.update_every = 1;
  }
  inputs.policy.update_every *= slices;
  return make_schedule({.stages = static_cast<int>(scenario.rank_of_stage.size()),
                        .copies = scenario.copies,
                        .slices = slices,
                        .micro_batches = turns * slices,
                        .parts = std::move(parts),
                        .steps = steps,
                        .rank_of_stage = scenario.rank_of_stage,
                        .roles = inputs.roles,
                        .policy = scenario.schedule,
                        .unroll = period > 0 ? period : 1});
}

Program lower_steps(const Scenario& scenario, LowerInputs inputs, int steps) {
  inputs.schedule = schedule_of(scenario, inputs, steps);
  Program program = lower(inputs);
  if (!scenario.schedule.bulk_synchronous) return program;
  const std::string problem = bulk_synchronous_problem(program);
  if (problem.empty()) return bulk_synchronous(program);
  throw Error(scenario.file + ": " + scenario.name + ": /training/schedule/execution: " + problem +
              ", or \"futures\"");
}

}  // namespace interlock
