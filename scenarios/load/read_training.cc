// Reads "training": the batch and its micro-batches, precision, optimiser, steps.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/contract/read_framework.h"
#include "scenarios/load/loader.h"

namespace interlock {
namespace {

constexpr std::array kOptimizers = {Optimizer::Sgd,       Optimizer::SgdMomentum, Optimizer::Adam,
                                    Optimizer::Adam,      Optimizer::Adam,        Optimizer::Lion,
                                    Optimizer::Adafactor, Optimizer::Muon};
constexpr int kEightBitAdam = 4;
constexpr std::array kMoments = {NumberFormat::Fp32, NumberFormat::Fp16, NumberFormat::Bf16,
                                 NumberFormat::Fp8, NumberFormat::Int8};
constexpr int kNoMasters = 3;
constexpr std::array kWeights = {NumberFormat::Fp32,  // of the training, see below
                                 NumberFormat::Fp8, NumberFormat::Mxfp8, NumberFormat::Nvfp4};

OptimizerRule rule_of(int kind) {
  OptimizerRule rule(kOptimizers[static_cast<std::size_t>(kind)]);
  if (kind == kEightBitAdam) rule.first = rule.second = NumberFormat::Int8;
  return rule;
}

OptimizerRule read_optimizer(const JsonNode& node, Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::String) {
    const auto kind = read_choice(node, contract_names("training", "optimizer"), diagnostics);
    return kind ? rule_of(*kind) : OptimizerRule();
  }
  if (node.value->kind != JsonValue::Kind::Object) {
    report(diagnostics, node, "expected \"adam\" or {\"kind\": \"adam\", \"masters\": \"none\"}",
           true);
    return {};
  }
  Section section(contract_object("training.optimizer"), node, diagnostics);
  section.require("kind", "an optimiser, e.g. \"adam\"");
  OptimizerRule rule = rule_of(section.choice("kind", 1));
  const int masters = section.choice("masters");
  rule.masters = masters != kNoMasters;
  if (rule.masters) rule.master = kMoments[static_cast<std::size_t>(masters)];
  const auto moment = [&](std::string_view key, NumberFormat& format) {
    if (!section.get(key)) return;
    format = kMoments[static_cast<std::size_t>(section.choice(key, 0))];
  };
  moment("first_moment", rule.first);
  moment("second_moment", rule.second);
  section.finish();
  return rule;
}

/// Reads which layers are in 16 bits, where the training has fewer.
void read_wide_layers(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics) {
  Section section(contract_object("training.bf16_layers"), node, diagnostics);
  training.asked.wide_layers = {.first = section.count("first"), .last = section.count("last")};
  section.finish();
  if (product_format(training.asked.precision)) return;
  report(diagnostics, node,
         "all layers have 16 bits or more; expected it with \"precision\": "
         "\"fp8\" or \"fp4\"");
}

void read_lora(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics) {
  Section section(contract_object("training.lora"), node, diagnostics);
  section.require("rank", "a number of columns, e.g. 16");
  training.asked.adapters.rank = section.count("rank", 1);
  training.asked.adapters.fused = section.boolean("fused");
  if (const auto modules = section.get("modules")) {
    training.asked.adapters.of = {};
    if (modules->value->kind != JsonValue::Kind::Array || modules->value->items.empty()) {
      report(diagnostics, *modules, "expected a list of products, e.g. [\"linear_qkv\"]");
    } else {
      for (std::size_t i = 0; i < modules->value->items.size(); ++i) {
        const auto name = read_choice(modules->item(i), linear_names(), diagnostics);
        if (!name) continue;
        bool& named = training.asked.adapters.of[static_cast<std::size_t>(*name)];
        if (named) report(diagnostics, modules->item(i), "stands in the list twice");
        named = true;
      }
    }
  }
  constexpr std::array kBases = {NumberFormat::Bf16, NumberFormat::Int8, NumberFormat::Fp8,
                                 NumberFormat::Nf4};
  const int base = section.choice("base");
  if (base > 0) training.asked.optimizer.frozen = kBases[static_cast<std::size_t>(base)];
  section.finish();
}

/// Reads "optimizer" and the formats of weights.
void read_update(Section& section, TrainingKeys& training) {
  Diagnostics& diagnostics = section.diagnostics();
  if (const auto node = section.get("optimizer")) {
    training.asked.optimizer = read_optimizer(*node, diagnostics);
  }
  const int weights = section.choice("weights");
  training.asked.optimizer.weight_copies = section.count("weight_copies");
  if (weights == 0) return;
  training.asked.optimizer.weights = kWeights[static_cast<std::size_t>(weights)];
  const Precision precision = training.asked.precision;
  const bool four = training.asked.optimizer.weights == NumberFormat::Nvfp4;
  if (precision == Precision::Fp8 || (four && precision == Precision::Fp4)) return;
  report(diagnostics, *section.get("weights"),
         four ? "weights of 4 bits are multiplied in 4 or 8 bits; expected \"precision\": \"fp4\""
              : "weights of 8 bits are multiplied in 8 bits; expected \"precision\": \"fp8\"");
}

/// The sizes of a batch that are written; `batch` is one replica's.
struct BatchSizes {
  std::optional<int> batch, size, count;  // samples, samples of a micro-batch, micro-batches
  int replicas = 1;
};

void check_divides(const std::optional<JsonNode>& node, std::optional<int> divisor,
                   const BatchSizes& written, Diagnostics& diagnostics) {
  if (!divisor || !written.batch || *written.batch % *divisor == 0) return;
  const std::string batch = std::to_string(*written.batch);
  const std::string all = std::to_string(std::int64_t{*written.batch} * written.replicas);
  const std::string what = written.replicas == 1
                               ? "the global batch is"
                               : "a replica's " + batch + " of the " + all + " samples are";
  report(diagnostics, *node,
         what + " no whole multiple of it; expected a divisor of " + batch + ", got " +
             std::to_string(*divisor));
}

/// Fills in the sizes that are not written from those that are. REQUIRES: they divide.
void fit_sizes(const BatchSizes& written, TrainingKeys& training) {
  if (written.count) {
    training.asked.micro_batches = *written.count;
  } else if (written.batch && written.size) {
    training.asked.micro_batches = *written.batch / *written.size;
  }
  if (written.size) {
    training.micro_batch_size = *written.size;
  } else if (written.batch) {
    training.micro_batch_size = *written.batch / training.asked.micro_batches;
  }
  training.samples_known = written.batch || written.size;
}

/// Reads a number of micro-batches for each of `data` replicas, which are `all` together.
std::vector<int> read_replica_counts(const JsonNode& node, int data, int all, Section& section) {
  Diagnostics& diagnostics = section.diagnostics();
  const Mistakes mistakes(diagnostics);
  std::vector<int> counts;
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    const auto count = section.count_at("replica_micro_batches", node.item(i));
    counts.push_back(count.value_or(1));
  }
  if (counts.size() != static_cast<std::size_t>(data)) {
    report(diagnostics, node,
           "has " + std::to_string(counts.size()) + (counts.size() == 1 ? " number" : " numbers") +
               "; expected one for each of the replicas (parallel.data), " + std::to_string(data));
  }
  const auto sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (mistakes.none() && sum != all) {
    report(diagnostics, node,
           "adds up to " + std::to_string(sum) + "; expected the " + std::to_string(all) +
               " micro-batches of the global batch");
  }
  return counts;
}

