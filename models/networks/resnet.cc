// ResNet: reads residual networks and writes out their operators.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/resnet.h"

#include "models/layers/model_contract.h"

namespace interlock {
namespace {

/// Convolution and batch norm; `x` becomes their output.
void append(Images& x, const Kernel& kernel, std::vector<Operator>& operators) {
  operators.push_back(convolve(x, kernel));
  operators.push_back(normalisation(x.elements(), 2 * x.channels, x.element));
}

constexpr Window kStemPool = {.kernel = 3, .stride = 2, .padding = 1};

Kernel stem_kernel(const ResNet& net) {
  return {net.imagenet_stem ? 7 : 3, net.imagenet_stem ? 2 : 1, net.base_width};
}

Module stem(const ResNet& net, Images& x, const BuildOptions& options) {
  ModuleFrame frame = {.name = "stem", .input = x.size()};
  std::vector<Operator> operators;
  append(x, stem_kernel(net), operators);
  operators.front().reads_module_input = true;
  operators.push_back(relu(x.elements(), x.element));
  if (net.imagenet_stem) operators.push_back(pool(x, kStemPool));
  frame.output = x.size();
  return make_module(frame, operators, options);
}

/// Returns the convolutions on the long way through a block.
std::vector<Kernel> kernels_of(const ResNet& net, std::int64_t width, int stride) {
  if (net.bottleneck) return {{1, 1, width}, {3, stride, width}, {1, 1, 4 * width}};
  return {{3, stride, width}, {3, 1, width}};
}

int stride_of(std::size_t group, int block) { return group > 0 && block == 0 ? 2 : 1; }

/// A 1x1 convolution where the shortcut has to change shape. It reads what the first convolution
/// reads and saves already; with halos, if that has some.
void append_shortcut(Images x, const Kernel& kernel, const Kernel& first,
                     std::vector<Operator>& operators) {
  const std::size_t place = operators.size();
  append(x, kernel, operators);
  Operator& shortcut = operators[place];
  shortcut.stash = Bytes(0);
  shortcut.reads_module_input = true;
  if (first.size == 1) return;
  shortcut.forward_exchanges.clear();
  shortcut.input_exchanges.clear();
}

Module residual_block(Images& x, const std::vector<Kernel>& kernels, const BuildOptions& options) {
  const Images input = x;
  ModuleFrame frame = {.input = input.size()};
  std::vector<Operator> operators;
  int stride = 1;
  for (const Kernel& kernel : kernels) {
    if (!operators.empty()) operators.push_back(relu(x.elements(), x.element));
    append(x, kernel, operators);
    stride *= kernel.stride;
  }
  operators.front().reads_module_input = true;
  const std::size_t branch_end = operators.size();
  wait_beside(operators, 0, branch_end - 1, x.size());
  if (x.channels != input.channels || stride != 1) {
    append_shortcut(input, {1, stride, x.channels}, kernels.front(), operators);
    // The branch goes back first; the gradient of the sum stays, beside that of the input.
    wait_beside(operators, branch_end, operators.size(), input.size());
    wait_beside(operators, branch_end, operators.size() - 1, x.size());
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
          .rows = x.rows,
          .columns = x.columns,
          .width = x.channels,
          .classes = net.classes};
}

Module readout_module(const ResNet& net, const Images& x, const BuildOptions& options) {
  std::vector<Operator> operators = readout(site_of(net, x), true, x.element);
  operators.front().reads_module_input = true;
  return make_module({.name = "readout", .input = x.size(), .recomputable = false}, operators,
                     options);
}

void read_blocks(Section& reader, ResNet& net) {
  const auto node = reader.require("blocks", "a list of blocks in each group, e.g. [3, 4, 6, 3]");
  if (!node) return;
  for (const JsonNode& group : reader.items_at("blocks", *node, "wrong list of groups",
                                               "numbers of blocks, e.g. [3, 4, 6, 3]")) {
    net.blocks.push_back(reader.count_at("blocks", group).value_or(1));
  }
}

}  // namespace

const std::vector<ContractObject>& resnet_contract() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {model_object(
      "resnet", "A residual network of convolutions. Modules: stem, each residual block, readout.",
      {{"block", one_of({"basic", "bottleneck"}), "required",
        "`basic`: 3x3, 3x3. `bottleneck`: 1x1, 3x3, 1x1 to four times the width."},
       {"blocks", list(whole(1, 10'000), 1, 8), "required",
        "Residual blocks of each group; each group halves the side and doubles the width."},
       {"stem", one_of({"cifar", "imagenet"}), "cifar",
        "`cifar`: 3x3 stride 1. `imagenet`: 7x7 stride 2, and 3x3 pooling stride 2."},
       {"image_size", whole(1, 65'536), "224 with the imagenet stem, else 32", "Pixels on a side."},
       {"classes", whole(1, 1e8), "1000 with the imagenet stem, else 10", "Classes."},
       {"base_width", whole(1, 4096), "64", "Channels of the stem."},
       head_key("convolution")})};
  return objects;
}

ResNet read_resnet(Section& reader) {
  ResNet net;
  if (reader.require("block", "\"basic\" or \"bottleneck\"")) {
    net.bottleneck = reader.choice("block", 0) == 1;
  }
  read_blocks(reader, net);
  net.imagenet_stem = reader.choice("stem") == 1;
  net.image_size = reader.count("image_size", net.imagenet_stem ? 224 : 32);
  net.classes = reader.count("classes", net.imagenet_stem ? 1000 : 10);
  net.base_width = reader.count("base_width");
  if (const auto head = reader.get("head")) {
    net.head = read_head(*head, SiteKind::Image, reader.diagnostics());
  }
  return net;
}

std::vector<Window> windows_of(const ResNet& net) {
  std::vector<Window> windows = {window_of(stem_kernel(net))};
  if (net.imagenet_stem) windows.push_back(kStemPool);
  for (std::size_t group = 0; group < net.blocks.size(); ++group) {
    for (int block = 0; block < net.blocks[group]; ++block) {
      for (const Kernel& kernel : kernels_of(net, net.base_width, stride_of(group, block))) {
        windows.push_back(window_of(kernel));
      }
    }
  }
  return windows;
}

ModelGraph build_resnet(const ResNet& shape, const BuildOptions& options) {
  HeadSpec head = shape.head;
  if (!head.kind) head.kind = HeadKind::Convolution;
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size};
  Images x = input_images(shape.image_size, options);
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
      Module module = residual_block(x, kernels_of(shape, width, stride_of(group, block)),
                                     options_of_layer(options, graph.modules.size()));
      module.name = "group" + std::to_string(group) + ".block" + std::to_string(block);
      add(std::move(module));
    }
  }
  graph.modules.push_back(readout_module(shape, x, options));
  if (head.kind == HeadKind::LaterLayers) attach_later_layers(head, options, graph.modules.edit());
  return graph;
}

}  // namespace interlock
