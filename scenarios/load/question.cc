// Loads scenarios: reads every section, fits them together, and reports all mistakes at once.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/question.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/load/loader.h"
#include "scenarios/load/read_stage_layouts.h"
#include "scenarios/load/schedules/check_boundaries.h"
#include "scenarios/load/schedules/check_copies.h"
#include "scenarios/load/training/check_architectures.h"
#include "scenarios/load/training/read_optimizer.h"
#include "sim/plan/stage_cost.h"
#include "sim/plan/vocabulary.h"

namespace interlock {

namespace {

/// Everything a document says, before its parts are fitted together.
struct Sections {
  std::optional<Cluster> cluster;
  std::optional<ModelGraph> graph;  // nothing where its section is wrong
  std::optional<ParallelKeys> parallel;
  TrainingKeys training;
  PartitionKeys partition;
  std::optional<JsonNode> model, partition_node;
};

/// Returns the model's own head, if its object has one; the strategy's overrides it.
std::optional<JsonNode> head_of(const Sections& sections) {
  if (sections.training.strategy.head) return sections.training.strategy.head;
  if (!sections.model || sections.model->value->kind != JsonValue::Kind::Object) return {};
  if (!sections.model->value->find("head")) return {};
  return sections.model->child("head");
}

BuildOptions build_options(const Sections& sections) {
  const TrainingKeys& keys = sections.training;
  const Training& training = keys.asked;
  return {.micro_batch_size = keys.micro_batch_size,
          .precision = training.precision,
          .optimizer = training.optimizer,
          .recompute = training.recompute,
          .recompute_parts = training.recompute_parts,
          .narrow_activations = training.narrow_activations,
          .wide_layers = training.wide_layers,
          .adapters = training.adapters,
          .frozen_modules = training.frozen_modules,
          .parted = parted_attention(keys.schedule),
          .recompute_layers = keys.recompute_layers,
          .framework = training.framework,
          .sharding = sections.parallel ? sections.parallel->asked.sharding : Sharding{},
          .head = keys.strategy.head};
}

std::optional<ModelGraph> read_model(const Sections& sections, KnownParts& known,
                                     Diagnostics& diagnostics) {
  const Mistakes mistakes(diagnostics);
  ModelGraph graph = known.model(*sections.model, build_options(sections), diagnostics);
  if (!mistakes.none() || graph.modules.empty()) return std::nullopt;
  return graph;
}

Sections read_sections(const JsonNode& document, Question& question, KnownParts& known,
                       Diagnostics& diagnostics) {
  Sections sections;
  sections.training.node = sections.training.precision_node = document;
  sections.training.batch_valid = false;  // until it is read
  Section section(contract_object(""), document, diagnostics);
  section.get("$schema");
  section.get("sweep");
  question.name = section.text("name", default_name(*document.value));
  const Mistakes before_parallel(diagnostics);
  sections.parallel = ParallelKeys{.node = document};
  if (const auto parallel = section.get("parallel")) {
    sections.parallel = read_parallel(*parallel, diagnostics);
    if (!before_parallel.none()) sections.parallel.reset();
  }
  const int data = sections.parallel ? sections.parallel->asked.mesh.degree(Dimension::Data) : 1;
  if (const auto training = section.require("training", "an object with a \"strategy\"")) {
    sections.training = read_training(*training, data, known, diagnostics);
  }
  sections.model = section.require("model", "a model's name, a path, or an object");
  if (sections.model) sections.graph = read_model(sections, known, diagnostics);
  if (const auto cluster = section.require("cluster", "a machine's name, a path, or an object")) {
    const Mistakes mistakes(diagnostics);
    sections.cluster = known.cluster(*cluster, diagnostics);
    if (!mistakes.none()) sections.cluster.reset();
  }
  sections.partition_node = section.get("partition");
  sections.partition = read_partition(sections.partition_node, diagnostics);
  if (const auto simulate = section.get("simulate")) {
    question.simulation = read_simulate(*simulate, diagnostics);
  }
  question.variation = read_variation(section.get("variation"), diagnostics);
  if (const auto run = section.get("run")) question.run = read_run(*run, diagnostics);
  if (const auto goal = section.get("goal")) question.goal = read_goal(*goal, diagnostics);
  if (const auto swarm = section.get("swarm")) question.swarm = read_swarm(*swarm, diagnostics);
  if (const auto quality = section.get("quality")) check_quality(*quality, diagnostics);
  if (const auto search = section.get("search")) check_search(*search, diagnostics);
  section.get("workload");  // known, but in none that is read here
  section.get("jobs");
  section.finish();
  return sections;
}

/// Gives a measured profile the samples of the written batch, if there is one; reports any other
/// model without a global batch.
void fit_batch(const TrainingKeys& training, ModelGraph& graph, Diagnostics& diagnostics) {
  if (!graph.samples_per_micro_batch) {
    if (training.samples_known) graph.samples_per_micro_batch = training.micro_batch_size;
  } else if (!training.global_batch_size && training.batch_valid) {
    report(diagnostics, training.node,
           "missing key \"global_batch_size\"; expected a number of samples");
  }
}

/// Reports a rank of "stage_layouts" with devices of several machines: one stands for all of them.
void check_alike_in_ranks(const Question& question, const JsonNode& document,
                          Diagnostics& diagnostics) {
  if (question.layout.rank_layouts.empty()) return;
  const int each = question.layout.mesh.devices_of_rank();
  for (int rank = 0; rank < question.layout.ranks(); ++rank) {
    const Machine& first = machine_of(question.cluster, rank * each);
    const Machine& last = machine_of(question.cluster, (rank + 1) * each - 1);
    if (&first == &last) continue;
    report(diagnostics, document.child("parallel").child("stage_layouts"),
           "rank " + std::to_string(rank) + " has devices of " + in_quotes(first.name) + " and " +
               in_quotes(last.name) + "; expected devices of one machine in each rank");
    return;
  }
}

/// Reports a cluster whose devices cannot price the model's work.
void check_device(const Sections& sections, const JsonNode& document, Diagnostics& diagnostics) {
  const Precision precision = sections.training.asked.precision;
  if (!have_rates(*sections.cluster)) {
    report(diagnostics, document.child("cluster"),
           "its devices have no speed, so only measured profiles can run on them; expected a "
           "\"device\" or a machine such as " +
               in_quotes("dgx-a100-80g"));
    return;
  }
  for (const Machine& machine : sections.cluster->machines) {
    if (supports(machine.device, precision)) continue;
    const std::string& name =
        contract_names("training", "precision")[static_cast<std::size_t>(precision)];
    report(diagnostics, sections.training.precision_node,
           machine.device.name + " does not compute in " + name + "; expected " +
               join_choices(supported_precisions(machine.device)));
    return;
  }
}

void check_readout(const Training& training, const JsonNode& place, Diagnostics& diagnostics) {
  if (training.strategy.readout_every == 1 && training.micro_batches == 1) {
    report(diagnostics, place,
           "a head that is renewed at every micro-batch is not stale; expected \"stale_every\" of "
           "at least 2 steps where a step is one micro-batch");
  }
}

ModelText text_of(const Sections& sections) {
  ModelText text = {.model = *sections.model->value};
  if (const auto& head = sections.training.strategy.head) text.head = *head->value;
  return text;
}

void fit_schedule(const Sections& sections, Training& training, Diagnostics& diagnostics) {
  const TrainingKeys& keys = sections.training;
  if (keys.strategy.valid) {
    training.schedule = read_schedule(keys, diagnostics);
  } else if (keys.schedule) {
    check_schedule_keys(*keys.schedule, diagnostics);
  }
  Strategy& strategy = training.strategy;
  strategy.all_heads = keys.strategy.all_heads.value_or(training.schedule.kind->sends_lists);
  const bool has_heads = strategy.kind != StrategyKind::Global &&
                         strategy.kind != StrategyKind::ForwardForward &&
                         strategy.kind != StrategyKind::Inference;
  if (const auto head = head_of(sections); head && has_heads) {
    strategy.readout_every = read_readout_every(*head);
    if (keys.batch_valid) check_readout(training, *head, diagnostics);
  }
}

/// Returns the number of even slices where none is written: four a rank, or as few more as divide
/// the tokens, up to eight a rank; at most one for each token.
int default_slices(const Sections& sections, int ranks) {
  constexpr int kEach = 4;
  const int count = kEach * ranks;
  if (!sections.graph || !sections.graph->tokens_per_sample) return count;
  const int tokens = static_cast<int>(*sections.graph->tokens_per_sample);
  if (tokens <= count) return tokens;
  const int even = least_divisor(tokens, count);
  return even <= 2 * count ? even : count;
}

/// Reports the sizes of the run that the schedule itself refuses.
void check_shape(const Sections& sections, const Training& training, const LayoutSize& layout,
                 Diagnostics& diagnostics) {
  const TrainingKeys& keys = sections.training;
  const SchedulePolicy& policy = training.schedule;
  const ScheduleEntry& entry = *policy.kind;
  const bool known = entry.layout != StageLayout::Helix || sections.graph;  // its stages
  if (!keys.batch_valid || entry.problem == nullptr || !known) return;
  if (training.replica_batches.kind != ReplicaBatches::Kind::Equal) return;  // see check_shares()
  std::string problem = entry.problem({.ranks = layout.ranks,
                                       .stages = layout.stages,
                                       .micro_batches = training.micro_batches,
                                       .update_every = policy.update_every,
                                       .round = policy.round,
                                       .folds = policy.folds,
                                       .slices = training.slices ? training.slices->count : 1});
  if (problem.empty()) return;
  const bool few_tokens = entry.even_slices && !keys.slices.node;
  if (few_tokens) problem += ", one for each token of a sequence; \"chunks\" 1 takes any number";
  report(diagnostics, keys.schedule.value_or(keys.node), entry.name + " " + problem);
}

/// Has the schedule run pairs if tokens pass to experts beside other micro-batches.
void fit_pairs(const Sections& sections, Training& training, const LayoutSize& layout,
               Diagnostics& diagnostics) {
  SchedulePolicy& policy = training.schedule;
  const Sharding& sharding = sections.parallel->asked.sharding;
  const bool asked = sharding.expert_overlap == ExpertOverlap::MicroBatches;
  policy.passes_in_pairs = asked && sharding.expert > 1;
  policy.delays_weights = sections.parallel->delays_weights;
  if (!asked || !sections.training.strategy.valid) return;
  const ScheduleEntry& entry = *policy.kind;
  std::string problem;
  if (policy.overlap > 0) {
    problem = "has an \"overlap\" of its own; expected none, as kernels and messages say it";
  } else if (policy.bulk_synchronous) {
    problem = "is bulk synchronous, with one op in a phase; expected \"futures\"";
  } else if (entry.pair_problem != nullptr) {
    problem = entry.pair_problem(
        {layout.ranks, layout.stages, training.micro_batches, policy.update_every});
  } else if (!entry.overlaps) {
    problem =
        "runs no pairs; expected \"1f1b\" on one stage, \"interleaved\", \"dualpipe\" or "
        "\"dualpipe-v\"";
  }
  if (problem.empty()) return;
  report(diagnostics, sections.parallel->node.child("expert_overlap"), entry.name + " " + problem);
}

/// Fits how many stages losses reach to those that there are.
void fit_reach(const TrainingKeys& keys, int stages, Strategy& strategy, Diagnostics& diagnostics) {
  const int modules = std::max(1, stages / strategy.module_stages);
  strategy.n_wise = std::min(strategy.n_wise, modules);
  const std::size_t count = strategy.n_of_losses.size();
  if (count == static_cast<std::size_t>(stages)) {
    set_reach(strategy, strategy.n_of_losses);
  } else if (count > 0) {
    report(diagnostics, *keys.strategy.reach,
           "has " + std::to_string(count) + (count == 1 ? " number" : " numbers") +
               "; expected one for the loss of each of the " + std::to_string(stages) + " stages");
  }
  if (!strategy.sought) return;
  if (strategy.gradient != GradientMode::Furthest) {
    report(diagnostics, *keys.strategy.reach,
           "\"auto\" chooses the furthest loss of each stage; expected \"gradient\": "
           "\"furthest\", or a number for the loss of each stage");
  } else if (strategy.all_heads) {
    report(diagnostics, *keys.strategy.reach,
           "\"auto\" chooses which stages have heads; expected \"heads\": \"minimal\", or a "
           "number for the loss of each stage");
  }
}

/// Returns the number of stages, once everything about it is known to be right.
std::optional<int> fit_stages(const Sections& sections, const JsonNode& document,
                              Question& question, Diagnostics& diagnostics) {
  Training& training = question.training();
  LayoutBounds bounds;
  if (sections.cluster) bounds.devices = sections.cluster->devices;
  if (sections.graph) bounds.modules = static_cast<int>(sections.graph->modules.size());
  const bool helix = training.schedule.kind->layout == StageLayout::Helix;
  if (helix && sections.graph) bounds.parts = helix_stages(*sections.graph);
  if (sections.training.strategy.valid) {
    bounds.strategy = &training.strategy;
    bounds.schedule = &training.schedule;
  }
  if (!sections.parallel) return std::nullopt;
  const auto size = fit_layout(*sections.parallel, bounds, diagnostics);
  if (!size) return std::nullopt;
  Layout& layout = question.layout;
  layout = sections.parallel->asked;
  layout.partition =
      helix ? PartitionRule{PartitionRule::Kind::Explicit, bounds.parts} : sections.partition.rule;
  layout.mesh.degree(Dimension::Pipeline) = size->ranks;
  // Frameworks that keep whole gradients add them up; the others must reduce as they come.
  const bool divided = layout.data_parallel.zero_stage >= 2;
  layout.data_parallel.gradient_reduction = sections.parallel->gradient_reduction.value_or(
      divided ? training.framework.gradient_reduction : GradientReduction::Step);
  layout.data_parallel.outer.gradient_element =
      training.framework.fp32_gradients ? 4 : element_bytes(training.precision);
  layout.stages = size->stages;
  layout.placement = read_placement(*sections.parallel, *size, bounds, diagnostics);
  layout.lays_freely = lays_freely(*sections.parallel);
  fit_reach(sections.training, size->stages, training.strategy, diagnostics);
  if (bounds.modules) {
    check_partition(sections.partition, sections.partition_node.value_or(document),
                    {.modules = *bounds.modules,
                     .parts = parts_of(training.strategy, size->stages),
                     .ranks = size->ranks,
                     .lays_ranks = layout.placement.empty()},
                    diagnostics);
  }
  if (training.schedule.kind->even_slices && !sections.training.slices.node) {
    training.slices =
        SliceRule{.kind = SliceRule::Kind::Equal, .count = default_slices(sections, size->ranks)};
  }
  check_shape(sections, training, *size, diagnostics);
  fit_pairs(sections, training, *size, diagnostics);
  return size->stages;
}

/// Reports weight gradients of a readout that cannot be put off. `keys.schedule` says so.
void check_deferral(const Question& question, const TrainingKeys& keys, const ModelGraph& graph,
                    Diagnostics& diagnostics) {
  const Training& training = question.training();
  if (training.schedule.deferred_readout == 0 || !keys.schedule) return;
  const JsonNode node = keys.schedule->child("deferred_readout");
  if (!question.layout.data_parallel.keeps_whole_gradients()) {
    report(diagnostics, node,
           "gradients are divided, or reduced after every backward; expected zero_stage 0 or 1 and "
           "\"gradient_reduction\" \"step\"");
  } else if (!deferrable_bytes(graph, training.precision)) {
    report(diagnostics, node,
           "the last module of the model makes its weight gradients with more than one product, or "
           "none; expected a model that ends in one readout");
  }
}

/// Reports messages in lines where ranks choose their order. `keys.schedule` asks for lines.
void check_messages(const Question& question, const TrainingKeys& keys, Diagnostics& diagnostics) {
  const SchedulePolicy& policy = question.training().schedule;
  if (policy.messages.lines == MessageOrder::Lines::Free || !keys.schedule) return;
  const bool laid = policy.kind->layout != StageLayout::Any || policy.order;
  if (laid || question.layout.stages == question.layout.ranks()) return;
  report(diagnostics, keys.schedule->child("message_order"),
         "a rank with several stages chooses their order while it runs; expected one stage a rank, "
         "or a schedule that lays out several");
}

/// Reports a vocabulary that cannot be divided among these ranks, unless its schedule or strategy
/// has been refused for it already. `keys.schedule` says that it is divided.
void check_vocabulary(const Question& question, const TrainingKeys& keys, const ModelGraph& graph,
                      Diagnostics& diagnostics) {
  const Training& training = question.training();
  if (training.schedule.vocabulary == VocabularySplit::Whole || !keys.schedule) return;
  if (!is_global(training.strategy) || !vocabulary_problem(training.schedule).empty()) return;
  const std::string problem = vocabulary_problem(question.layout, training, graph);
  if (!problem.empty()) report(diagnostics, keys.schedule->child("vocabulary"), problem);
}

/// Reports what the model lacks for its training.
void fit_graph(Sections& sections, const Training& training, const JsonNode& document,
               Diagnostics& diagnostics) {
  const bool measured = !sections.graph->samples_per_micro_batch;
  if (sections.cluster && !measured) check_device(sections, document, diagnostics);
  fit_batch(sections.training, *sections.graph, diagnostics);
  if (training.slices) check_slices(sections.training, training, *sections.graph, diagnostics);
}

/// Returns the number of tensor devices that each send a part of the messages between ranks: all of
/// those that hold the same outputs.
int message_parts(const Question& question) {
  const Sharding& sharding = question.layout.sharding;
  const bool equal = sharding.tensor_layout == TensorLayout::OneD && !sharding.sequence_parallel &&
                     sharding.split_brain == 1 && question.layout.rank_layouts.empty();
  // HelixPipe: most of what goes to and from attention is in parts already.
  const bool helix = question.training().schedule.kind->layout == StageLayout::Helix;
  if (!question.training().framework.divides_messages || !equal || helix) return 1;
  int most = sharding.tensor;
  for (const LayerDegrees& layers : question.layout.layer_layouts) {
    most = std::max(most, layers.tensor);
  }
  return most;
}

/// Reports a document of several jobs; returns whether it is one.
bool report_jobs(const JsonNode& document, Diagnostics& diagnostics) {
  const bool holds =
      document.value->kind == JsonValue::Kind::Object && document.value->find("jobs") != nullptr;
  if (!holds) return false;
  report(diagnostics, document.child("jobs"),
         "several jobs on one cluster are a question to interlock simulate; expected one "
         "scenario");
  return true;
}

/// Returns whether stage s does not lie on rank s.
bool lays_elsewhere(const std::vector<int>& placement) {
  for (std::size_t stage = 0; stage < placement.size(); ++stage) {
    if (placement[stage] != static_cast<int>(stage)) return true;
  }
  return false;
}

}  // namespace

std::string vocabulary_problem(const Layout& layout, const Training& training,
                               const ModelGraph& graph) {
  const bool tensors = layout.sharding.tensor > 1;
  // A V has two stages a rank.
  const bool of_v = training.schedule.kind->layout == StageLayout::V;
  if (of_v && layout.ranks() == 1) {
    return "it is divided among ranks; expected 2 pipeline ranks or more";
  }
  if (of_v && layout.lays_freely) {
    return "its first rank has both ends of the model; expected no parallel.placement, or \"v\"";
  }
  if ((!of_v && layout.stages != layout.ranks()) || layout.ranks() == 1) {
    return "it is divided among ranks of one stage each; expected 2 ranks or more, and as many "
           "stages";
  }
  if ((!of_v && lays_elsewhere(layout.placement)) || layout.lays_freely) {
    return "its first rank has the first stage, and its last the last; expected no "
           "parallel.placement, or each stage on the rank of its number";
  }
  // ZeRO 2 divides the gradients of several backwards when they are added up, as ZeRO 1 does.
  const int zero_stage = layout.data_parallel.zero_stage;
  if (zero_stage >= 3 || (zero_stage == 2 && training.micro_batches == 1) ||
      layout.data_parallel.gradient_reduction == GradientReduction::MicroBatch) {
    return "weights or gradients of every backward are exchanged at once; expected it with "
           "zero_stage 0 or 1, or 2 of several micro-batches, and \"gradient_reduction\" \"step\"";
  }
  if (layout.mesh.replicas() > 1 && layout.data_parallel.overlap_gradients) {
    return "gradients of its parts come behind those of the last backward; expected "
           "\"overlap_gradients\" false beside it";
  }
  if (layout.data_parallel.zero_stage > 0 && layout.data_parallel.overlap_weights) {
    return "its parts are read ahead of the first forward; expected \"overlap_weights\" false "
           "beside it";
  }
  if (tensors && layout.sharding.tensor_layout != TensorLayout::OneD) {
    return "what tensor devices exchange of grids of weights is not divided; expected "
           "\"tensor_layout\" \"1d\" beside it";
  }
  if (tensors && training.framework.gathers_vocabulary) {
    return "each tensor device makes the loss of all logits; expected training.framework with "
           "\"vocabulary\" \"divided\", or no tensor devices";
  }
  if (training.offload.any()) {
    return "what leaves for hosts leaves beside forwards and backwards alone; expected no "
           "training.offload";
  }
  const bool uneven = training.slices && !training.schedule.kind->even_slices;
  if (!layout.rank_layouts.empty() || uneven || training.balances_batch ||
      training.replica_batches.kind != ReplicaBatches::Kind::Equal) {
    return "all ranks work on every micro-batch alike; expected stages of one layout, whole "
           "sequences, and as many micro-batches on each replica";
  }
  return division_problem(graph, layout.ranks());
}

void refuse_jobs(const JsonValue& document) {
  Diagnostics diagnostics;
  report_jobs({&document, ""}, diagnostics);
  diagnostics.throw_if_any();
}

Question load_question(const JsonValue& value, KnownParts& known, Diagnostics& diagnostics) {
  const JsonNode document = {&value, ""};
  if (report_jobs(document, diagnostics)) return {};
  if (value.kind == JsonValue::Kind::Object && value.find("workload") != nullptr) {
    return load_workload(document, diagnostics);
  }
  Question question;
  question.file = value.file ? *value.file : "";
  Sections sections = read_sections(document, question, known, diagnostics);
  const TrainingKeys& keys = sections.training;
  Training& training = question.training();
  training = keys.asked;
  training.strategy = keys.strategy.strategy;
  check_architectures(training.framework, sections.cluster, document, diagnostics);
  if (sections.cluster) {
    for (Machine& machine : sections.cluster->machines) {
      double& sms = machine.device.collective_sms;
      if (sms == 0) sms = training.framework.collective_sms;
    }
  }
  fit_schedule(sections, training, diagnostics);
  const bool cuts = training.schedule.kind->slices;
  if (cuts) training.slices = keys.slices.rule;
  const std::optional<int> stages = fit_stages(sections, document, question, diagnostics);
  const int slices = cuts ? training.slices->count : 1;
  if (stages) check_size(question, *stages, slices, document, diagnostics);
  check_memory(keys, sections.graph, sections.cluster, cuts, diagnostics);
  check_optimizer(question, document, diagnostics);
  if (sections.graph) fit_graph(sections, training, document, diagnostics);
  if (sections.graph) {
    check_deferral(question, keys, *sections.graph, diagnostics);
    if (stages) check_vocabulary(question, keys, *sections.graph, diagnostics);
  }
  if (stages) {
    check_messages(question, keys, diagnostics);
    if (keys.strategy.valid) check_boundaries(question, keys, document, diagnostics);
    check_ring(question, keys, sections.cluster ? &*sections.cluster : nullptr, document,
               diagnostics);
    check_helix(question, keys, sections.graph ? &*sections.graph : nullptr, document, diagnostics);
  }
  check_contention(question, sections.cluster, document, diagnostics);
  if (stages) check_stage_layouts(*sections.parallel, question, document, diagnostics);
  if (stages) check_layer_layouts(*sections.parallel, question, document, diagnostics);
  if (stages) {
    check_variation(question, *sections.parallel, sections.cluster, document, diagnostics);
    check_outer(question, document, diagnostics);
    check_shares(question, document, diagnostics);
  }
  if (diagnostics.empty()) {
    build_stage_layouts(*sections.parallel, *sections.model, build_options(sections), question,
                        diagnostics);
  }
  if (!diagnostics.empty()) return question;
  CHECK(stages && sections.graph && sections.cluster, "a scenario without mistakes is complete");
  training.graph = with_documents(*std::move(sections.graph), question, document, diagnostics);
  training.model_text = std::make_shared<const ModelText>(text_of(sections));
  question.cluster = with_slow_links(std::move(*sections.cluster), question.variation);
  build_layer_layouts(*sections.parallel, *sections.model, build_options(sections), question,
                      diagnostics);
  check_alike_in_ranks(question, document, diagnostics);
  training.schedule.message_parts = message_parts(question);
  if (question.run) check_run(question, document.child("run"), diagnostics);
  if (question.goal) check_goal(question, document.child("goal"), diagnostics);
  if (question.swarm) check_swarm(question, document.child("swarm"), diagnostics);
  return question;
}

SimulationSettings read_simulate(const JsonNode& node, Diagnostics& diagnostics) {
  Section section(contract_object("simulate"), node, diagnostics);
  SimulationSettings settings = {.engine = static_cast<EngineKind>(section.choice("engine")),
                                 .seed = section.count("seed"),
                                 .skip_periods = section.boolean("skip_periods"),
                                 .memory_contention = section.boolean("memory_contention")};
  if (const auto fold = section.get("fold")) read_fold(*fold, settings, diagnostics);
  section.finish();
  return settings;
}

const std::string& workload_name(const Question& question) {
  const TraceWorkload* const trace = question.trace();
  return trace != nullptr ? trace->files : question.training().graph.name;
}

Precision precision_of(const Question& question) {
  const TraceWorkload* const trace = question.trace();
  return trace != nullptr ? trace->precision.value_or(Precision::Bf16)
                          : question.training().precision;
}

namespace {

constexpr double kMost = 1e300;

}  // namespace

void check_quality(const JsonNode& node, Diagnostics& diagnostics) {
  Section section(contract_object("quality"), node, diagnostics);
  if (const auto measure = section.require("measure", "a name such as \"WikiText perplexity\"")) {
    read_text(*measure, diagnostics);
  }
  if (const auto value = section.require("value", "a number")) {
    read_number(*value, -kMost, kMost, diagnostics);
  }
  if (const auto source = section.get("source")) read_text(*source, diagnostics);
  section.finish();
}

namespace {

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

}  // namespace

JsonValue read_scenario_document(const std::string& path,
                                 const std::vector<std::string>& overrides) {
  JsonValue document =
      path == "-" ? parse_json(read_standard_input(), "standard input") : read_json_file(path);
  apply_overrides(document, overrides);
  return document;
}

}  // namespace interlock
