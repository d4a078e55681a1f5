// Max-min fair flows by progressive filling: an oracle of the simgrid engine's shared transfers.
// SPDX-License-Identifier: Apache-2.0
//
// Written from the definition (Bertsekas and Gallager, Data Networks, section 6.5.2, recalled) and
// sharing nothing with any engine: all rates rise together, and a flow that crosses a full link
// stays at its rate. Rates are worked out anew whenever a flow begins or ends.
#pragma once

#include <vector>

namespace interlock {

struct FluidFlow {
  double start = 0, bytes = 0;
  std::vector<int> links;
  double end = 0;  // worked out
};

/// Fills in the ends of `flows`, over links of `bandwidths` bytes a second.
void fill_progressively(std::vector<FluidFlow>& flows, const std::vector<double>& bandwidths);

}  // namespace interlock
