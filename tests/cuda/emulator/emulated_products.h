// Algorithms that the emulated library offers for every product, in its own order.
// SPDX-License-Identifier: Apache-2.0
//
// Example: of those it has at the start the second is the fastest, and the third is refused when it
// is to run, as a library may whose heuristic promised too much.
#pragma once

#include <vector>

namespace emulated {

struct OfferedAlgorithm {
  double longer = 0;  // s, than products take that are computed at once
  bool refused = false;
  int ran = 0;
};

/// Returns what is offered; algorithm i has the number 10 + i.
std::vector<OfferedAlgorithm>& offered_algorithms();

}  // namespace emulated
