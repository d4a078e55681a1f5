// MLP: fully connected networks as modules: each hidden layer, then the readout.
// SPDX-License-Identifier: Apache-2.0
//
// Example: input_size 784, hidden_sizes {1024, 1024} and 10 classes are three modules: layer0,
// layer1 and readout, with 803,840, 1,049,600 and 10,250 parameters.
#pragma once

#include <vector>

#include "models/layers/head.h"

namespace interlock {

struct Mlp {
  int input_size = 1;
  std::vector<int> hidden_sizes;  // linear and ReLU each
  int classes = 1;
  HeadSpec head;
};

const std::vector<ContractObject>& mlp_contract();
Mlp read_mlp(Section& reader);
ModelGraph build_mlp(const Mlp& shape, const BuildOptions& options);

}  // namespace interlock
