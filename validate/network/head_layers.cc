// Layers that several kinds of models have, and heads.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "validate/network/model_layers.h"

namespace interlock {
namespace {

std::vector<Layer> convolution_head(const ReadoutSite& site) {
  std::vector<Layer> layers;
  ReadoutSite last = site;
  int number = 0;
  for (const int outputs : {128, 64}) {  // of Gomez et al., see models/layers/head.h
    const std::string name = "convolution" + std::to_string(number++);
    layers.push_back(convolution_layer(name, {.pixels = site.pixels,
                                              .inputs = last.width,
                                              .outputs = outputs,
                                              .kernel = 3,
                                              .bias = true}));
    layers.push_back(rowwise_layer(LayerKind::BatchNorm, name + ".norm", outputs));
    layers.push_back(rowwise_layer(LayerKind::Relu, name + ".relu", outputs));
    last.width = outputs;
  }
  for (const Layer& layer : readout_layers(last, true)) layers.push_back(layer);
  return layers;
}

Layer average_layer(const ReadoutSite& site) {
  Layer layer = rowwise_layer(LayerKind::AveragePool, "average", site.width);
  layer.rows = layer.columns = site.pixels;
  return layer;
}

std::vector<Layer> mlp_head(const HeadSpec& spec, const ReadoutSite& site) {
  std::vector<Layer> layers;
  if (site.kind == SiteKind::Image) layers.push_back(average_layer(site));
  const int hidden = spec.hidden_size.value_or(site.width);
  layers.push_back(linear_layer("hidden", site.width, hidden));
  layers.push_back(rowwise_layer(LayerKind::Relu, "relu", hidden));
  const ReadoutSite last = {.width = hidden, .classes = site.classes};
  for (const Layer& layer : readout_layers(last, true)) layers.push_back(layer);
  return layers;
}

}  // namespace

Layer linear_layer(const std::string& name, int inputs, int outputs, bool bias) {
  return {
      .kind = LayerKind::Linear, .name = name, .inputs = inputs, .outputs = outputs, .bias = bias};
}

Layer rowwise_layer(LayerKind kind, const std::string& name, int width) {
  return {.kind = kind, .name = name, .inputs = width, .outputs = width};
}

Layer convolution_layer(const std::string& name, const ConvolutionShape& shape) {
  return {.kind = LayerKind::Convolution,
          .name = name,
          .inputs = shape.inputs,
          .outputs = shape.outputs,
          .bias = shape.bias,
          .kernel = shape.kernel,
          .stride = shape.stride,
          .rows = shape.pixels,
          .columns = shape.pixels};
}

HeadSpec executable_head(Section& reader, const BuildOptions& options, const HeadSpec& own,
                         ReadoutSite site, HeadKind otherwise) {
  HeadSpec spec = own;
  JsonNode place = reader.node();
  if (const auto head = reader.get("head")) place = *head;
  if (options.head) {
    place = *options.head;
    spec = read_head(place, site.kind, reader.diagnostics());
  }
  if (!spec.kind) spec.kind = otherwise;
  if (spec.kind == HeadKind::LaterLayers) {
    report(reader.diagnostics(), place,
           "heads of later layers are not executable; expected \"linear\", \"mlp\", \"lm\" or "
           "\"convolution\"");
  }
  if (!spec.trainable) {
    report(reader.diagnostics(), place,
           "heads with weights of others are not executable; expected \"weights\": \"private\"");
  }
  return spec;
}

std::vector<Layer> readout_layers(const ReadoutSite& site, bool bias) {
  std::vector<Layer> layers;
  if (site.kind == SiteKind::Image) layers.push_back(average_layer(site));
  layers.push_back(linear_layer("projection", site.width, site.classes, bias));
  layers.push_back(rowwise_layer(LayerKind::CrossEntropy, "loss", site.classes));
  return layers;
}

std::vector<Layer> head_layers(const HeadSpec& spec, const ReadoutSite& site) {
  switch (*spec.kind) {
    case HeadKind::Convolution:
      return convolution_head(site);
    case HeadKind::Linear:
      return readout_layers(site, true);
    case HeadKind::Mlp:
      return mlp_head(spec, site);
    case HeadKind::Lm: {
      std::vector<Layer> layers = {rowwise_layer(LayerKind::LayerNorm, "norm", site.width)};
      for (const Layer& layer : readout_layers(site, false)) layers.push_back(layer);
      return layers;
    }
    case HeadKind::LaterLayers:
      break;
  }
  CHECK(false, "a head that is not executable was refused");
}

}  // namespace interlock
