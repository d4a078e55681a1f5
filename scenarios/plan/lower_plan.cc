// Prices the stages of a plan, orders its steps, and lowers them.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/lower_plan.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "hardware/collectives/collective.h"
#include "scenarios/plan/costs/message_costs.h"
#include "scenarios/plan/known_prices.h"
#include "sim/lower/bulk_synchronous.h"
#include "sim/plan/schedules/message_bytes.h"
#include "sim/plan/vocabulary.h"

namespace interlock {
namespace {

bool divides_vocabulary(const Question& question) {
  return question.training().schedule.vocabulary != VocabularySplit::Whole;
}

/// Returns `device` with the kernels of `framework` in a training of `precision`.
Device device_under(const Framework& framework, Precision precision, Device device) {
  const auto efficiency = [&](OpClass op_class) -> Efficiency& {
    return device.efficiency[static_cast<std::size_t>(op_class)];
  };
  Efficiency& products = efficiency(OpClass::Gemm);
  Efficiency& attention = efficiency(OpClass::Attention);
  const bool narrow = product_format(precision).has_value();
  if (narrow && framework.wide_product_speed) {
    for (std::optional<double>* own : {&products.compute_fp8, &products.compute_fp4}) {
      *own = own->value_or(products.compute);
    }
    products.compute *= *framework.wide_product_speed;
  } else {
    products.compute *= framework.product_speed;
  }
  const auto own = framework.attention_speeds.find(device.architecture);
  const bool named = own != framework.attention_speeds.end();
  const double attention_speed = named ? own->second : framework.attention_speed;
  attention.compute *= attention_speed;
  for (std::optional<double>* speed :
       {&products.compute_fp8, &products.compute_fp4, &products.compute_fp32}) {
    if (*speed) **speed *= framework.product_speed;
  }
  if (attention.compute_fp32) *attention.compute_fp32 *= attention_speed;
  return device;
}

/// Returns `framework` on hosts that issue kernels at the pace of those of `machine`.
Framework framework_on(const Machine& machine, Framework framework) {
  framework.kernel_issue = framework.kernel_issue * machine.host_pace;
  framework.exchange_issue = framework.exchange_issue * machine.host_pace;
  framework.expert_issue = framework.expert_issue * machine.host_pace;
  if (auto& issue = framework.backward_issue) issue = *issue * machine.host_pace;
  return framework;
}

/// Returns the mesh of the devices that divide the stages of `rank`.
Mesh mesh_of(const Question& question, int rank) {
  Mesh mesh = question.layout.mesh;
  if (question.layout.rank_layouts.empty()) return mesh;
  const RankLayout& layout = question.layout.rank_layouts[rank];
  mesh.degree(Dimension::Tensor) = layout.tensor;
  mesh.degree(Dimension::Data) = layout.data;
  if (question.layout.data_parallel.zero_stage > 0) mesh.shard = layout.data;
  return mesh;
}

/// Returns how many backwards of a micro-batch or of a slice one update of a stage adds up.
int backwards_of_update(const Plan& plan, const StageRole& role) {
  std::size_t pieces = static_cast<std::size_t>(plan.schedule.update_every) *
                       std::max<std::size_t>(1, plan.slices.size());
  if (!plan.sized_batches.empty()) pieces = 0;
  for (const SizedBatch& batch : plan.sized_batches) pieces += batch.slices.size();
  const auto makes_gradients = [](const Traversal& traversal) { return traversal.weights; };
  const auto traversals =
      std::count_if(role.traversals.begin(), role.traversals.end(), makes_gradients);
  return static_cast<int>(pieces) * static_cast<int>(traversals);
}

/// Fills in the costs of stages that are divided in ways of their own, and of the messages between
/// them.
void lay_stages_out(const Plan& plan, LowerInputs& inputs) {
  const Question& question = plan.question;
  StageLayouts& layouts = inputs.layouts;
  const Layout& layout = question.layout;
  layouts.resharding = layout.resharding;
  std::vector<std::vector<StageCost>> modules;  // by rank
  const Partition& partition = plan.partition;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    layouts.meshes.push_back(mesh_of(question, rank));
    modules.push_back(
        *priced_in_stages(question, *layout.rank_layouts[rank].graph, {0, 0, 0, rank}, partition));
  }
  const Training& training = question.training();
  for (int stage = 0; stage < partition.stages(); ++stage) {
    const int rank = plan.rank_of_stage[stage], first = partition.boundaries[stage];
    StageCost cost = price_stages(modules[rank], partition, training.strategy, inputs.roles)[stage];
    apply_zero(layout.data_parallel, {layouts.meshes[rank]},
               backwards_of_update(plan, inputs.roles[stage]), cost);
    apply_offload(training.offload, layout.data_parallel, {layouts.meshes[rank]}, cost);
    layouts.inputs.push_back(first == 0 ? Bytes(0) : modules[rank][first - 1].output);
    layouts.outputs.push_back(cost.output);
    layouts.whole_outputs.push_back(
        training.graph.modules[partition.boundaries[stage + 1] - 1].output);
    inputs.stages.push_back(std::move(cost));
  }
  add_message_copies(plan, inputs.stages);
}

KnownPrices::ExchangeKey key_of(const Cluster& cluster, const Mesh& mesh, const Coordinates& at,
                                const Exchange& exchange) {
  KnownPrices::ExchangeKey key{};
  std::size_t next = 0;
  const auto add = [&](double number) { key.at(next++) = number; };
  add(cluster.devices);
  for (const int degree : mesh.degrees) add(degree);
  for (const Dimension dimension : mesh.order) add(static_cast<int>(dimension));
  for (const int place : at) add(place);
  for (const int part : {mesh.tensor_depth, mesh.context_columns, mesh.expert,
                         mesh.tensor_of_experts(), mesh.joined, mesh.shard}) {
    add(part);
  }
  const TokenRouting& routing = exchange.routing;
  for (const int part : {routing.experts, routing.per_token, routing.groups,
                         routing.groups_per_token, routing.back ? 1 : 0}) {
    add(part);
  }
  add(static_cast<int>(exchange.kind));
  add(static_cast<int>(exchange.axis));
  add(exchange.bytes.value());
  add(exchange.back.value());
  return key;
}

/// Returns the time of an exchange of `group`, alone on the cluster; worked out once.
Seconds time_of_group(KnownPrices& known, const Cluster& cluster, std::vector<int> group,
                      const Exchange& exchange) {
  const TokenRouting& routing = exchange.routing;
  const std::array<double, 10> what = {static_cast<double>(cluster.devices),
                                       static_cast<double>(exchange.kind),
                                       is_host(exchange.axis) ? double(exchange.axis) : -1,
                                       exchange.bytes.value(),
                                       exchange.back.value(),
                                       double(routing.experts),
                                       double(routing.per_token),
                                       double(routing.groups),
                                       double(routing.groups_per_token),
                                       routing.back ? 1.0 : 0.0};
  const auto [entry, fresh] =
      known.of_groups.try_emplace(std::pair(what, std::move(group)), Seconds(0));
  if (fresh) {
    entry->second = time_alone(cluster, plan_exchange(cluster, entry->first.second, exchange));
  }
  return entry->second;
}

/// Models whose prices are kept. Plans that need the same ones come near each other.
constexpr std::size_t kPricedModels = 32;

/// Returns the prices that are known of the modules of `question`, the last used first. REQUIRES:
/// question.known_prices, and no layouts of ranks.
KnownPrices::Modules& known_modules(const Question& question, const Coordinates& at) {
  std::list<KnownPrices::Modules>& known = question.known_prices->modules;
  const SharedList<Module>& modules = question.training().graph.modules;
  const auto same = std::find_if(known.begin(), known.end(), [&](const KnownPrices::Modules& one) {
    return one.of.shares(modules) && one.devices == question.cluster.devices && one.at == at &&
           one.mesh == question.layout.mesh && one.divided == divides_vocabulary(question);
  });
  if (same != known.end()) {
    known.splice(known.begin(), known, same);
  } else {
    known.push_front({modules, question.cluster.devices, question.layout.mesh, at,
                      divides_vocabulary(question), nullptr});
    if (known.size() > kPricedModels) known.pop_back();
  }
  return known.front();
}

/// Schedules that are kept, which hundreds of plans may have.
constexpr std::size_t kKeptSchedules = 64;

/// Makes the schedule of `inputs`, once for all that are the same.
Schedule schedule_known(std::list<std::pair<ScheduleInputs, Schedule>>& known,
                        const ScheduleInputs& inputs) {
  const auto same =
      std::ranges::find_if(known, [&](const auto& one) { return one.first == inputs; });
  if (same != known.end()) {
    known.splice(known.begin(), known, same);
  } else {
    known.emplace_front(inputs, make_schedule(inputs));
    if (known.size() > kKeptSchedules) known.pop_back();
  }
  return known.front().second;
}

}  // namespace