/// Reads a step whose micro-batches are not shared out equally. REQUIRES: the key is written, and
/// not "equal".
void read_shares(Section& section, int data, TrainingKeys& training) {
  Diagnostics& diagnostics = section.diagnostics();
  const Mistakes mistakes(diagnostics);
  const JsonNode node = *section.get("replica_micro_batches");
  training.global_batch_size = section.written_count("global_batch_size");
  const std::optional<JsonNode> size = section.get("micro_batch_size");
  const bool number = size && size->value->kind == JsonValue::Kind::Number;
  const int samples = number ? section.written_count("micro_batch_size").value_or(1) : 1;
  if (!training.global_batch_size || !number || section.get("micro_batches")) {
    report(diagnostics, node,
           "shares out micro-batches of one size; expected \"global_batch_size\" and a number as "
           "\"micro_batch_size\" beside it, and no \"micro_batches\"");
  } else if (*training.global_batch_size % samples != 0) {
    report(diagnostics, *size,
           "the global batch is no whole multiple of it; expected a divisor of " +
               std::to_string(*training.global_batch_size) + ", got " + std::to_string(samples));
  }
  if (mistakes.none()) {
    ReplicaBatches& shares = training.asked.replica_batches;
    shares.all = *training.global_batch_size / samples;
    training.asked.micro_batches = (shares.all + data - 1) / data;
    if (node.value->kind == JsonValue::Kind::Array) {
      shares.kind = ReplicaBatches::Kind::Explicit;
      shares.counts = read_replica_counts(node, data, shares.all, section);
      training.asked.micro_batches = *std::max_element(shares.counts.begin(), shares.counts.end());
    } else {
      shares.kind = ReplicaBatches::Kind::BySpeed;
      if (shares.all < data) {
        report(diagnostics, node,
               std::to_string(shares.all) + " micro-batches for " + std::to_string(data) +
                   " replicas (parallel.data); expected one for each at least");
      }
    }
    training.micro_batch_size = samples;
    training.samples_known = true;
  }
  training.batch_valid = mistakes.none();
}

