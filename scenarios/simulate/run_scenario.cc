// Runs one scenario: schedule, lower, simulate, measure.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/run_scenario.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "hardware/collectives/collective.h"
#include "scenarios/ranges/published_errors.h"
#include "scenarios/simulate/calibrated_range.h"
#include "scenarios/simulate/host_memory.h"
#include "scenarios/simulate/resolve_auto.h"
#include "sim/lower/bulk_synchronous.h"
#include "sim/lower/unfold.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

namespace {

ProgramOfSteps programs_of(Scenario scenario, LowerInputs inputs) {
  inputs.policy = scenario.schedule;
  return [scenario = std::move(scenario), inputs = std::move(inputs)](
             int steps, double most_ticks_per_second) {
    LowerInputs like = inputs;
    like.most_ticks_per_second = most_ticks_per_second;
    return lower_steps(scenario, std::move(like), steps);
  };
}

}  // namespace

MeasureInputs measure_inputs(const Scenario& scenario) {
  const ModelGraph& graph = scenario.graph;
  const double replicas = scenario.mesh.degree(Dimension::Data);
  const double micro_batches = scenario.micro_batches;
  MeasureInputs inputs = {.steps = scenario.steps,
                          .engine = scenario.engine,
                          .devices = scenario.mesh.devices(),
                          .micro_batches_per_step = micro_batches * replicas,
                          .attention_flops = graph.attention_flops,
                          .memory_capacity = scenario.cluster.device.memory};
  if (graph.samples_per_micro_batch) {
    inputs.samples_per_step = *graph.samples_per_micro_batch * micro_batches;
    if (!scenario.parts.empty()) inputs.samples_per_step = 0;  // it is theirs
    for (const BatchPart& part : scenario.parts) *inputs.samples_per_step += part.samples;
    *inputs.samples_per_step *= replicas;
    if (graph.tokens_per_sample) {
      inputs.tokens_per_step = *inputs.samples_per_step * *graph.tokens_per_sample;
    }
  }
  const auto& peak = scenario.cluster.device.peak[static_cast<std::size_t>(scenario.precision)];
  if (peak) inputs.peak = *peak;
  if (scenario.variation && !scenario.variation->speeds.empty()) {
    const std::vector<double>& speeds = scenario.variation->speeds;
    const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    inputs.peak = inputs.peak * (sum / static_cast<double>(speeds.size()));
  }
  return inputs;
}

namespace {

bool varies(const Scenario& scenario) { return scenario.variation && scenario.variation->varies(); }

/// What is kept of a run besides its figures.
enum class Keep { Nothing, Explanation, Log };

/// What is measured, long steps by two shorter ones where that is exact.
MeasureInputs measure_inputs_of(const Scenario& scenario, const LowerInputs& inputs) {
  MeasureInputs measured = measure_inputs(scenario);
  const ScheduleEntry& entry = *scenario.schedule.kind;
  if (scenario.skip_periods && !scenario.schedule.bulk_synchronous && !varies(scenario) &&
      entry.period != nullptr) {
    const int stages = static_cast<int>(scenario.rank_of_stage.size()) / scenario.copies;
    const int period = entry.period({scenario.ranks, stages, scenario.micro_batches});
    measured.long_step = {scenario.micro_batches, period, [&](int micro_batches) {
                            Scenario shorter = scenario;
                            shorter.micro_batches = shorter.schedule.update_every = micro_batches;
                            return programs_of(std::move(shorter), inputs);
                          }};
  }
  return measured;
}

Measurement measure_scenario(const Scenario& scenario, const LowerInputs& inputs, Keep keep) {
  MeasureInputs measured = measure_inputs_of(scenario, inputs);
  // The steady steps of those that vary are not what is shown.
  measured.explain = keep != Keep::Nothing && !varies(scenario);
  return measure(programs_of(scenario, inputs), measured, keep == Keep::Log);
}

/// What one more micro-batch adds to a step, by a step of twice as many. An order that is written
/// for its micro-batches is taken to grow in proportion.
Seconds micro_batch_time(const Scenario& scenario, const LowerInputs& inputs, Seconds step_time) {
  const double micro_batches = scenario.micro_batches;
  if (scenario.schedule.order || !scenario.parts.empty()) return step_time / micro_batches;
  Scenario longer = scenario;
  longer.micro_batches *= 2;
  longer.schedule.update_every *= 2;
  return (measure_scenario(longer, inputs, Keep::Nothing).metrics.step_time - step_time) /
         micro_batches;
}

RunResult run_steps(const Scenario& scenario, const LowerInputs& inputs, const Metrics& metrics) {
  const MeasureInputs measured = measure_inputs(scenario);
  StepFacts facts{metrics, measured.samples_per_step, measured.tokens_per_step, Seconds(0)};
  const bool divides = scenario.run->on_failure == OnFailure::DropReplica;
  if (divides && replica_layout(scenario).replicas > 1) {
    facts.micro_batch_time = micro_batch_time(scenario, inputs, metrics.step_time);
  }
  return simulate_run(scenario, facts);
}

/// Steps that differ, in place of the steady ones of `result`.
void vary_steps(const Scenario& scenario, const LowerInputs& inputs, bool keep_log,
                ScenarioResult& result) {
  const VariedSteps varied = {variation_of(scenario),
                              scenario.variation->random() ? scenario.variation->seeds : 1};
  VariedMeasurement measured =
      measure_varied(programs_of(scenario, inputs), varied, measure_inputs(scenario),
                     result.measurement, keep_log);
  result.measurement = std::move(measured.measurement);
  result.varied = measured.outcome;
}

/// What costs nothing: ranges of calibrated devices are drawn where somebody asks.
Confidence confidence_in(const Scenario& scenario, Seconds step_time) {
  if (!scenario.cluster.device.calibrated) return published_range(scenario, step_time);
  return {.range = {}, .extrapolates = calibration_limits(scenario)};
}

/// A swarm on one copy of the model's stages.
SwarmResult run_swarm(const Scenario& scenario, const LowerInputs& inputs) {
  const int stages = scenario.partition.stages();
  return simulate_swarm_of(scenario, {inputs.stages.begin(), inputs.stages.begin() + stages});
}

}  // namespace

