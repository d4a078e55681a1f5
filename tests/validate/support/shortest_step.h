// The shortest step of a very small pipeline, by looking at every order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace interlock {

struct SmallStage {
  double forward = 1, input = 1, weight = 1;
  int held = 0;  // micro-batches between F and the end of W at most; 0: no limit
};

/// From the first start to the last end. A dynamic programme over how many forwards, input halves
/// and weight halves each stage has done, which keeps, of all ways there, those whose times none
/// other beats in every place.
double shortest_step(const std::vector<SmallStage>& stages, int micro_batches, double transfer);

}  // namespace interlock