/// Returns true if "replica_micro_batches" is written and not "equal"; reports another word.
bool shares_unequally(Section& section) {
  for (const char* key : {"global_batch_size", "micro_batch_size", "micro_batches"}) {
    section.get(key);  // known before it, in messages that list keys
  }
  const std::optional<JsonNode> node = section.get("replica_micro_batches");
  if (!node) return false;
  if (node->value->kind == JsonValue::Kind::Array && !node->value->items.empty()) return true;
  if (node->value->kind == JsonValue::Kind::String) {
    return section.choice("replica_micro_batches", 0) > 0;
  }
  report(section.diagnostics(), *node,
         "expected \"equal\", \"by_speed\" or a list with the micro-batches of each replica");
  return false;
}

void read_batch(Section& section, int data, TrainingKeys& training) {
  if (shares_unequally(section)) return read_shares(section, data, training);
  Diagnostics& diagnostics = section.diagnostics();
  const Mistakes mistakes(diagnostics);
  const std::optional<int> global = section.written_count("global_batch_size");
  BatchSizes written = {.batch = global, .replicas = data};
  if (global && *global % data != 0) {
    report(diagnostics, *section.get("global_batch_size"),
           "cannot be divided among " + std::to_string(data) +
               " replicas (parallel.data); expected a multiple of " + std::to_string(data) +
               ", got " + std::to_string(*global));
    written.batch.reset();
  } else if (global) {
    written.batch = *global / data;
  }
  const std::optional<JsonNode> size = section.get("micro_batch_size");
  training.asked.balances_batch = size && size->value->kind == JsonValue::Kind::String;
  if (training.asked.balances_batch) {
    section.choice("micro_batch_size", 0);
    written.size = 1;
  } else {
    written.size = section.written_count("micro_batch_size");
  }
  written.count = section.written_count("micro_batches");
  const std::optional<JsonNode> count = section.get("micro_batches");
  if (size && count) {
    report(diagnostics, *count,
           "given beside \"micro_batch_size\"; expected one of the two, the other follows");
  } else {
    check_divides(size, written.size, written, diagnostics);
    check_divides(count, written.count, written, diagnostics);
  }
  training.global_batch_size = global;
  training.batch_valid = mistakes.none();
  if (training.batch_valid) fit_sizes(written, training);
}

