// Reads parallel.layer_layouts: layers that are divided in ways of their own.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/text.h"
#include "models/build_model.h"
#include "scenarios/load/read_stage_layouts.h"

namespace interlock {

namespace {

/// Returns the degrees of layers in words: "tensor 4 x data 2".
std::string text_of(const LayerDegrees& layers) {
  return "tensor " + std::to_string(layers.tensor) + " x data " + std::to_string(layers.data);
}

std::string modules_text(int first, int end) {
  return "modules " + std::to_string(first) + " to " + std::to_string(end - 1);
}

LayerDegrees degrees_of(const Mesh& mesh) {
  return {.tensor = mesh.degree(Dimension::Tensor),
          .data = mesh.degree(Dimension::Data),
          .expert_tensor = mesh.expert_tensor};
}

/// Reads [first, end].
void read_modules(Section& section, LayersKeys& layers) {
  const auto node =
      section.require("modules", "the first module and the one behind the last, e.g. [1, 9]");
  if (!node) return;
  const JsonValue& list = *node->value;
  if (list.kind != JsonValue::Kind::Array || list.items.size() != 2) {
    report(section.diagnostics(), *node,
           "no range of modules; expected the first and the one behind the last, e.g. [1, 9]");
    return;
  }
  std::vector<int> ends;
  for (std::size_t i = 0; i < 2; ++i) {
    if (const auto end = section.count_at("modules", node->item(i))) ends.push_back(*end);
  }
  if (ends.size() < 2) return;
  layers.first = ends[0];
  layers.end = ends[1];
  if (layers.first < layers.end) return;
  report(section.diagnostics(), *node,
         "holds no module: the second number is that of the module behind the last; expected more "
         "than " +
             std::to_string(layers.first));
}

std::int64_t devices_of(const LayerDegrees& layers) {
  return std::int64_t{layers.tensor} * layers.data;
}

/// Reads "tensor" and "data" of an entry; one that is left out follows from the devices of the run.
void read_layer_degrees(Section& entry, const Mesh& mesh, LayerDegrees& degrees) {
  const std::int64_t all = devices_of(degrees_of(mesh));
  const Mistakes mistakes(entry.diagnostics());
  const auto tensor = entry.written_count("tensor"), data = entry.written_count("data");
  if (!mistakes.none()) return;
  if (!tensor && !data) {
    report(entry.diagnostics(), entry.node(),
           "gives no degree; expected \"tensor\" or \"data\", or no entry for these modules");
    return;
  }
  const int given = tensor ? *tensor : *data;
  if ((!tensor || !data) && all % given != 0) {
    report(entry.diagnostics(), entry.node().child(tensor ? "tensor" : "data"),
           "does not divide the " + std::to_string(all) +
               " devices of \"tensor\" x \"data\" of the run; expected a divisor, got " +
               std::to_string(given));
    return;
  }
  const int other = static_cast<int>(all / given);
  degrees.tensor = tensor.value_or(other);
  degrees.data = data.value_or(other);
}

/// Says why layers cannot have `degrees` beside those of the run; empty if they can.
std::string degrees_problem(const LayerDegrees& degrees, const ParallelKeys& keys) {
  const Mesh& mesh = keys.asked.mesh;
  const LayerDegrees own = degrees_of(mesh);
  const std::int64_t all = devices_of(own);
  if (devices_of(degrees) != all) {
    return text_of(degrees) + " are " + std::to_string(devices_of(degrees)) +
           " devices; expected as many as \"tensor\" x \"data\" of the run, " +
           std::to_string(all) + " (" + text_of(own) + ")";
  }
  return "";
}

/// Says why layers of `degrees` cannot have experts beside those of the run; empty if they can.
std::string experts_problem(const LayerDegrees& degrees, const ParallelKeys& keys) {
  const Mesh& mesh = keys.asked.mesh;
  const int replicas = degrees.data * mesh.degree(Dimension::Context);
  if (!keys.layers_expert_tensor && replicas % mesh.expert != 0) {
    return "experts are divided among the " + std::to_string(replicas) +
           " devices of equal weights of these layers (data x context), which " +
           std::to_string(mesh.expert) +
           " does not divide; expected \"expert_tensor\", which gives experts a mesh of their own";
  }
  const bool folds = keys.layers_expert_tensor && *keys.layers_expert_tensor != degrees.tensor &&
                     degrees.tensor > 1;
  if (folds && !keys.asked.sharding.sequence_parallel) {
    return "the " + std::to_string(degrees.tensor) +
           " tensor devices of these layers hold the same tokens, and cannot send parts of them to "
           "other holders of experts; expected \"sequence_parallel\": true";
  }
  return "";
}

/// Reports two tensor degrees neither of which divides the other.
void check_nested(const ParallelKeys& keys, Diagnostics& diagnostics) {
  std::vector<int> all = {keys.asked.mesh.degree(Dimension::Tensor)};
  for (const LayersKeys& layers : keys.layer_layouts) all.push_back(layers.degrees.tensor);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i] % all[i - 1] == 0) continue;
    report(diagnostics, *keys.layer_layouts_node,
           "has tensor degrees of " + std::to_string(all[i - 1]) + " and " +
               std::to_string(all[i]) +
               "; expected degrees of which each divides the next larger one, so that tensors go "
               "from one layout to the other within groups of neighbours");
    return;
  }
}

