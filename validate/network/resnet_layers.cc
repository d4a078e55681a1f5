// Executable layers of residual networks of basic blocks.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/resnet.h"
#include "validate/network/model_layers.h"

namespace interlock {
namespace {

/// The images between the layers of a ResNet.
struct ImageSize {
  int pixels = 1, channels = 3;
};

void refuse_unexecutable(Section& reader, const ResNet& net) {
  if (net.bottleneck) {
    report(reader.diagnostics(), *reader.get("block"),
           "bottleneck blocks are not executable; expected \"block\": \"basic\"");
  }
  if (net.imagenet_stem) {
    report(reader.diagnostics(), *reader.get("stem"),
           "a stem with pooling is not executable; expected \"stem\": \"cifar\"");
  }
}

/// Returns convolution and batch norm; `image` becomes their output.
std::vector<Layer> normed_convolution(const std::string& name, ImageSize& image,
                                      ConvolutionShape shape) {
  shape.pixels = image.pixels;
  shape.inputs = image.channels;
  image = {(image.pixels + shape.stride - 1) / shape.stride, shape.outputs};
  return {convolution_layer(name, shape),
          rowwise_layer(LayerKind::BatchNorm, name + ".norm", shape.outputs)};
}

std::vector<Layer> basic_block(ImageSize& image, int width, int stride) {
  const ImageSize input = image;
  Layer block = {
      .kind = LayerKind::Residual, .name = "block", .inputs = input.channels, .outputs = width};
  block.branch = normed_convolution("first", image, {.outputs = width, .stride = stride});
  block.branch.push_back(rowwise_layer(LayerKind::Relu, "first.relu", width));
  for (const Layer& layer : normed_convolution("second", image, {.outputs = width})) {
    block.branch.push_back(layer);
  }
  if (input.channels != width || stride != 1) {
    ImageSize way = input;
    block.shortcut =
        normed_convolution("shortcut", way, {.outputs = width, .kernel = 1, .stride = stride});
  }
  return {block, rowwise_layer(LayerKind::Relu, "relu", width)};
}

}  // namespace

void build_resnet_network(Section& reader, const BuildOptions& options, NeuralNetwork& network) {
  const ResNet net = read_resnet(reader);
  ReadoutSite site = {.kind = SiteKind::Image, .classes = net.classes};
  const HeadSpec head = executable_head(reader, options, net.head, site, HeadKind::Convolution);
  refuse_unexecutable(reader, net);
  reader.finish();
  if (!reader.diagnostics().empty()) return;
  network.samples = SampleKind::Images;
  network.rows_per_sample = net.image_size * net.image_size;
  network.features = 3;
  network.classes = net.classes;
  ImageSize image = {net.image_size, 3};
  const auto add = [&](const std::string& name, const std::vector<Layer>& layers) {
    site.width = image.channels;
    site.pixels = image.pixels;
    network.modules.push_back({name, layers, head_layers(head, site)});
  };
  std::vector<Layer> stem = normed_convolution("first", image, {.outputs = net.base_width});
  stem.push_back(rowwise_layer(LayerKind::Relu, "relu", net.base_width));
  add("stem", stem);
  int width = net.base_width;
  for (std::size_t group = 0; group < net.blocks.size(); ++group, width *= 2) {
    for (int block = 0; block < net.blocks[group]; ++block) {
      const int stride = group > 0 && block == 0 ? 2 : 1;
      add("group" + std::to_string(group) + ".block" + std::to_string(block),
          basic_block(image, width, stride));
    }
  }
  network.modules.push_back({"readout", readout_layers(site, true), {}});
}

}  // namespace interlock
