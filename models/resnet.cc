// ResNet: reads residual networks and writes out their operators.
// SPDX-License-Identifier: Apache-2.0
#include "models/resnet.h"

#include "models/required_count.h"

namespace interlock {
namespace {

/// The images between two operators.
struct Images {
  double count = 1;
  int side = 1;
  std::int64_t channels = 3;
  double element = 2;  // bytes

  double elements() const { return count * side * side * static_cast<double>(channels); }
  Bytes size() const { return Bytes(elements() * element); }
};

/// What one convolution of a block does to its images.
struct Kernel {
  int size;
  int stride;
  std::int64_t channels;
};

/// Convolution and batch norm; `x` becomes their output.
void convolve(Images& x, const Kernel& kernel, std::vector<Operator>& operators) {
  operators.push_back(convolution({.images = x.count,
                                   .side = x.side,
                                   .inputs = x.channels,
                                   .outputs = kernel.channels,
                                   .kernel = kernel.size,
                                   .stride = kernel.stride},
                                  x.element));
  x.side = side_after(x.side, kernel.stride);
  x.channels = kernel.channels;
  operators.push_back(normalisation(x.elements(), 2 * x.channels, x.element));
}

Module stem(const ResNet& net, Images& x, const BuildOptions& options) {
  ModuleFrame frame = {.name = "stem", .input = x.size()};
  std::vector<Operator> operators;
  const Kernel kernel = {net.imagenet_stem ? 7 : 3, net.imagenet_stem ? 2 : 1, net.base_width};
  convolve(x, kernel, operators);
  operators.front().reads_module_input = true;
  operators.push_back(relu(x.elements(), x.element));
  if (net.imagenet_stem) {
    const double inputs = x.elements();
    x.side = side_after(x.side, 2);
    operators.push_back(max_pool(inputs, x.elements(), x.element));
  }
  frame.output = x.size();
  return make_module(frame, operators, options);
}

/// The convolutions on the long way through a block.
std::vector<Kernel> kernels_of(const ResNet& net, std::int64_t width, int stride) {
  if (net.bottleneck) return {{1, 1, width}, {3, stride, width}, {1, 1, 4 * width}};
  return {{3, stride, width}, {3, 1, width}};
}

/// A 1x1 convolution where the shortcut has to change shape. It reads what the first convolution
/// reads and saves already.
void append_shortcut(Images x, const Kernel& kernel, std::vector<Operator>& operators) {
  const std::size_t first = operators.size();
  convolve(x, kernel, operators);
  operators[first].stash = Bytes(0);
  operators[first].reads_module_input = true;
}

Module residual_block(Images& x, const std::vector<Kernel>& kernels, const BuildOptions& options) {
  const Images input = x;
  ModuleFrame frame = {.input = input.size()};
  std::vector<Operator> operators;
  int stride = 1;
  for (const Kernel& kernel : kernels) {
    if (!operators.empty()) operators.push_back(relu(x.elements(), x.element));
    convolve(x, kernel, operators);
    stride *= kernel.stride;
  }
  operators.front().reads_module_input = true;
  if (x.channels != input.channels || stride != 1) {
    append_shortcut(input, {1, stride, x.channels}, operators);
  }
  operators.push_back(elementwise({.forward = 3 * x.elements(),
                                   .backward = 3 * input.elements(),
                                   .gradients = 3 * input.elements()},
                                  x.element));
  operators.back().reads_module_input = true;
  operators.push_back(relu(x.elements(), x.element));
  frame.output = x.size();
  return make_module(frame, operators, options);
}

HeadSite site_of(const ResNet& net, const Images& x) {
  return {.kind = SiteKind::Image,
          .samples = x.count,
          .side = x.side,
          .width = x.channels,
          .classes = net.classes};
}

Module readout_module(const ResNet& net, const Images& x, const BuildOptions& options) {
  std::vector<Operator> operators = readout(site_of(net, x), true, x.element);
  operators.front().reads_module_input = true;
  return make_module({.name = "readout", .input = x.size(), .recomputable = false}, operators,
                     options);
}

void read_blocks(ObjectReader& reader, ResNet& net) {
  constexpr std::size_t kMostGroups = 8;
  const auto node = reader.require("blocks", "a list of blocks in each group, [3, 4, 6, 3] say");
  if (!node) return;
  const JsonValue& list = *node->value;
  if (list.kind != JsonValue::Kind::Array || list.items.empty() ||
      list.items.size() > kMostGroups) {
    report(reader.diagnostics(), *node,
           "wrong list of groups; expected 1 to 8 numbers of blocks, [3, 4, 6, 3] say");
    return;
  }
  for (std::size_t group = 0; group < list.items.size(); ++group) {
    net.blocks.push_back(
        read_count(node->item(group), 1, 10'000, reader.diagnostics()).value_or(1));
  }
}

}  // namespace

ResNet read_resnet(ObjectReader& reader) {
  ResNet net;
  if (const auto block = reader.require("block", "\"basic\" or \"bottleneck\"")) {
    net.bottleneck = read_choice(*block, {"basic", "bottleneck"}, reader.diagnostics()) == 1;
  }
  read_blocks(reader, net);
  net.imagenet_stem = reader.choice("stem", {"cifar", "imagenet"}, 0) == 1;
  net.image_size = reader.count("image_size", net.imagenet_stem ? 224 : 32, 1, 65'536);
  net.classes = reader.count("classes", net.imagenet_stem ? 1000 : 10, 1, 100'000'000);
  net.base_width = reader.count("base_width", 64, 1, 4096);
  if (const auto head = reader.get("head")) {
    net.head = read_head(*head, SiteKind::Image, reader.diagnostics());
  }
  return net;
}

ModelGraph build_resnet(const ResNet& shape, const BuildOptions& options) {
  HeadSpec head = shape.head;
  if (!head.kind) head.kind = HeadKind::Convolution;
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size};
  Images x = {.count = static_cast<double>(options.micro_batch_size),
              .side = shape.image_size,
              .element = element_bytes(options.precision)};
  const auto add = [&](Module module) {
    if (head.kind != HeadKind::LaterLayers) {
      module.head = make_head(head, site_of(shape, x), options);
    }
    graph.modules.push_back(std::move(module));
  };
  add(stem(shape, x, options_of_layer(options, 0)));
  std::int64_t width = shape.base_width;
  for (std::size_t group = 0; group < shape.blocks.size(); ++group, width *= 2) {
    for (int block = 0; block < shape.blocks[group]; ++block) {
      const int stride = group > 0 && block == 0 ? 2 : 1;
      Module module = residual_block(x, kernels_of(shape, width, stride),
                                     options_of_layer(options, graph.modules.size()));
      module.name = "group" + std::to_string(group) + ".block" + std::to_string(block);
      add(std::move(module));
    }
  }
  graph.modules.push_back(readout_module(shape, x, options));
  if (head.kind == HeadKind::LaterLayers) attach_later_layers(head, options, graph.modules);
  return graph;
}

}  // namespace interlock
