// Profile: a model known by measurement, the times and bytes of each module for one micro-batch.
// SPDX-License-Identifier: Apache-2.0
//
// {"kind": "profile", "modules": [{"name": "block", "repeat": 4, "forward": "1 ms",
//  "backward_input": "1 ms", "backward_weight": "1 ms", "update": "0 s", "head": "0 s",
//  "output": "0 B", "stash": "0 B", "parameters": "0 B"}]}
// What is left out is zero; "measured", what an imported table was made of, is not used.
// A module counts as one operator: all of its input gradient is needed by the module before only.
// Full recomputation runs the forward again and keeps the input, that is, what the module before
// hands on, unless the measured stash is smaller. A slice of its sequences has its share of the
// times and bytes.
#pragma once

#include <vector>

#include "models/model_graph.h"

namespace interlock {

/// One measured module, or several equal ones in a row.
struct ProfileModule {
  std::string name;  // empty: its number
  int repeat = 1;
  Seconds forward, backward_input, backward_weight, update, head;
  Bytes output, stash, parameters;
};

std::vector<ProfileModule> read_profile(ObjectReader& reader);
ModelGraph build_profile(const std::vector<ProfileModule>& modules, const BuildOptions& options);

}  // namespace interlock
