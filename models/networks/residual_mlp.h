// ResidualMlp: fully connected residual networks as modules: input, residual blocks, readout.
// SPDX-License-Identifier: Apache-2.0
//
// A block is a transformer's without its attention: layer norm, linear, GELU, linear, and what went
// in added. The last module is layer norm, linear and loss. A small model whose every gradient can
// be worked out, for harnesses that train.
//
// A reversible block is a RevNet's (Gomez et al., arXiv 1707.04585): two such branches F and G over
// halves x1, x2 of the width,
//   y1 = x1 + F(x2), y2 = x2 + G(y1);   backwards x2 = y2 - G(y1), x1 = y1 - F(x2).
// Each of the two sums is a kernel that writes a tensor of the whole width: it adds one half to
// what the branch made, and copies the other.
//
// Example: input_size 5, two layers, hidden_size 6, ffn_hidden_size 7, three classes. The modules
// have 36, 109, 109 and 33 parameters: 5 x 6 + 6; 2 x 6 + (6 x 7 + 7) + (7 x 6 + 6), twice; 2 x 6 +
// (6 x 3 + 3).
#pragma once

#include "models/layers/head.h"

namespace interlock {

struct ResidualMlp {
  int input_size = 1;
  int layers = 1;  // blocks
  int hidden_size = 1;
  int ffn_hidden_size = 4;
  int classes = 1;
  bool reversible = false;  // blocks
  HeadSpec head;
};

const std::vector<ContractObject>& residual_mlp_contract();
ResidualMlp read_residual_mlp(Section& reader);
ModelGraph build_residual_mlp(const ResidualMlp& shape, const BuildOptions& options);

}  // namespace interlock