Partition* known_cut(const Question& question, int parts) {
  const bool kept = question.known_prices && question.layout.rank_layouts.empty() &&
                    !is_mixed(question.cluster) && !question.variation &&
                    !question.training().stage_recompute.any() &&
                    !casts_messages(question.training().strategy);  // as stages lie on ranks
  if (!kept) return nullptr;
  const Training& training = question.training();
  const SchedulePolicy& schedule = training.schedule;
  return &known_modules(question, {})
              .cuts[{parts, training.strategy, question.layout.placement,
                     schedule.kind->sends_lists, schedule.split_backward, schedule.update_every,
                     schedule.in_flight, schedule.message_parts}];
}

std::size_t KnownPrices::ExchangeHash::operator()(const ExchangeKey& key) const {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, a double at a time
  for (const double number : key) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(number)) * 0x100000001b3U;
    hash ^= hash >> 32U;
  }
  return hash;
}

PriceInputs price_inputs(const Question& question, const Coordinates& at) {
  const Mesh own = mesh_of(question, at[static_cast<int>(Dimension::Pipeline)]);
  const Machine& machine = machine_of(question.cluster, device_of(own, at));
  const Training& training = question.training();
  PriceInputs prices = {device_under(training.framework, training.precision, machine.device),
                        training.precision, training.optimizer,
                        framework_on(machine, training.framework)};
  // Groups of one place stand for all of its machine; many modules exchange the same.
  const auto known =
      question.known_prices ? question.known_prices : std::make_shared<KnownPrices>();
  const bool several = !question.layout.layer_layouts.empty();
  const std::vector<Mesh> layers = several ? question.layout.layers() : std::vector{own};
  prices.exchange_time = [known, &cluster = question.cluster, layers, several, own,
                          at](const Exchange& exchange) {
    const Mesh& mesh = layers.at(exchange.layout);
    const Coordinates place = several ? place_in(mesh, own, at) : at;
    const auto [entry, fresh] =
        known->exchanges.try_emplace(key_of(cluster, mesh, place, exchange), Seconds(0));
    if (fresh) {
      entry->second =
          time_of_group(*known, cluster, group_of(mesh, exchange.axis, place), exchange);
    }
    return entry->second;
  };
  return prices;
}

