// Reads "parallel": the device mesh, how tensors and states are divided; and what of it is folded.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "base/text.h"
#include "hardware/networks/network_size.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "scenarios/load/read_stage_layouts.h"

namespace interlock {
namespace {

/// Reports degrees beyond the devices of any machine; smaller ones are checked with the cluster.
void check_degrees(Section& section, Mesh& mesh, const Sharding& sharding) {
  std::int64_t product = 1;
  std::string degrees;
  for (const Dimension dimension : {Dimension::Data, Dimension::Context, Dimension::Tensor}) {
    const int degree = mesh.degree(dimension);
    product *= degree;
    degrees += (degrees.empty() ? "" : " x ") + name_of(dimension, sharding) + " " +
               std::to_string(degree);
  }
  if (product <= kMostDevices) return;
  report(section.diagnostics(), section.node(),
         degrees + " are " + std::to_string(product) + " devices; expected at most " +
             std::to_string(kMostDevices));
  mesh.degrees = {1, 1, 1, 1};
}

/// Reads "spatial": bands, or a grid of [rows, columns].
void read_spatial(Section& section, ParallelKeys& keys) {
  const auto node = section.get("spatial");
  if (!node) return;
  Diagnostics& diagnostics = section.diagnostics();
  std::vector<JsonNode> counts = {*node};
  if (node->value->kind == JsonValue::Kind::Array) {
    if (node->value->items.size() != 2) {
      report(diagnostics, *node,
             "no way to cut images; expected a number of bands, e.g. 4, or a grid of [rows, "
             "columns], e.g. [2, 2]");
      return;
    }
    counts = {node->item(0), node->item(1)};
  }
  const auto rows = section.count_at("spatial", counts.front());
  const auto columns =
      counts.size() == 1 ? std::optional(1) : section.count_at("spatial", counts[1]);
  if (!rows || !columns || *rows * *columns == 1) return;
  if (keys.asked.mesh.degree(Dimension::Context) > 1) {
    report(diagnostics, *node,
           "a model has either images or sequences to divide; expected \"spatial\" or "
           "\"context\"");
    return;
  }
  keys.asked.sharding.image_rows = *rows;
  keys.asked.sharding.image_columns = keys.asked.mesh.context_columns = *columns;
  keys.asked.mesh.degree(Dimension::Context) = *rows * *columns;
}

/// Reads how attention sees whole sequences, and the groups of a hybrid.
void read_context_layout(Section& section, ParallelKeys& keys) {
  Sharding& sharding = keys.asked.sharding;
  sharding.context_layout = static_cast<ContextLayout>(section.choice("context_layout"));
  const bool hybrid = sharding.context_layout == ContextLayout::Hybrid;
  const auto node = section.get("context_all_to_all");
  if (!hybrid) {
    if (!node) return;
    report(section.diagnostics(), *node,
           "are groups of a hybrid; expected \"context_layout\": \"hybrid\" beside it");
    return;
  }
  section.require("context_all_to_all", "the context devices that turn heads");
  const int columns = section.count("context_all_to_all", 1);
  if (!node) return;
  if (sharding.context % columns != 0 || columns == sharding.context) {
    report(section.diagnostics(), *node,
           "groups of " + std::to_string(columns) + " make no rings of " +
               std::to_string(sharding.context) +
               " context devices; expected a divisor of \"context\" that is less than it, or "
               "\"context_layout\": \"all_to_all\"");
    sharding.context_layout = ContextLayout::Ring;
    return;
  }
  sharding.context_columns = keys.asked.mesh.context_columns = columns;
}

bool is_square(int number) {
  const int side = static_cast<int>(std::lround(std::sqrt(number)));
  return side * side == number;
}

bool is_cube(int number) {
  const int side = static_cast<int>(std::lround(std::cbrt(number)));
  return side * side * side == number;
}

/// Reads "tensor_layout", and checks that the number of tensor ranks suits it.
void read_tensor_layout(Section& section, ParallelKeys& keys) {
  Sharding& sharding = keys.asked.sharding;
  Diagnostics& diagnostics = section.diagnostics();
  sharding.tensor_layout = static_cast<TensorLayout>(section.choice("tensor_layout"));
  sharding.tensor_depth = section.count("tensor_depth");
  const auto depth = section.get("tensor_depth");
  const int ranks = sharding.tensor;
  const std::string got = ", got tensor " + std::to_string(ranks);
  switch (sharding.tensor_layout) {
    case TensorLayout::OneD:
      break;
    case TensorLayout::TwoD:
      if (is_square(ranks)) break;
      report(diagnostics, section.node(),
             "the 2d layout needs a square of tensor ranks; expected e.g. 1, 4, 9 or 16" + got);
      break;
    case TensorLayout::TwoAndAHalfD:
      if (ranks % sharding.tensor_depth == 0 && is_square(ranks / sharding.tensor_depth)) break;
      report(diagnostics, section.node(),
             "the 2.5d layout needs tensor_depth squares of tensor ranks; expected e.g. tensor = " +
                 std::to_string(sharding.tensor_depth) + " x 1, 4, 9 or 16" + got);
      sharding.tensor_depth = 1;
      break;
    case TensorLayout::ThreeD:
      if (is_cube(ranks)) break;
      report(diagnostics, section.node(),
             "the 3d layout needs a cube of tensor ranks; expected e.g. 1, 8, 27 or 64" + got);
      break;
  }
  if (depth && sharding.tensor_layout != TensorLayout::TwoAndAHalfD) {
    report(diagnostics, *depth,
           "only the 2.5d layout has a depth; expected \"tensor_layout\": \"2.5d\" beside it");
  }
  keys.asked.mesh.tensor_depth = sharding.tensor_layout == TensorLayout::ThreeD
                                     ? static_cast<int>(std::lround(std::cbrt(ranks)))
                                     : sharding.tensor_depth;
}

/// Reads the order of dimensions: the first changes first from device to device.
void read_order(Section& section, Mesh& mesh) {
  const auto node = section.get("order");
  if (!node) return;
  Diagnostics& diagnostics = section.diagnostics();
  const std::string expected =
      "expected each of " + join_choices(dimension_names()) + " once, the innermost first";
  std::vector<int> order;
  if (node->value->kind == JsonValue::Kind::Array) {
    for (std::size_t i = 0; i < node->value->items.size(); ++i) {
      const auto choice = read_choice(node->item(i), dimension_names(), diagnostics);
      if (choice) order.push_back(*choice);
    }
    if (order.size() < node->value->items.size()) return;  // that was said
  }
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (order.size() != kDimensions || sorted.size() != kDimensions) {
    report(diagnostics, *node, "is no order of dimensions; " + expected);
    return;
  }
  std::transform(order.begin(), order.end(), mesh.order.begin(),
                 [](int index) { return static_cast<Dimension>(index); });
}

/// Reads the groups that divide fully connected layers; on the mesh, they are groups that divide
/// experts.
void read_split_brain(Section& section, ParallelKeys& keys) {
  const int devices = keys.asked.mesh.degree(Dimension::Data);
  const int group = section.count("split_brain");
  const auto node = section.get("split_brain");
  if (group == 1) return;
  if (devices % group != 0) {
    report(section.diagnostics(), *node,
           "fully connected layers are divided within groups of the " + std::to_string(devices) +
               " data devices; expected a divisor of " + std::to_string(devices) + ", got " +
               std::to_string(group));
  } else if (keys.asked.mesh.expert > 1) {
    report(section.diagnostics(), *node,
           "a model has either experts or fully connected layers to divide; expected \"expert\" or "
           "\"split_brain\"");
  } else if (keys.asked.sharding.image_parts() > 1) {
    report(section.diagnostics(), *node,
           "behind images that are cut devices divide samples, not layers; expected "
           "\"split_brain\" or \"spatial\"");
  } else {
    keys.asked.mesh.expert = keys.asked.sharding.split_brain = group;
  }
}

/// Reads the number of devices that divide each expert, where that is not the tensor degree.
void read_expert_tensor(Section& section, ParallelKeys& keys) {
  const auto node = section.get("expert_tensor");
  const int tensor = keys.asked.sharding.tensor;
  const int parts = section.count("expert_tensor", tensor);
  if (!node || parts == tensor) return;
  const std::string devices = std::to_string(keys.asked.mesh.devices_of_rank());
  if (keys.asked.mesh.devices_of_rank() % parts != 0) {
    report(section.diagnostics(), *node,
           "each expert is divided among the " + devices +
               " devices of a pipeline rank (data x context x tensor); expected a divisor of " +
               devices + ", got " + std::to_string(parts));
  } else if (tensor > 1 && !keys.asked.sharding.sequence_parallel) {
    report(section.diagnostics(), *node,
           "the " + std::to_string(tensor) +
               " tensor devices hold the same tokens, and cannot send parts of them to other "
               "holders of experts; expected \"sequence_parallel\": true beside it, or " +
               std::to_string(tensor));
  } else {
    keys.asked.mesh.expert_tensor = keys.asked.sharding.expert_tensor = parts;
  }
}

/// Reads how experts lie on the devices of a pipeline rank.
void read_experts(Section& section, ParallelKeys& keys) {
  Mesh& mesh = keys.asked.mesh;
  const Mistakes mistakes(section.diagnostics());
  const int expert = section.count("expert");
  read_expert_tensor(section, keys);
  if (!mistakes.none()) return;
  const int tensor = mesh.tensor_of_experts(), all = mesh.devices_of_rank();
  const auto node = section.get("expert");
  if (!node || all / tensor % expert == 0) {
    mesh.expert = keys.asked.sharding.expert = expert;
    return;
  }
  const std::string room = std::to_string(all / tensor);
  std::string message = "experts are divided among the " + room;
  message += tensor == keys.asked.sharding.tensor
                 ? " devices of equal weights (data x context)"
                 : " devices (data x context x tensor / expert_tensor) of a pipeline rank";
  message += "; expected a divisor of " + room;
  const bool fits_folded = tensor > 1 && all % expert == 0;
  if (fits_folded) message += ", or \"expert_tensor\": 1 beside it";
  report(section.diagnostics(), *node, message + ", got " + std::to_string(expert));
}

/// Reads the load of each expert: that of the busiest holder over the mean.
void read_load(Section& section, Sharding& sharding) {
  sharding.expert_imbalance = section.number("expert_imbalance");
  const auto node = section.get("expert_load");
  if (!node) return;
  Diagnostics& diagnostics = section.diagnostics();
  if (section.get("expert_imbalance")) {
    report(diagnostics, *node,
           "loads of experts say how uneven devices are; expected no \"expert_imbalance\" beside "
           "them");
    return;
  }
  std::vector<double> loads;
  const Mistakes mistakes(diagnostics);
  for (const JsonNode& load : section.items_at("expert_load", *node, described(*node->value),
                                               "number, the load of each expert")) {
    loads.push_back(section.number_at("expert_load", load).value_or(0));
  }
  if (!mistakes.none()) return;
  const int experts = static_cast<int>(loads.size()), holders = sharding.expert;
  const double all = std::accumulate(loads.begin(), loads.end(), 0.0);
  if (all == 0) {
    report(diagnostics, *node, "no expert has any tokens; expected a load above 0");
    return;
  }
  if (experts % holders != 0) {
    report(diagnostics, *node,
           "expected a load of each expert, a multiple of the " + std::to_string(holders) +
               " expert devices; got " + std::to_string(experts));
    return;
  }
  double busiest = 0;
  const auto each = experts / holders;
  for (auto held = loads.begin(); held != loads.end(); held += each) {
    busiest = std::max(busiest, std::accumulate(held, held + each, 0.0));
  }
  sharding.expert_imbalance = busiest * holders / all;
  sharding.expert_loads = experts;
}

/// Reads whether weight gradients of a pair come last.
void read_delay(Section& section, ParallelKeys& keys) {
  keys.delays_weights = section.boolean("delay_weight_gradients");
  const bool pairs = keys.asked.sharding.expert_overlap == ExpertOverlap::MicroBatches;
  if (!keys.delays_weights || pairs) return;
  report(section.diagnostics(), *section.get("delay_weight_gradients"),
         "only pairs of micro-batches have messages that weight gradients could wait behind; "
         "expected \"expert_overlap\": \"micro_batches\" beside it");
}

/// Reads how tokens reach their experts, and what runs meanwhile.
void read_tokens(Section& section, ParallelKeys& keys) {
  Sharding& sharding = keys.asked.sharding;
  read_load(section, sharding);
  sharding.expert_dispatch = static_cast<ExpertDispatch>(section.choice("expert_dispatch"));
  sharding.dispatch_format = static_cast<TokenFormat>(section.choice("dispatch_format"));
  sharding.combine_format = static_cast<TokenFormat>(section.choice("combine_format"));
  sharding.expert_overlap = static_cast<ExpertOverlap>(section.choice("expert_overlap"));
  if (section.get("dispatch_sms")) {
    const double share = section.number("dispatch_sms", 0);
    if (sharding.expert > 1) keys.asked.token_sms = share;
  }
  read_delay(section, keys);
}

/// Reads the degrees that lie inside data * context, and those of experts.
void read_subgroups(Section& section, ParallelKeys& keys) {
  Mesh& mesh = keys.asked.mesh;
  Diagnostics& diagnostics = section.diagnostics();
  const int replicas = mesh.replicas();
  const std::string of = " the " + std::to_string(replicas) +
                         " devices of equal weights (data x context); expected a divisor of " +
                         std::to_string(replicas) + ", got ";
  read_experts(section, keys);
  read_split_brain(section, keys);
  keys.asked.data_parallel.zero_stage = section.count("zero_stage");
  const bool shards = keys.asked.data_parallel.zero_stage > 0;
  const auto shard = section.get("shard");
  mesh.shard = section.count("shard", shards ? replicas : 1);
  if (shard && !shards) {
    report(diagnostics, *shard,
           "nothing is divided without ZeRO; expected \"zero_stage\" of 1 to 3 beside it");
  } else if (shard && replicas % mesh.shard != 0) {
    report(diagnostics, *shard, "states are divided among" + of + std::to_string(mesh.shard));
    mesh.shard = 1;
  }
}

void read_data_parallel(Section& section, DataParallel& policy) {
  policy.overlap_gradients = section.boolean("overlap_gradients");
  policy.overlap_weights = section.boolean("overlap_weights");
  policy.prefetch = section.count("prefetch");
  policy.gradient_density = section.number("gradient_density");
  const auto bucket = section.get("bucket");
  if (!bucket) return;
  const auto bytes = read_bytes(*bucket, section.diagnostics());
  if (!bytes) return;
  if (*bytes <= Bytes(0)) {
    report(section.diagnostics(), *bucket,
           "a bucket of nothing; expected some bytes, e.g. \"25 MiB\"");
    return;
  }
  policy.bucket = *bytes;
}

constexpr std::array kElementBytes = {4.0, 2.0, 1.0, 0.5};  // of fp32, bf16, fp8, fp4

/// Says why workers cannot be made of the replicas of `keys`; empty if they can.
std::string worker_problem(const ParallelKeys& keys, int workers) {
  const Mesh& mesh = keys.asked.mesh;
  const int data = mesh.degree(Dimension::Data);
  if (data == 1) {
    return "workers are replicas of the model; expected \"data\" of at least 2 beside it";
  }
  if (data % workers != 0) {
    return "workers divide the " + std::to_string(data) +
           " replicas (data); expected a divisor of " + std::to_string(data) + " from 2 on, got " +
           std::to_string(workers);
  }
  if (mesh.expert > 1 || mesh.expert_tensor) {
    return "a worker has all weights, and tokens do not leave it; expected no \"expert\", "
           "\"expert_tensor\" or \"split_brain\" beside it";
  }
  const auto place = [&](Dimension dimension) {
    return std::find(mesh.order.begin(), mesh.order.end(), dimension);
  };
  const bool apart = place(Dimension::Context) > place(Dimension::Data);
  if (mesh.degree(Dimension::Context) > 1 && apart) {
    return "devices that divide sequences belong to one worker; expected \"" +
           name_of(Dimension::Context, keys.asked.sharding) + "\" before \"data\" in \"order\"";
  }
  return "";
}

void check_within(Section& section, const char* key, int value, int every) {
  const auto node = section.get(key);
  if (!node || value <= every) return;
  report(section.diagnostics(), *node,
         "expected at most the " + std::to_string(every) + " steps of \"every\", got " +
             std::to_string(value));
}

/// Reports `key` where nothing comes late, as no step runs beside an exchange.
void check_late(Section& section, const char* key, bool asked, const OuterSteps& outer) {
  if (!asked || outer.overlap > 0) return;
  report(section.diagnostics(), *section.get(key),
         "training waits for each exchange at once; expected \"overlap\" of 1 step or more beside "
         "it");
}

/// Reads "outer", after the degrees and ZeRO; makes a shard of each worker.
void read_outer(Section& parallel, ParallelKeys& keys) {
  const auto node = parallel.get("outer");
  if (!node) return;
  Diagnostics& diagnostics = parallel.diagnostics();
  const Mistakes mistakes(diagnostics);
  Section section(contract_object("parallel.outer"), *node, diagnostics);
  const int data = keys.asked.mesh.degree(Dimension::Data);
  OuterSteps outer;
  outer.every = section.required_count("every", "a number of steps, e.g. 500");
  const int workers = section.count("workers", std::max(2, data));
  outer.fragments = section.count("fragments");
  outer.overlap = section.count("overlap");
  outer.element = kElementBytes[static_cast<std::size_t>(section.choice("format"))];
  outer.network_share = section.number("network_share");
  outer.compensates = section.boolean("delay_compensation");
  section.finish();
  if (!mistakes.none()) return;
  check_late(section, "network_share", outer.network_share > 0, outer);
  check_late(section, "delay_compensation", outer.compensates, outer);
  check_within(section, "fragments", outer.fragments, outer.every);
  check_within(section, "overlap", outer.overlap, outer.every);
  const std::string problem = worker_problem(keys, workers);
  if (!problem.empty()) report(diagnostics, *node, problem);
  if (const auto shard = parallel.get("shard")) {
    report(diagnostics, *shard,
           "the devices of a worker share its states; expected \"workers\" of \"outer\" alone");
  }
  if (!mistakes.none()) return;
  keys.asked.data_parallel.outer = outer;
  keys.asked.mesh.shard = keys.asked.mesh.replicas() / workers;
}

}  // namespace

std::string name_of(Dimension dimension, const Sharding& sharding) {
  if (dimension == Dimension::Context && sharding.image_parts() > 1) return "spatial";
  return dimension_names()[static_cast<std::size_t>(dimension)];
}

ParallelKeys read_parallel(const JsonNode& node, Diagnostics& diagnostics) {
  ParallelKeys keys{.node = node};
  Section section(contract_object("parallel"), node, diagnostics);
  keys.pipeline = section.written_count("pipeline");
  keys.stages = section.written_count("stages");
  keys.pipeline_node = section.get("pipeline");
  keys.stages_node = section.get("stages");
  keys.placement = section.get("placement");
  for (const auto& [key, dimension] :
       {std::pair("tensor", Dimension::Tensor), std::pair("data", Dimension::Data),
        std::pair("context", Dimension::Context)}) {
    keys.asked.mesh.degree(dimension) = section.count(key);
  }
  read_spatial(section, keys);
  Sharding& sharding = keys.asked.sharding;
  check_degrees(section, keys.asked.mesh, sharding);
  sharding.tensor = keys.asked.mesh.degree(Dimension::Tensor);
  sharding.context = sharding.image_parts() > 1 ? 1 : keys.asked.mesh.degree(Dimension::Context);
  sharding.sequence_parallel = section.boolean("sequence_parallel");
  read_context_layout(section, keys);
  read_tensor_layout(section, keys);
  read_subgroups(section, keys);
  read_tokens(section, keys);
  read_data_parallel(section, keys.asked.data_parallel);
  if (section.get("gradient_reduction")) {
    const int choice = section.choice("gradient_reduction", 0);
    keys.gradient_reduction = static_cast<GradientReduction>(choice);
  }
  read_order(section, keys.asked.mesh);
  read_outer(section, keys);
  read_stage_layouts(section, keys);
  read_layer_layouts(section, keys);
  section.finish();
  return keys;
}

void check_outer(const Question& question, const JsonNode& document, Diagnostics& diagnostics) {
  if (!question.layout.data_parallel.outer.any()) return;
  const JsonNode node = document.child("parallel").child("outer");
  if (question.training().strategy.kind == StrategyKind::Inference) {
    report(diagnostics, node, "nothing is trained, so that weights do not move; expected none");
  }
  if (question.variation && question.variation->varies()) {
    report(diagnostics, node,
           "is spread over equal steps, and those of \"variation\" differ; expected no jitter, "
           "documents, or stragglers of some steps beside it");
  }
}

void read_fold(const JsonNode& node, SimulationSettings& settings, Diagnostics& diagnostics) {
  Unfolded unfolded = {true, true, true, true};
  if (node.value->kind == JsonValue::Kind::String) {
    const auto choice = read_choice(node, contract_names("simulate", "fold"), diagnostics);
    if (choice == 1) settings.unfolded = unfolded;
    settings.folds_nearly = choice == 2;
    return;
  }
  if (node.value->kind != JsonValue::Kind::Array) {
    report(diagnostics, node,
           "expected \"auto\", \"none\", \"nearly\" or a list such as [\"data\", \"tensor\"]");
    return;
  }
  const auto& names = dimension_names();
  const std::vector<std::string> foldable(names.begin(), names.end() - 1);  // all but pipeline
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    const auto choice = read_choice(node.item(i), foldable, diagnostics);
    if (choice) unfolded[static_cast<std::size_t>(*choice)] = false;
  }
  settings.unfolded = unfolded;
}

}  // namespace interlock