/// Returns whether the schedule cuts sequences, so that one micro-batch makes gradients several
/// times.
bool cuts_sequences(const TrainingKeys& training) {
  if (!training.schedule) return false;
  const JsonValue& schedule = *training.schedule->value;
  const JsonValue* kind =
      schedule.kind == JsonValue::Kind::Object ? schedule.find("kind") : &schedule;
  if (!kind || kind->kind != JsonValue::Kind::String) return false;
  const ScheduleEntry* const entry = find_schedule(kind->text);
  return entry != nullptr && entry->slices;
}

}  // namespace

TrainingKeys read_training(const JsonNode& node, int data, KnownParts& known,
                           Diagnostics& diagnostics) {
  TrainingKeys training{.node = node, .precision_node = node};
  Section section(contract_object("training"), node, diagnostics);
  const std::string kinds = join_choices(contract_names("training.strategy", "kind"));
  if (const auto strategy = section.require("strategy", kinds)) {
    training.strategy = read_strategy(*strategy, diagnostics);
  }
  training.schedule = section.get("schedule");
  training.slices = read_slices(training.schedule, diagnostics);
  read_batch(section, data, training);
  training.asked.precision = static_cast<Precision>(section.choice("precision"));
  if (const auto precision = section.get("precision")) training.precision_node = *precision;
  read_update(section, training);
  if (const auto framework = section.get("framework")) {
    training.asked.framework = known.framework(*framework, diagnostics);
    const bool whole = training.asked.micro_batches == 1 && !cuts_sequences(training);
    if (whole) training.asked.framework.gradient_passes = 0;  // there are none to add to
  }
  read_kernel_settings(section, training.asked.framework);
  if (const auto lora = section.get("lora")) read_lora(*lora, training, diagnostics);
  training.asked.frozen_modules = section.count("frozen_modules");
  if (const auto again = section.get("recompute")) read_recompute(*again, training, diagnostics);
  training.asked.narrow_activations = section.choice("activation_inputs") == 1;
  if (const auto wide = section.get("bf16_layers")) read_wide_layers(*wide, training, diagnostics);
  if (const auto offload = section.get("offload")) read_offload(*offload, training, diagnostics);
  training.asked.steps = section.count("steps");
  section.finish();
  return training;
}

namespace {

LayerParts read_parts(const JsonNode& node, Diagnostics& diagnostics) {
  LayerParts parts;
  if (node.value->kind != JsonValue::Kind::Array || node.value->items.empty()) {
    report(diagnostics, node, "expected a list of parts of a layer, e.g. [\"core_attn\"]");
    return parts;
  }
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    const auto part = read_choice(node.item(i), layer_part_names(), diagnostics);
    if (!part) continue;
    if (parts.has(static_cast<LayerPart>(*part))) {
      report(diagnostics, node.item(i), "stands in the list twice");
    }
    parts |= static_cast<LayerPart>(*part);
  }
  return parts;
}