namespace {

DividedVocabulary divided(const Question& question, const ModelGraph& graph,
                          const PriceInputs& inputs) {
  return divide_vocabulary(graph, question.layout.ranks(), inputs);
}

/// Adds the part of the vocabulary that every rank holds, if it is divided among them.
void add_parts(const Plan& plan, const ModelGraph& graph, const Coordinates& at,
               std::vector<StageCost>& stages) {
  if (!divides_vocabulary(plan.question)) return;
  const PriceInputs inputs = price_inputs(plan.question, at);
  const auto part = price_modules(divided(plan.question, graph, inputs).part, inputs);
  const double samples = *graph.samples_per_micro_batch;
  const int context = plan.question.layout.mesh.degree(Dimension::Context);
  const VocabularyCost cost =
      vocabulary_cost(part, plan.schedule.vocabulary, samples * *graph.tokens_per_sample / context);
  for (StageCost& stage : stages) stage.vocabulary = cost;
  // In a V, a rank's stage on the way down has its part of the embedding, the other the readout.
  const int ranks = plan.question.layout.ranks();
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    const bool both = static_cast<int>(stages.size()) == ranks;
    if (both || stage < ranks) add_vocabulary(part[0], stages[stage]);
    if (both || stage >= ranks) add_vocabulary(part[1], stages[stage]);
  }
}

}  // namespace

ModulePrices priced_modules(const Question& question, const ModelGraph& graph,
                            const Coordinates& at) {
  const auto priced = [&] {
    const PriceInputs inputs = price_inputs(question, at);
    return std::make_shared<const std::vector<StageCost>>(price_modules(
        divides_vocabulary(question) ? divided(question, graph, inputs).rest : graph, inputs));
  };
  const bool kept = question.known_prices && question.layout.rank_layouts.empty() &&
                    graph.modules.shares(question.training().graph.modules);
  if (!kept) return priced();
  ModulePrices& known = known_modules(question, at).prices;
  if (!known) known = priced();
  return known;
}

