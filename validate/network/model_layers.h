// The layers of each executable kind of model; build_network (network.h) puts them together.
// SPDX-License-Identifier: Apache-2.0
//
// Each reads the rest of a model object and fills in what its kind decides, modules included. A
// diagnostic is added for what is not executable; the network then means nothing.
#pragma once

#include <optional>

#include "models/layers/head.h"
#include "validate/network/network.h"

namespace interlock {

void build_transformer_network(Section& reader, const BuildOptions& options,
                               NeuralNetwork& network);
void build_resnet_network(Section& reader, const BuildOptions& options, NeuralNetwork& network);
void build_mlp_network(Section& reader, const BuildOptions& options, NeuralNetwork& network);
void build_residual_mlp_network(Section& reader, const BuildOptions& options,
                                NeuralNetwork& network);

/// The values that a head, or the readout of a network, reads.
struct ReadoutSite {
  SiteKind kind = SiteKind::Vector;
  int width = 1;   // features of a row
  int pixels = 1;  // on a side; Image
  int classes = 1;
};

/// Returns the strategy's head if there is one, else the model's, else one of kind `otherwise`. A
/// diagnostic is added for one that cannot be executed.
HeadSpec executable_head(Section& reader, const BuildOptions& options, const HeadSpec& own,
                         ReadoutSite site, HeadKind otherwise);
/// Returns the layers from the site's tensor to the loss, with the mean over an image before.
std::vector<Layer> readout_layers(const ReadoutSite& site, bool bias);
std::vector<Layer> head_layers(const HeadSpec& spec, const ReadoutSite& site);

Layer linear_layer(const std::string& name, int inputs, int outputs, bool bias = true);
/// Returns a layer of a kind whose rows keep their width.
Layer rowwise_layer(LayerKind kind, const std::string& name, int width);
/// Square images of `pixels` on a side; the kernel is padded so that stride 1 keeps the size.
struct ConvolutionShape {
  int pixels = 1, inputs = 1, outputs = 1, kernel = 3, stride = 1;
  bool bias = false;
};
Layer convolution_layer(const std::string& name, const ConvolutionShape& shape);

}  // namespace interlock