Scenario resolve_folding(const Scenario& asked) {
  Scenario scenario = asked;
  const std::vector<Unfolded> all = foldings(scenario.mesh);
  if (all.size() == 1) {
    scenario.unfolded = all.front();
    return scenario;
  }
  std::string problem;
  for (const Unfolded& unfolded : scenario.unfolded ? std::vector{*scenario.unfolded} : all) {
    scenario.unfolded = unfolded;
    problem = variation_folding_problem(scenario, unfolded);
    if (!problem.empty()) continue;
    problem = lower_steps(scenario, lower_inputs(scenario), 1).folding_problem;
    if (problem.empty()) return scenario;
  }
  throw Error(scenario.file + ": " + scenario.name +
              ": /simulate/fold: ranks that stand for others would not do what those do: " +
              problem + "; expected \"auto\", which simulates them all where it must");
}

Program lower_scenario(const Scenario& asked, int steps) {
  CHECK(!asked.workload, "a workload has its program");
  const Scenario scenario = resolve_folding(resolve_auto(asked));
  return lower_steps(scenario, lower_inputs(scenario), steps);
}

LoneMeasurement measure_alone(const Scenario& asked) {
  constexpr int kFewSteps = 2;  // in the steady state they are as long as more
  Scenario scenario = asked;
  if (scenario.mesh.devices() > 1) scenario.unfolded = kFolded;
  scenario.steps = std::min(scenario.steps, kFewSteps);
  LowerInputs inputs = lower_inputs(scenario);
  inputs.contention = false;
  // Kernels lose nothing to what is sent beside them: how much that is depends on when it is sent.
  inputs.cluster.device.collective_sms = inputs.cluster.device.message_sms = 0;
  inputs.memory_contention = false;
  MeasureInputs measured = measure_inputs_of(scenario, inputs);
  measured.engine = EngineKind::Native;
  // Long steps are measured by shorter ones, which are made of `scenario` and `inputs`, too.
  const Measurement measurement = measure(programs_of(scenario, inputs), measured, false);
  const Program& program = measurement.program;
  return {measurement.metrics, program.ignores_contention || !program.folding_problem.empty(),
          chooses_order(program)};
}