/// Reports modules that have two layouts.
void check_apart(const ParallelKeys& keys, Diagnostics& diagnostics) {
  const std::vector<LayersKeys>& all = keys.layer_layouts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int first = std::max(all[i].first, all[j].first);
      if (first >= std::min(all[i].end, all[j].end)) continue;
      report(diagnostics, keys.layer_layouts_node->item(i).child("modules"),
             "module " + std::to_string(first) +
                 " has a layout already; expected modules that no other entry has");
      return;
    }
  }
}

/// A part of a scenario that has no place beside layouts by layer, and why not.
struct Misfit {
  std::vector<std::string> path;
  std::string message;
};

std::optional<Misfit> misfit_of_training(const Question& question) {
  const Training& training = question.training();
  if (training.strategy.readout_every > 0) {
    return Misfit{{"training", "strategy"},
                  "hands a readout on to stages that would divide it otherwise; expected heads "
                  "that are not stale"};
  }
  if (training.strategy.kind == StrategyKind::Tree ||
      training.strategy.kind == StrategyKind::Independent) {
    return Misfit{{"training", "strategy"},
                  "has stages that do not read the output of the one before; expected stages in a "
                  "chain beside \"layer_layouts\""};
  }
  const SchedulePolicy& schedule = training.schedule;
  if (schedule.kind != nullptr && schedule.kind->stash != StashMode::Kept) {
    return Misfit{{"training", "schedule"},
                  in_quotes(schedule.kind->name) +
                      " makes stashes anew from the stage before; expected a schedule that keeps "
                      "them"};
  }
  if (training.balances_batch) {
    return Misfit{{"training", "micro_batch_size"},
                  "has micro-batches of several sizes; expected a number beside \"layer_layouts\""};
  }
  if (training.replica_batches.kind != ReplicaBatches::Kind::Equal) {
    return Misfit{{"training", "replica_micro_batches"},
                  "gives replicas steps of their own, and layers with less of \"data\" join "
                  "replicas; expected \"equal\" beside \"layer_layouts\""};
  }
  if (schedule.vocabulary != VocabularySplit::Whole) {
    return Misfit{{"training", "schedule", "vocabulary"},
                  "divides the tables of words among pipeline ranks by one layout; expected "
                  "\"whole\" beside \"layer_layouts\""};
  }
  return std::nullopt;
}

std::optional<Misfit> misfit_of(const Question& question) {
  if (const auto misfit = misfit_of_training(question)) return misfit;
  if (question.variation && question.variation->documents) {
    return Misfit{{"variation", "documents"},
                  "gives replicas samples of other lengths, and layers with less of \"data\" join "
                  "replicas; expected none beside \"layer_layouts\""};
  }
  if (question.run && question.run->on_failure == OnFailure::DropReplica) {
    return Misfit{{"run", "on_failure"},
                  "goes on without a replica, and layers with less of \"data\" join replicas; "
                  "expected \"restart\" or \"wait\" beside \"layer_layouts\""};
  }
  if (question.swarm) {
    return Misfit{{"swarm"}, "has peers of one device; expected none beside \"layer_layouts\""};
  }
  return std::nullopt;
}

/// A key of `parallel` that asks for one layout of all layers, unless it has the expected value.
struct OneLayout {
  const char* key;
  bool asked;
  std::string expected;
};

std::vector<OneLayout> one_layouts(const ParallelKeys& keys) {
  const Sharding& sharding = keys.asked.sharding;
  const Mesh& mesh = keys.asked.mesh;
  const bool in_grids = sharding.tensor_layout != TensorLayout::OneD;
  return {{"spatial", sharding.image_parts() > 1, "1"},
          {"split_brain", sharding.split_brain > 1, "1"},
          {"tensor_layout", in_grids, "\"1d\""},
          {"shard", mesh.shard != mesh.replicas() && keys.asked.data_parallel.zero_stage > 0,
           std::to_string(mesh.replicas()) + ", all replicas,"},
          {"outer", keys.asked.data_parallel.outer.every > 0, "none"},
          {"expert_overlap", sharding.expert_overlap != ExpertOverlap::None, "\"none\""}};
}

}  // namespace