/// Reads the object form of "recompute".
void read_some_recompute(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics) {
  Section section(contract_object("training.recompute"), node, diagnostics);
  const auto modules = section.get("modules");
  const auto group = section.get("group");
  training.recompute_layers = section.written_count("full_layers");
  training.asked.stage_recompute.layers = section.written_count("stage_layers");
  training.asked.stage_recompute.group = section.count("group");
  if (modules) training.asked.recompute_parts = read_parts(*modules, diagnostics);
  const bool first = section.get("full_layers").has_value();
  const bool each = section.get("stage_layers").has_value();
  section.finish();
  training.asked.recompute = modules && !first ? Recompute::Parts : Recompute::Full;
  if (!modules && !first && !each && !group) {
    report(diagnostics, node,
           "says nothing; expected \"modules\", \"full_layers\", \"stage_layers\" or \"group\"");
  } else if ((modules || first) && (each || group)) {
    report(diagnostics, node,
           "\"stage_layers\" and \"group\" go with full recompute of a stage's layers; expected "
           "them without \"modules\" and \"full_layers\"");
  } else if (training.asked.stage_recompute.any() &&
             training.strategy.strategy.kind != StrategyKind::Global) {
    report(diagnostics, node,
           "counts layers of stages that go back once; expected it with the strategy \"global\"");
  } else if (training.asked.stage_recompute.group > 1 && cuts_sequences(training)) {
    report(
        diagnostics, node.child("group"),
        "later slices of a sequence read what each layer keeps; expected 1 under a schedule that "
        "cuts sequences");
  }
}

}  // namespace

void read_recompute(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::String) {
    const auto choice = read_choice(node, contract_names("training", "recompute"), diagnostics);
    if (choice) training.asked.recompute = static_cast<Recompute>(*choice);
  } else if (node.value->kind == JsonValue::Kind::Object) {
    read_some_recompute(node, training, diagnostics);
  } else {
    report(diagnostics, node,
           "expected \"none\", \"selective\", \"full\", \"alternate\", {\"modules\": "
           "[\"layernorm\"]} or {\"full_layers\": 8}");
  }
}

void read_offload(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics) {
  Section section(contract_object("training.offload"), node, diagnostics);
  training.offload_node = node;
  training.asked.offload.activations = section.number("activations");
  training.asked.offload.optimizer = section.number("optimizer");
  training.asked.offload.by_lifetime = section.choice("selection") == 1;
  section.finish();
}

namespace {

/// Reports parts that no layer of the model has.
void check_parts(const TrainingKeys& training, const ModelGraph& graph, Diagnostics& diagnostics) {
  LayerParts known;
  for (const Module& module : graph.modules) known |= module.parts;
  std::vector<std::string> names;
  for (int i = 0; i < kLayerParts; ++i) {
    if (known.has(static_cast<LayerPart>(i))) names.push_back(layer_part_names()[i]);
  }
  for (int i = 0; i < kLayerParts; ++i) {
    const auto part = static_cast<LayerPart>(i);
    if (!training.asked.recompute_parts.has(part) || known.has(part)) continue;
    const std::string expected =
        names.empty() ? "\"none\" or \"full\" for this model" : join_choices(names);
    report(diagnostics, training.node.child("recompute").child("modules"),
           "no layer of " + in_quotes(graph.name) + " has " + in_quotes(layer_part_names()[i]) +
               "; expected " + expected);
  }
}

void check_recompute(const TrainingKeys& training, const ModelGraph& graph,
                     Diagnostics& diagnostics) {
  check_parts(training, graph, diagnostics);
  if (!training.recompute_layers) return;
  const auto layers = std::count_if(graph.modules.begin(), graph.modules.end(),
                                    [](const Module& module) { return !module.recompute.empty(); });
  if (layers >= *training.recompute_layers) return;
  report(diagnostics, training.node.child("recompute").child("full_layers"),
         "more layers than " + in_quotes(graph.name) + " can compute again; expected at most " +
             std::to_string(layers) + ", got " + std::to_string(*training.recompute_layers));
}

void check_offload(const TrainingKeys& training, const Cluster& cluster, Diagnostics& diagnostics) {
  if (!has_host(cluster)) {
    report(diagnostics, *training.offload_node,
           "the way from a device of " + in_quotes(cluster.name) +
               " to its host's memory is unknown; expected a machine with a \"host\", such as " +
               in_quotes("dgx-a100-80g"));
  }
}

/// Returns true if a trained module uses weights of one of the first `frozen`.
bool trains_frozen_table(const ModelGraph& graph, int frozen) {
  for (std::size_t m = static_cast<std::size_t>(frozen); m < graph.modules.size(); ++m) {
    const Module& module = graph.modules[m];
    if (module.tied_parameters > 0 && module.tied_to < frozen) return true;
  }
  return false;
}

/// Reports frozen weights that the model or the strategy cannot have. `training` read "lora" and
/// "frozen_modules".
void check_frozen(const TrainingKeys& training, const ModelGraph& graph, Diagnostics& diagnostics) {
  const bool lora = training.asked.adapters.rank > 0;
  if (!lora && training.asked.frozen_modules == 0) return;
  const JsonNode node = training.node.child(lora ? "lora" : "frozen_modules");
  const int modules = static_cast<int>(graph.modules.size());
  if (training.strategy.strategy.kind != StrategyKind::Global) {
    report(diagnostics, node,
           "weights are frozen under one loss; expected the strategy \"global\"");
  }
  if (training.asked.frozen_modules >= modules) {
    report(diagnostics, training.node.child("frozen_modules"),
           "leaves nothing to train; expected fewer than the " + std::to_string(modules) +
               " modules of " + in_quotes(graph.name) + ", got " +
               std::to_string(training.asked.frozen_modules));
  } else if (!lora && trains_frozen_table(graph, training.asked.frozen_modules)) {
    report(diagnostics, node,
           "the readout, or another table, is trained and shares weights with the embedding; "
           "expected a model with \"tied_embeddings\": false, no \"multi_token_prediction\" and no "
           "\"encoder\" of words");
  }
  const auto has_adapters = [](const Module& module) {
    return module.frozen.all > 0 && weights_of(module).all > 0;
  };
  if (lora && std::none_of(graph.modules.begin(), graph.modules.end(), has_adapters)) {
    report(diagnostics, node,
           in_quotes(graph.name) +
               " has no products that adapters stand beside; expected a transformer");
  }
}

}  // namespace