std::vector<std::optional<Coordinates>> places_on_machines(const Question& question) {
  const Cluster& cluster = question.cluster;
  std::vector<std::optional<Coordinates>> places(cluster.machines.size());
  if (!is_mixed(cluster)) {
    places.front() = Coordinates{};
    return places;
  }
  for (const Coordinates& at : simulated_ranks(question.layout.mesh, {true, true, true, true})) {
    auto& place = places[machine_number(cluster, device_of(question.layout.mesh, at))];
    if (!place) place = at;
  }
  return places;
}

std::vector<std::size_t> machines_of(const Question& question, int rank) {
  if (!is_mixed(question.cluster)) return {0};
  std::set<std::size_t> machines;
  for (const Coordinates& by : folded_ranks(question.layout.mesh, kFolded)) {
    const Coordinates at = shifted(question.layout.mesh, {0, 0, 0, rank}, by);
    machines.insert(machine_number(question.cluster, device_of(question.layout.mesh, at)));
  }
  return {machines.begin(), machines.end()};
}

ModulePrices priced_in_stages(const Question& question, const ModelGraph& graph,
                              const Coordinates& at, const Partition& partition) {
  ModulePrices modules = priced_modules(question, graph, at);
  if (!question.training().stage_recompute.any()) return modules;
  return std::make_shared<const std::vector<StageCost>>(
      recomputed_in_stages(*modules, partition, question.training().stage_recompute));
}

