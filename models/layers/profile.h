// Profile: a model known by measurement, the times and bytes of each module for one micro-batch.
// SPDX-License-Identifier: Apache-2.0
//
// A module counts as one operator: all of its input gradient is needed by the module before only.
// Full recomputation runs the forward again and keeps the input, that is, what the module before
// hands on, unless the measured stash is smaller. A slice of its sequences has its share of the
// times and bytes. A tensor that skips modules is handed on by all between, from stage to stage; so
// is its gradient.
//
// Example: {"repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}
// makes four modules whose backward takes 2 ms, and whose output is 0 bytes.
#pragma once

#include <vector>

#include "base/contract/section.h"
#include "models/layers/model_graph.h"

namespace interlock {

/// A tensor that a module further behind reads, beside what every next module does.
struct SkipTensor {
  int to = 0;  // number of the module, from 0
  Bytes bytes;
};

/// One measured module, or several equal ones in a row.
struct ProfileModule {
  std::string name;  // empty: its number
  int repeat = 1;
  Seconds forward, backward_input, backward_weight, update, head;
  Bytes output, stash, parameters;
  std::vector<SkipTensor> skips;
};

const std::vector<ContractObject>& profile_contract();
std::vector<ProfileModule> read_profile(Section& reader);
ModelGraph build_profile(const std::vector<ProfileModule>& modules, const BuildOptions& options);

}  // namespace interlock