void check_contention(const Question& question, const std::optional<Cluster>& cluster,
                      const JsonNode& document, Diagnostics& diagnostics) {
  if (!question.simulation.memory_contention || !cluster || have_rates(*cluster)) return;
  report(diagnostics, document.child("simulate").child("memory_contention"),
         "the memory bandwidth of the devices of " + in_quotes(cluster->name) +
             " is unknown; expected a cluster with a \"device\", e.g. \"a100-80g\"");
}

void check_memory(const TrainingKeys& training, const std::optional<ModelGraph>& graph,
                  const std::optional<Cluster>& cluster, bool cuts_sequences,
                  Diagnostics& diagnostics) {
  if (graph) check_recompute(training, *graph, diagnostics);
  if (graph) check_frozen(training, *graph, diagnostics);
  if (!training.asked.offload.any()) return;
  if (cluster) check_offload(training, *cluster, diagnostics);
  const bool global = training.strategy.strategy.kind == StrategyKind::Global;
  if (training.asked.offload.by_lifetime && training.strategy.valid && !global) {
    report(diagnostics, training.offload_node->child("selection"),
           "lifetimes are known of ranks whose order is written, which global training has; "
           "expected \"equal\"");
  }
  if (cuts_sequences && training.asked.offload.activations > 0) {
    report(diagnostics, training.offload_node->child("activations"),
           "later slices of a sequence read what earlier ones keep, so that it cannot leave; "
           "expected 0 under a schedule that cuts sequences");
  }
}

namespace {

/// Returns why the schedule of `question` cannot run steps of `count` micro-batches; or "".
std::string count_problem(const Question& question, int count) {
  const SchedulePolicy& policy = question.training().schedule;
  if (policy.kind->problem == nullptr) return "";
  const std::optional<SliceRule>& slices = question.training().slices;
  return policy.kind->problem({.ranks = question.layout.ranks(),
                               .stages = question.layout.stages,
                               .micro_batches = count,
                               .update_every = count,
                               .round = policy.round,
                               .slices = slices ? slices->count : 1});
}

}  // namespace

