// VGG: plain convolutional networks as modules: each convolution, each fully connected layer.
// SPDX-License-Identifier: Apache-2.0
//
// Five groups of 3x3 convolutions with biases, a pooling after each, then three fully connected
// layers. Source: Simonyan and Zisserman, arXiv 1409.1556, table 1 (columns A, B, D, E).
//
// SplitBrain (arXiv 2112.15317, of which the abstract was read) replicates the convolutions and
// divides fully connected layers among the k devices of a group, by neurons. In each of k rounds a
// group works on b samples, b / k of each device: layers gather their inputs (all-gather of b
// samples), the backward pass is the adjoint (reduce-scatter), and the outputs of the last layer
// go back to the devices whose samples they are (all-to-all). A device so computes as much as
// without a group, and receives k - 1 times its own batch at each gather. Rounds go forward and
// back one by one, so that a device keeps the inputs of one round. A last layer whose classes k
// does not divide is whole on each device.
//
// Example: VGG-16 has 16 modules, conv0.0 to conv4.2, fc0, fc1 and the readout, and 138,357,544
// parameters.
#pragma once

#include <vector>

#include "models/layers/head.h"

namespace interlock {

struct Vgg {
  int layers = 16;
  int image_size = 224;  // pixels on a side, three channels; a multiple of 32
  int classes = 1000;
  int hidden_size = 4096;  // of the fully connected layers
  HeadSpec head;
};

const std::vector<ContractObject>& vgg_contract();
Vgg read_vgg(Section& reader);
/// Returns the windows of all layers that read images, in turn.
std::vector<Window> windows_of(const Vgg& shape);
ModelGraph build_vgg(const Vgg& shape, const BuildOptions& options);

}  // namespace interlock
