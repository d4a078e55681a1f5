// ResNet: residual networks as modules: stem, each residual block, readout.
// SPDX-License-Identifier: Apache-2.0
//
// Groups of blocks double the width and halve the side. A bottleneck strides in its 3x3 kernel.
// Source: He et al., arXiv 1512.03385; the cut between residual blocks, with the stem and the
// readout as modules of their own, is that of Gomez et al., JMLR 23(171), 2022.
//
// Example: ResNet-50 is {bottleneck, blocks {3, 4, 6, 3}, imagenet stem, 224, 1000}: 18 modules
// (stem, group0.block0 ... group3.block2, readout) and 25,557,032 parameters.
#pragma once

#include <vector>

#include "models/layers/head.h"

namespace interlock {

struct ResNet {
  bool bottleneck = false;     // 1x1, 3x3, 1x1 to four times the width; else 3x3, 3x3
  std::vector<int> blocks;     // in each group
  bool imagenet_stem = false;  // 7x7 stride 2 and 3x3 pooling stride 2; else 3x3 stride 1
  int image_size = 32;         // pixels on a side, three channels
  int classes = 10;
  int base_width = 64;  // of the stem and the first group
  HeadSpec head;
};

const std::vector<ContractObject>& resnet_contract();
ResNet read_resnet(Section& reader);
/// Returns the windows of all layers on the long way, in turn.
std::vector<Window> windows_of(const ResNet& net);
ModelGraph build_resnet(const ResNet& shape, const BuildOptions& options);

}  // namespace interlock
