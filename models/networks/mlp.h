// MLP: fully connected networks as modules: each hidden layer, then the readout.
// SPDX-License-Identifier: Apache-2.0
//
// {"kind": "mlp", "input_size", "hidden_sizes": [4096, 4096] or "layers" and "hidden_size",
//  "classes", "head"}
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

Mlp read_mlp(ObjectReader& reader);
ModelGraph build_mlp(const Mlp& shape, const BuildOptions& options);

}  // namespace interlock