RunnableCounts runnable_counts(const Question& question) {
  constexpr int kMost = 1024;
  const auto runs = [&](int count) { return count_problem(question, count).empty(); };
  RunnableCounts counts;
  while (++counts.least <= kMost) {
    if (!runs(counts.least)) continue;
    for (counts.step = 1; counts.step <= kMost; ++counts.step) {
      bool all = true;
      for (int i = 1; i <= 3; ++i) all = all && runs(counts.least + i * counts.step);
      if (all) return counts;
    }
  }
  return {.problem = count_problem(question, kMost)};
}

namespace {

/// Returns why replicas cannot have numbers of micro-batches of their own, and what would do; or
/// "".
std::string shares_problem(const Question& question) {
  const Training& training = question.training();
  const SchedulePolicy& policy = training.schedule;
  const DataParallel& data = question.layout.data_parallel;
  const bool plain = policy.kind->flushes && !policy.kind->slices && policy.copies == 1 &&
                     !has_copies(policy.kind->layout) && !policy.order &&
                     policy.placement.empty() && policy.in_flight == 1 &&
                     !policy.bulk_synchronous && policy.update_every == training.micro_batches;
  if (training.strategy.kind != StrategyKind::Global) {
    return "is for one loss at the end of the model; expected the strategy \"global\"";
  }
  if (!plain) {
    return "needs a schedule of whole sequences that updates at the end of a step; expected "
           "\"1f1b\", "
           "\"gpipe\", \"interleaved\" or another such";
  }
  if (data.zero_stage >= 3 || data.gradient_reduction == GradientReduction::MicroBatch) {
    return "lets replicas, which exchange after each micro-batch, wait for one that has none left; "
           "expected ZeRO 0 to 2 with \"gradient_reduction\": \"step\"";
  }
  if (question.layout.sharding.expert > 1) {
    return "leaves replicas without a partner that share experts; expected no \"expert\"";
  }
  if (!question.layout.rank_layouts.empty() || data.outer.any()) {
    return "goes with one layout of all stages; expected no \"stage_layouts\" and no \"outer\"";
  }
  if (question.variation && question.variation->documents) {
    return "goes with samples of one length; expected no \"documents\"";
  }
  if (question.run || question.swarm) {
    return "goes with steps without failures or peers; expected no \"run\" and no \"swarm\"";
  }
  return "";
}

}  // namespace

void check_shares(const Question& question, const JsonNode& document, Diagnostics& diagnostics) {
  const ReplicaBatches& shares = question.training().replica_batches;
  if (shares.kind == ReplicaBatches::Kind::Equal) return;
  const JsonNode node = document.child("training").child("replica_micro_batches");
  if (const std::string problem = shares_problem(question); !problem.empty()) {
    return report(diagnostics, node, problem);
  }
  const std::string& schedule = question.training().schedule.kind->name;
  for (const int count : shares.counts) {
    const std::string problem = count_problem(question, count);
    if (!problem.empty()) return report(diagnostics, node, schedule + " " + problem);
  }
  if (shares.kind == ReplicaBatches::Kind::Explicit) return;
  const RunnableCounts counts = runnable_counts(question);
  if (!counts.problem.empty()) {
    return report(diagnostics, node, schedule + " " + counts.problem);
  }
  const int replicas = question.layout.mesh.degree(Dimension::Data);
  const int left = shares.all - counts.least * replicas;
  if (left >= 0 && left % counts.step == 0) return;
  const auto words = [&](int more) {
    return std::to_string(replicas * counts.least + more * counts.step);
  };
  report(diagnostics, node,
         schedule + " shares " + words(0) + ", " + words(1) + ", " + words(2) +
             " and so on micro-batches out among " + std::to_string(replicas) +
             " replicas; expected such a number of all, got " + std::to_string(shares.all));
}

}  // namespace interlock
