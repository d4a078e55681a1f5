// VGG: reads plain convolutional networks and writes out their operators.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/vgg.h"

#include <algorithm>
#include <array>

#include "models/layers/model_contract.h"

namespace interlock {
namespace {

constexpr int kGroups = 5;
constexpr int kShrinkage = 32;  // of the side, by five poolings
constexpr std::int64_t kLastWidth = 512;
const std::vector<int> kLayers = {11, 13, 16, 19};

/// Convolutions of each group.
std::array<int, kGroups> convolutions_of(int layers) {
  if (layers == 11) return {1, 1, 2, 2, 2};
  if (layers == 13) return {2, 2, 2, 2, 2};
  if (layers == 16) return {2, 2, 3, 3, 3};
  return {2, 2, 4, 4, 4};
}

constexpr Window kPool = {.kernel = 2, .stride = 2};

/// Returns a convolution with its ReLU, and the pooling behind it; `x` becomes their output.
Module convolution_module(Images& x, std::int64_t channels, bool pools,
                          const BuildOptions& options) {
  ModuleFrame frame = {.input = x.size()};
  std::vector<Operator> operators = {convolve(x, {.channels = channels, .bias = true})};
  operators.front().reads_module_input = true;
  operators.push_back(relu(x.elements(), x.element));
  if (pools) operators.push_back(pool(x, kPool));
  frame.output = x.size();
  return make_module(frame, operators, options);
}

void repeat(Work& work, int rounds) {
  work.flops = work.flops * rounds;
  work.bytes = work.bytes * rounds;
  work.launches *= rounds;
}

/// Returns an operator of a divided layer: what it does in a round, in all of them.
Operator in_rounds(Operator op, int rounds) {
  for (Work* work : {&op.forward, &op.input_gradient, &op.weight_gradient}) repeat(*work, rounds);
  op.expert = rounds > 1;
  return op;
}

Exchange among_group(CollectiveKind kind, double elements, double element, int rounds) {
  return {
      .kind = kind, .axis = MeshAxis::Expert, .bytes = Bytes(elements * element), .count = rounds};
}

/// A fully connected layer, in `rounds` rounds if it is divided among as many devices.
struct Dense {
  double samples = 1;
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  int rounds = 1;
  std::vector<Exchange> turns = {};  // parts of images to samples, before it
};

Operator dense(const Dense& layer, double element) {
  const int k = layer.rounds;
  Operator op = in_rounds(linear({layer.samples, layer.inputs, layer.outputs / k}, element), k);
  const double read = layer.samples * static_cast<double>(layer.inputs);
  op.forward_exchanges = op.input_exchanges = layer.turns;
  if (k == 1) return op;
  op.forward_exchanges = {among_group(CollectiveKind::AllGather, read, element, k)};
  op.input_exchanges = {among_group(CollectiveKind::ReduceScatter, read, element, k)};
  return op;
}

Module hidden_module(const Dense& layer, const BuildOptions& options) {
  const double element = element_bytes(options.precision);
  const double made =
      layer.samples * static_cast<double>(layer.outputs) / layer.rounds;  // in a round
  std::vector<Operator> operators = {dense(layer, element),
                                     in_rounds(relu(made, element), layer.rounds),
                                     in_rounds(dropout(made, element), layer.rounds)};
  operators.front().reads_module_input = true;
  const Bytes read(layer.samples * static_cast<double>(layer.inputs) * element);
  return make_module({.input = layer.turns.empty() ? read : layer.turns.front().bytes,
                      .output = Bytes(made * layer.rounds * element)},
                     operators, options);
}

/// The way between neurons of all samples and all neurons of a device's own.
void turn_round(std::vector<Exchange>& exchanges, double elements, double element, int rounds) {
  exchanges.push_back(among_group(CollectiveKind::AllToAll, elements / rounds, element, rounds));
}

Module readout_module(Dense layer, const BuildOptions& options) {
  const double element = element_bytes(options.precision);
  const int k = layer.rounds;
  const bool divided = layer.outputs % k == 0;
  layer.rounds = divided ? k : 1;
  std::vector<Operator> operators = {dense(layer, element)};
  Operator& last = operators.front();
  last.reads_module_input = true;
  if (k > 1) {
    const double turned =
        layer.samples * static_cast<double>(divided ? layer.outputs : layer.inputs);
    turn_round(last.forward_exchanges, turned, element, k);
    turn_round(last.input_exchanges, turned, element, k);
  }
  operators.push_back(cross_entropy(layer.samples, layer.outputs, element));
  const double read = layer.samples * static_cast<double>(layer.inputs);
  return make_module({.name = "fc2", .input = Bytes(read * element), .recomputable = false},
                     operators, options);
}

}  // namespace

const std::vector<ContractObject>& vgg_contract() {
  using namespace contract;
  ContractType side = whole(kShrinkage, 65'536);
  side.multiple = kShrinkage;
  static const std::vector<ContractObject> objects = {model_object(
      "vgg",
      "A VGG network. Modules: each 3x3 convolution, with the pooling behind it, then three fully "
      "connected layers.",
      {{"layers", one_of_numbers(kLayers), "required", "Layers with weights."},
       {"image_size", side, "224", "Pixels on a side, a multiple of 32."},
       {"classes", whole(1, 1e8), "1000", "Classes."},
       {"hidden_size", whole(1, 1e6), "4096", "Width of the fully connected layers."},
       head_key("linear")})};
  return objects;
}

Vgg read_vgg(Section& reader) {
  Vgg vgg;
  if (const auto layers = reader.require("layers", "11, 13, 16 or 19")) {
    vgg.layers = read_count(*layers, kLayers.front(), kLayers.back(), reader.diagnostics())
                     .value_or(kLayers.front());
    if (std::find(kLayers.begin(), kLayers.end(), vgg.layers) == kLayers.end()) {
      report(reader.diagnostics(), *layers,
             "no VGG has this number of layers; expected 11, 13, 16 or 19, got " +
                 std::to_string(vgg.layers));
    }
  }
  vgg.image_size = reader.count("image_size");
  if (vgg.image_size % kShrinkage != 0) {
    report(reader.diagnostics(), reader.get("image_size").value_or(reader.node()),
           "five poolings halve the side; expected a multiple of 32, got " +
               std::to_string(vgg.image_size));
  }
  vgg.classes = reader.count("classes");
  vgg.hidden_size = reader.count("hidden_size");
  if (const auto head = reader.get("head")) {
    vgg.head = read_head(*head, SiteKind::Image, reader.diagnostics());
  }
  return vgg;
}

std::vector<Window> windows_of(const Vgg& shape) {
  std::vector<Window> windows;
  for (const int convolutions : convolutions_of(shape.layers)) {
    windows.insert(windows.end(), convolutions, window_of(Kernel()));
    windows.push_back(kPool);
  }
  return windows;
}

ModelGraph build_vgg(const Vgg& shape, const BuildOptions& options) {
  HeadSpec head = shape.head;
  if (!head.kind) head.kind = HeadKind::Linear;
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size};
  HeadSite site = {.kind = SiteKind::Image, .classes = shape.classes};
  const auto add = [&](Module module, const std::string& name) {
    module.name = name;
    // Behind a vector no head of an image's kind is possible.
    HeadSpec own = head;
    const bool vector = site.kind == SiteKind::Vector;
    if (vector && own.kind == HeadKind::Convolution) own.kind = HeadKind::Linear;
    if (own.kind != HeadKind::LaterLayers) module.head = make_head(own, site, options);
    graph.modules.push_back(std::move(module));
  };
  const auto layer_options = [&] { return options_of_layer(options, graph.modules.size()); };
  Images x = input_images(shape.image_size, options);
  std::int64_t width = 64;
  const auto convolutions = convolutions_of(shape.layers);
  for (int group = 0; group < kGroups; ++group, width = std::min(2 * width, kLastWidth)) {
    for (int i = 0; i < convolutions[group]; ++i) {
      const bool pools = i + 1 == convolutions[group];
      Module module = convolution_module(x, width, pools, layer_options());
      site.samples = x.count;
      site.rows = x.rows;
      site.columns = x.columns;
      site.width = x.channels;
      add(std::move(module), "conv" + std::to_string(group) + "." + std::to_string(i));
    }
  }
  const int rounds = options.sharding.split_brain;
  const std::int64_t features = kLastWidth * x.rows.length * x.columns.length;
  const double samples = x.samples_behind();
  site.kind = SiteKind::Vector;
  site.samples = samples;
  site.width = shape.hidden_size;
  add(hidden_module({samples, features, shape.hidden_size, rounds, turn_to_samples(x)},
                    layer_options()),
      "fc0");
  add(hidden_module({samples, shape.hidden_size, shape.hidden_size, rounds}, layer_options()),
      "fc1");
  graph.modules.push_back(
      readout_module({samples, shape.hidden_size, shape.classes, rounds}, options));
  if (head.kind == HeadKind::LaterLayers) attach_later_layers(head, options, graph.modules.edit());
  return graph;
}

}  // namespace interlock