void read_layer_layouts(Section& section, ParallelKeys& keys) {
  keys.layer_layouts_node = section.get("layer_layouts");
  if (!keys.layer_layouts_node || keys.stage_layouts_node) return;  // both: was reported
  const JsonNode& node = *keys.layer_layouts_node;
  Diagnostics& diagnostics = section.diagnostics();
  for (const OneLayout& one : one_layouts(keys)) {
    const auto other = section.get(one.key);
    if (!one.asked || !other) continue;
    report(diagnostics, *other,
           "goes with one layout of all layers of a stage; expected " + one.expected +
               " beside \"layer_layouts\"");
  }
  const Mistakes mistakes(diagnostics);
  const auto written = section.get("expert_tensor");
  if (written) keys.layers_expert_tensor = keys.asked.mesh.tensor_of_experts();
  for (const JsonNode& item :
       section.items_at("layer_layouts", node, "no list of layouts of layers",
                        "entries, e.g. [{\"modules\": [1, 9], \"tensor\": 8, \"data\": 1}]")) {
    const Mistakes before(diagnostics);
    Section entry(contract_object("parallel.layer_layouts"), item, diagnostics);
    LayersKeys layers;
    read_modules(entry, layers);
    read_layer_degrees(entry, keys.asked.mesh, layers.degrees);
    entry.finish();
    if (!before.none()) continue;
    const std::string problem = degrees_problem(layers.degrees, keys);
    if (!problem.empty()) report(diagnostics, item, problem);
    if (keys.layers_expert_tensor != layers.degrees.tensor) {
      layers.degrees.expert_tensor = keys.layers_expert_tensor;
    }
    keys.layer_layouts.push_back(layers);
  }
  if (!mistakes.none()) return;
  check_nested(keys, diagnostics);
  check_apart(keys, diagnostics);
}

void check_layer_layouts(const ParallelKeys& keys, const Question& question,
                         const JsonNode& document, Diagnostics& diagnostics) {
  if (!keys.layer_layouts_node) return;
  const JsonNode& node = *keys.layer_layouts_node;
  const Mesh& mesh = question.layout.mesh;
  std::vector<Dimension> order(mesh.order.begin(), mesh.order.end());
  std::erase_if(order, [&](Dimension one) {
    return one != Dimension::Tensor && one != Dimension::Data && mesh.degree(one) == 1;
  });
  const auto tensor = std::find(order.begin(), order.end(), Dimension::Tensor);
  const bool by_default = mesh.order == Mesh{}.order;
  if (tensor + 1 == order.end() || *(tensor + 1) != Dimension::Data) {
    report(diagnostics, node,
           "has layers join the samples of neighbours along \"data\", " +
               std::string(by_default ? "and by default \"context\" comes before it"
                                      : "which \"order\" keeps apart") +
               "; expected \"order\" with \"data\" right behind \"tensor\", e.g. [\"tensor\", "
               "\"data\", \"context\", "
               "\"pipeline\"]");
  }
  const auto misfit = misfit_of(question);
  if (!misfit) return;
  JsonNode place = document;
  for (const std::string& key : misfit->path) place = place.child(key);
  report(diagnostics, place, misfit->message);
}