namespace {

/// Repeats costs of stages that are each on the machine of their rank, whichever is asked for.
void repeat_for_machines(const Cluster& cluster, std::vector<StageCost>& stages) {
  const std::vector<StageCost> own = stages;
  for (std::size_t machine = 1; machine < cluster.machines.size(); ++machine) {
    stages.insert(stages.end(), own.begin(), own.end());
  }
}

/// Prices the stages of `graph` once, on the machine at `at`. (stages)
std::vector<StageCost> priced_stages(const Plan& plan, const ModelGraph& graph,
                                     const Coordinates& at, const std::vector<StageRole>& roles) {
  const Training& training = plan.question.training();
  const Layout& layout = plan.question.layout;
  std::vector<StageCost> stages =
      price_stages(*priced_in_stages(plan.question, graph, at, plan.partition), plan.partition,
                   training.strategy, roles);
  add_parts(plan, graph, at, stages);
  apply_stash_mode(plan.schedule.stash, stages);
  const std::vector<Mesh> layers = layout.layers();
  for (std::size_t s = 0; s < stages.size(); ++s) {
    apply_zero(layout.data_parallel, layers, backwards_of_update(plan, roles[s]), stages[s]);
    apply_offload(training.offload, layout.data_parallel, layers, stages[s]);
  }
  const PriceInputs prices = price_inputs(plan.question, at);
  add_message_casts(plan, prices, stages);
  add_message_copies(plan, stages);
  add_message_gathers(plan, prices, stages);
  return stages;
}

/// Calls `visit` with the model for each slice of a step; with the whole one where none is cut.
void for_slices(const Plan& plan, const std::function<void(const ModelGraph&)>& visit) {
  const ModelGraph& graph = plan.question.training().graph;
  if (plan.sized_batches.empty() && plan.slices.empty()) return visit(graph);
  for (const SizedBatch& batch : plan.sized_batches) {
    for (const TokenSlice& slice : batch.slices) visit(batch.graph->slice(slice));
  }
  for (const TokenSlice& slice : plan.slices) visit(graph.slice(slice));
}

/// Appends the costs of all stages on the machine at `at`: for each slice of a step, for all copies
/// of the model.
void append_stages(const Plan& plan, const Coordinates& at, LowerInputs& inputs) {
  for_slices(plan, [&](const ModelGraph& graph) {
    const std::vector<StageCost> once = priced_stages(plan, graph, at, inputs.roles);
    for (int copy = 0; copy < plan.copies; ++copy) {
      inputs.stages.insert(inputs.stages.end(), once.begin(), once.end());
    }
  });
}

Bytes of_architecture(const std::map<std::string, Bytes>& memory, const Device& device) {
  const auto own = memory.find(device.architecture), other = memory.find("other");
  if (own != memory.end()) return own->second;
  return other == memory.end() ? Bytes(0) : other->second;
}

/// Tells what memory of libraries and of buffers depends on, of the modules of a rank.
struct RankModules {
  bool experts = false;
  Bytes scores;                  // the most that one stores
  std::set<WeightShape> shapes;  // of trained weights of products
};

std::vector<RankModules> modules_of_ranks(const Plan& plan) {
  const Layout& layout = plan.question.layout;
  std::vector<RankModules> of_rank(static_cast<std::size_t>(layout.ranks()));
  const auto add = [&](const ModelGraph& graph, std::optional<int> only) {
    for (std::size_t stage = 0; stage < plan.rank_of_stage.size(); ++stage) {
      const int rank = plan.rank_of_stage[stage];
      if (only && rank != *only) continue;
      // The last part of overlapping blocks belongs to the last stage.
      const int part = static_cast<int>(stage) % layout.stages;
      const int end = part + 1 == layout.stages ? plan.partition.stages() : part + 1;
      for (int m = plan.partition.boundaries[part]; m < plan.partition.boundaries[end]; ++m) {
        const Module& module = graph.modules[m];
        of_rank[rank].experts |= module.expert_parameters > 0;
        of_rank[rank].scores = std::max(of_rank[rank].scores, module.scores);
        of_rank[rank].shapes.insert(module.shapes.begin(), module.shapes.end());
      }
    }
  };
  if (layout.rank_layouts.empty()) {
    for_slices(plan, [&](const ModelGraph& graph) { add(graph, {}); });
  }
  for (std::size_t rank = 0; rank < layout.rank_layouts.size(); ++rank) {
    add(*layout.rank_layouts[rank].graph, static_cast<int>(rank));
  }
  return of_rank;
}

/// Returns the bytes of the empty gradients that products of `modules` keep, one for each shape.
Bytes dummies_of(const RankModules& modules, const Training& training) {
  const DummyGradients kept = training.framework.dummy_gradients;
  Bytes bytes;
  for (const WeightShape& shape : modules.shapes) {
    if (kept == DummyGradients::None || (kept == DummyGradients::Dense && shape.expert)) continue;
    bytes += Bytes(shape.inputs * shape.outputs * element_bytes(training.precision));
  }
  return bytes;
}

/// Returns the memory beside all tensors of the model, by simulated rank.
std::vector<Bytes> memory_of_libraries(const Plan& plan) {
  const Question& question = plan.question;
  const Framework& framework = question.training().framework;
  // Most frameworks keep nothing that depends on modules.
  const bool asks = framework.keeps_attention_scores_buffer ||
                    !framework.expert_library_memory.empty() ||
                    framework.dummy_gradients != DummyGradients::None;
  const std::vector<RankModules> modules =
      asks ? modules_of_ranks(plan)
           : std::vector<RankModules>(static_cast<std::size_t>(question.layout.ranks()));
  std::vector<Bytes> memory;
  const Mesh& mesh = simulated_mesh(plan);
  for (const Coordinates& at : simulated_ranks(mesh, plan.unfolded)) {
    const RankModules& held = modules[at[static_cast<int>(Dimension::Pipeline)]];
    const Device& kind = machine_of(question.cluster, device_of(mesh, at)).device;
    Bytes bytes = of_architecture(framework.library_memory, kind);
    if (held.experts) bytes += of_architecture(framework.expert_library_memory, kind);
    if (framework.keeps_attention_scores_buffer) bytes += held.scores;
    bytes += dummies_of(held, question.training());
    memory.push_back(bytes);
  }
  return memory;
}

}  // namespace