namespace {

ScenarioResult run(const Scenario& asked, Keep keep) {
  const Scenario scenario = resolve_folding(resolve_auto(asked));
  const LowerInputs inputs = lower_inputs(scenario);
  try {
    const bool varied = varies(scenario);
    ScenarioResult result{scenario,
                          measure_scenario(scenario, inputs, varied ? Keep::Explanation : keep)};
    if (varied) vary_steps(scenario, inputs, keep == Keep::Log, result);
    add_host_memory(scenario, result.measurement.metrics);
    if (scenario.run) result.run = run_steps(scenario, inputs, result.measurement.metrics);
    if (scenario.swarm) result.swarm = run_swarm(scenario, inputs);
    result.confidence = confidence_in(scenario, result.measurement.metrics.step_time);
    return result;
  } catch (const Error& error) {  // a deadlock, or links that the chosen engine does not know
    throw Error(scenario.file + ": " + scenario.name + ": " + error.what());
  }
}

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario, bool keep_log) {
  if (scenario.workload) return run_workload(scenario, keep_log);
  return run(scenario, keep_log ? Keep::Log : Keep::Explanation);
}

ScenarioResult run_unexplained(const Scenario& scenario) {
  if (scenario.workload) return run_workload(scenario, false);
  return run(scenario, Keep::Nothing);
}

ScenarioResult run_workload(const Scenario& scenario, bool keep_log) {
  const TraceWorkload& workload = *scenario.workload;
  MeasureInputs inputs = measure_inputs(scenario);
  inputs.peak = FlopsPerSecond(0);
  if (workload.precision) {
    const auto& peak = scenario.cluster.device.peak[static_cast<std::size_t>(*workload.precision)];
    if (peak) inputs.peak = *peak;
  }
  inputs.explain = true;
  try {
    return {scenario, measure_after(workload.program, workload.steps.fill, inputs, keep_log)};
  } catch (const Error& error) {  // a deadlock of several ranks
    throw Error(scenario.file + ": " + scenario.name + ": " + error.what());
  }
}

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
  const bool list = scenario.schedule.kind->sends_lists;
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

/// How `rank` divides its stages.
Mesh mesh_of(const Scenario& scenario, int rank) {
  Mesh mesh = scenario.mesh;
  if (scenario.rank_layouts.empty()) return mesh;
  const RankLayout& layout = scenario.rank_layouts[rank];
  mesh.degree(Dimension::Tensor) = layout.tensor;
  mesh.degree(Dimension::Data) = layout.data;
  if (scenario.data_parallel.zero_stage > 0) mesh.shard = layout.data;
  return mesh;
}

namespace {

/// `device` with the kernels of `framework`.
Device device_under(const Framework& framework, Device device) {
  const auto efficiency = [&](OpClass op_class) -> Efficiency& {
    return device.efficiency[static_cast<std::size_t>(op_class)];
  };
  Efficiency& products = efficiency(OpClass::Gemm);
  Efficiency& attention = efficiency(OpClass::Attention);
  products.compute *= framework.product_speed;
  attention.compute *= framework.attention_speed;
  for (std::optional<double>* own : {&products.compute_fp8, &products.compute_fp32}) {
    if (*own) **own *= framework.product_speed;
  }
  if (attention.compute_fp32) *attention.compute_fp32 *= framework.attention_speed;
  return device;
}

/// `framework` on hosts that issue kernels at the pace of `cluster`.
Framework framework_on(const Cluster& cluster, Framework framework) {
  framework.kernel_issue = framework.kernel_issue * cluster.host_pace;
  framework.exchange_issue = framework.exchange_issue * cluster.host_pace;
  if (auto& issue = framework.backward_issue) issue = *issue * cluster.host_pace;
  return framework;
}

}  // namespace

PriceInputs price_inputs(const Scenario& scenario, int rank) {
  PriceInputs prices = {device_under(scenario.framework, scenario.cluster.device),
                        scenario.precision, scenario.optimizer,
                        framework_on(scenario.cluster, scenario.framework)};
  // Groups of the first rank stand for all; many modules exchange the same.
  const auto known =
      std::make_shared<std::map<std::tuple<CollectiveKind, MeshAxis, double, double>, Seconds>>();
  prices.exchange_time = [known, cluster = scenario.cluster, mesh = mesh_of(scenario, rank),
                          rank](const Exchange& exchange) {
    const auto [entry, fresh] = known->try_emplace(
        {exchange.kind, exchange.axis, exchange.bytes.value(), exchange.back.value()}, Seconds(0));
    if (fresh) {
      const std::vector<int> group = group_of(mesh, exchange.axis, {0, 0, 0, rank});
      entry->second = time_alone(cluster, plan_exchange(cluster, group, exchange));
    }
    return entry->second;
  };
  return prices;
}

}  // namespace interlock