namespace {

/// Returns why layers cannot be joined: what they share, or what all of them read; or "".
std::string joining_problem(const ModelGraph& graph, const std::vector<int>& of_module) {
  for (std::size_t m = 0; m < of_module.size(); ++m) {
    const Module& module = graph.modules[m];
    const auto with = static_cast<std::size_t>(module.tied_to);
    if (module.tied_parameters > 0 && of_module[with] != of_module[m]) {
      return "modules " + std::to_string(with) + " and " + std::to_string(m) +
             " share weights (tied embeddings); expected the same degrees for both";
    }
    if (module.carried > Bytes(0)) {
      return "all layers of this model read one tensor beside the output of the layer before; "
             "expected one layout of all layers";
    }
  }
  return "";
}

/// Returns whether each of `count` modules is in no entry of `entries`.
std::vector<bool> modules_without(const std::vector<const LayersKeys*>& entries, int count) {
  std::vector<bool> without(static_cast<std::size_t>(count), true);
  for (const LayersKeys* const layers : entries) {
    for (int module = layers->first; module < std::min(layers->end, count); ++module) {
      without[static_cast<std::size_t>(module)] = false;
    }
  }
  return without;
}

/// Builds the model as `degrees` divide it, in so far as `entries` name its modules. Returns why
/// that cannot be, or "".
std::string build_divided(const LayerDegrees& degrees,
                          const std::vector<const LayersKeys*>& entries, const JsonNode& model,
                          BuildOptions options, ModelGraph& graph) {
  options.left_out = modules_without(entries, static_cast<int>(graph.modules.size()));
  options.sharding.tensor = degrees.tensor;
  options.sharding.expert_tensor = degrees.expert_tensor;
  if (!degrees.has_experts) options.sharding.expert = 1;
  Diagnostics own;
  ModelGraph divided = build_model(model, options, own);
  if (own.empty()) {
    graph = std::move(divided);
    return "";
  }
  try {
    own.throw_if_any();
  } catch (const Error& error) {
    return text_of(degrees) + " do not divide these layers: " + error.mistakes().front().message;
  }
  return "";
}

/// Returns the model as `degrees` divide the layers that have them; reports why that cannot be, at
/// the first entry of which it is true.
std::optional<ModelGraph> build_divided(const LayerDegrees& degrees, const ParallelKeys& keys,
                                        const JsonNode& model, BuildOptions options,
                                        const Question& question, Diagnostics& diagnostics) {
  const JsonNode& node = *keys.layer_layouts_node;
  std::vector<const LayersKeys*> entries;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < keys.layer_layouts.size(); ++i) {
    if (keys.layer_layouts[i].degrees.tensor != degrees.tensor) continue;
    entries.push_back(&keys.layer_layouts[i]);
    numbers.push_back(i);
  }
  const int data = question.layout.mesh.degree(Dimension::Data);
  const int samples = options.micro_batch_size * data;
  if (samples % degrees.data != 0) {
    report(diagnostics, node.item(numbers.front()),
           "the micro-batches of all " + std::to_string(data) + " data devices of the run have " +
               std::to_string(samples) + " samples, which cannot be divided among " +
               std::to_string(degrees.data) + "; expected micro_batch_size x data such as " +
               std::to_string((samples + degrees.data - 1) / degrees.data * degrees.data));
    return std::nullopt;
  }
  options.micro_batch_size = samples / degrees.data;
  ModelGraph graph = question.training().graph;
  std::string problem = build_divided(degrees, entries, model, options, graph);
  if (problem.empty()) return graph;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::string own = build_divided(degrees, {entries[i]}, model, options, graph);
    if (own.empty() && i + 1 < entries.size()) continue;
    report(diagnostics, node.item(numbers[i]), own.empty() ? problem : own);
    break;
  }
  return std::nullopt;
}

/// Returns whether a module that `layers` names has experts.
bool names_experts(const LayersKeys& layers, const ModelGraph& graph) {
  for (int m = layers.first; m < layers.end; ++m) {
    if (graph.modules[m].expert_parameters > 0) return true;
  }
  return false;
}

}  // namespace

void build_layer_layouts(const ParallelKeys& keys, const JsonNode& model,
                         const BuildOptions& options, Question& question,
                         Diagnostics& diagnostics) {
  if (!keys.layer_layouts_node) return;
  const JsonNode& node = *keys.layer_layouts_node;
  ModelGraph& graph = question.training().graph;
  if (is_mixed(question.cluster)) {
    report(diagnostics, node, "goes with devices of one machine; expected a cluster of one");
    return;
  }
  const int count = static_cast<int>(graph.modules.size());
  std::vector<LayerDegrees> layouts = {degrees_of(question.layout.mesh)};
  std::vector<ModelGraph> graphs = {graph};
  std::vector<int> of_module(static_cast<std::size_t>(count), 0);
  for (std::size_t i = 0; i < keys.layer_layouts.size(); ++i) {
    LayersKeys layers = keys.layer_layouts[i];
    if (layers.end > count) {
      report(diagnostics, node.item(i).child("modules"),
             "names " + modules_text(layers.first, layers.end) + "; expected at most the " +
                 std::to_string(count) + " of the model, up to [" + std::to_string(layers.first) +
                 ", " + std::to_string(count) + "]");
      return;
    }
    if (const std::string problem = experts_problem(layers.degrees, keys); !problem.empty()) {
      if (names_experts(layers, graph)) {
        report(diagnostics, node.item(i), problem);
        return;
      }
      layers.degrees.has_experts = false;
      layers.degrees.expert_tensor = std::nullopt;
    }
    const auto known = std::find(layouts.begin(), layouts.end(), layers.degrees);
    const auto number = static_cast<int>(known - layouts.begin());
    if (known == layouts.end()) {
      auto own = build_divided(layers.degrees, keys, model, options, question, diagnostics);
      if (!own) return;
      layouts.push_back(layers.degrees);
      graphs.push_back(std::move(*own));
    }
    std::fill(of_module.begin() + layers.first, of_module.begin() + layers.end, number);
  }
  if (std::ranges::count(of_module, 0) == count) return;
  if (const std::string problem = joining_problem(graph, of_module); !problem.empty()) {
    report(diagnostics, node, problem);
    return;
  }
  graph = join_layers(graphs, of_module, layouts);
  question.layout.layer_layouts = std::move(layouts);
  question.layout.layout_of_module = std::move(of_module);
}

}  // namespace interlock