LowerInputs lower_inputs(const Plan& plan) {
  const Question& question = plan.question;
  const bool list = plan.schedule.kind->sends_lists;
  const Training& training = question.training();
  const Layout& layout = question.layout;
  LowerInputs inputs = {
      .policy = plan.schedule,
      .strategy = training.strategy,
      .roles = make_roles(training.strategy, layout.stages, list),
      .cluster = question.cluster,
      .mesh = simulated_mesh(plan),
      .unfolded = plan.unfolded,
      .folds_nearly = !plan.uneven.empty(),
      .data_parallel = layout.data_parallel,
      .memory_contention = question.simulation.memory_contention,
      .token_sms = layout.token_sms,
      .passes_by_deepep =
          layout.sharding.expert > 1 && layout.sharding.expert_dispatch == ExpertDispatch::DeepEp,
      .memory_held = training.framework.held()};
  if (question.variation) inputs.slow = question.variation->always_slow();
  if (question.known_prices) inputs.known_flows = question.known_prices->flows;
  inputs.libraries = memory_of_libraries(plan);
  if (!layout.layer_layouts.empty()) inputs.layers = layout.layers();
  if (!layout.rank_layouts.empty()) {
    lay_stages_out(plan, inputs);
    repeat_for_machines(question.cluster, inputs.stages);
  } else {
    for (const std::optional<Coordinates>& place : places_on_machines(question)) {
      append_stages(plan, place.value_or(Coordinates{}), inputs);
    }
  }
  inputs.roles = roles_of_copies(inputs.roles, plan.copies);
  return inputs;
}

Schedule schedule_of(const Plan& plan, LowerInputs& inputs, int steps) {
  // Readouts travel once in a period of whole steps, so the written order must span one.
  const int period = plan.question.training().strategy.readout_every * plan.micro_batches;
  std::vector<int> slice_counts;
  int slices = std::max(1, static_cast<int>(plan.slices.size()));
  int turns = plan.micro_batches;  // through the slices, in a step
  for (const SizedBatch& batch : plan.sized_batches)
    slice_counts.push_back(static_cast<int>(batch.slices.size()));
  if (!slice_counts.empty()) {
    slices = std::accumulate(slice_counts.begin(), slice_counts.end(), 0);
    turns = inputs.policy.update_every = 1;
  }
  inputs.policy.update_every *= slices;
  const ScheduleInputs made_from = {.stages = static_cast<int>(plan.rank_of_stage.size()),
                                    .copies = plan.copies,
                                    .slices = slices,
                                    .micro_batches = turns * slices,
                                    .slice_counts = std::move(slice_counts),
                                    .steps = steps,
                                    .rank_of_stage = plan.rank_of_stage,
                                    .roles = inputs.roles,
                                    .policy = plan.schedule,
                                    .unroll = period > 0 ? period : 1};
  KnownPrices* const known = plan.question.known_prices.get();
  return known ? schedule_known(known->schedules, made_from) : make_schedule(made_from);
}

void order_steps(const Plan& plan, LowerInputs& inputs, int steps) {
  inputs.schedule = schedule_of(plan, inputs, steps);
  const Offload& offload = plan.question.training().offload;
  if (!offload.by_lifetime || offload.activations == 0) return;
  offload_by_lifetime(offload.activations, inputs.schedule, inputs.stages);
}

namespace {

/// Returns the schedules of replicas that have numbers of micro-batches of their own, counted as in
/// the one that has most: they flush, so that each turn is a step.
std::vector<Schedule> schedules_of_replicas(const Plan& plan, LowerInputs inputs, int steps) {
  std::vector<Schedule> schedules;
  for (const int count : plan.replica_micro_batches) {
    const Plan own = with_micro_batches(plan, count);
    inputs.policy = own.schedule;
    schedules.push_back(schedule_of(own, inputs, steps));
    for (std::vector<Sequence>& rank : schedules.back().ranks) {
      for (Sequence& sequence : rank) {
        CHECK(sequence.repeats == steps && sequence.stride == count, "a turn for each step");
        sequence.stride = plan.micro_batches;
      }
    }
  }
  return schedules;
}

}  // namespace

Program lower_plan(const Plan& plan, LowerInputs inputs, int steps) {
  inputs.policy = plan.schedule;
  inputs.replica_schedules.clear();
  if (!plan.replica_micro_batches.empty()) {
    inputs.replica_schedules = schedules_of_replicas(plan, inputs, steps);
  }
  order_steps(plan, inputs, steps);
  Program program = lower(inputs);
  if (!plan.schedule.bulk_synchronous) return program;
  const std::string problem = bulk_synchronous_problem(program);
  if (problem.empty()) return bulk_synchronous(program);
  throw Error(plan.question.file + ": " + plan.question.name +
              ": /training/schedule/execution: " + problem + ", or \"futures\"");
}

Program lower_plan(const Plan& plan, int steps) {
  CHECK(!plan.question.trace(), "a recorded run has its program");
  return lower_plan(plan, lower_inputs(plan), steps);
}

}  // namespace interlock
