// Trees of links for tests of contention: flows climb from a leaf to the common node, and descend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/random.h"

namespace interlock {

/// Every node but the root has a link up and a link down. Bandwidths are bytes a second.
struct TreeNetwork {
  std::vector<double> bandwidths;  // of each link
  int leaves = 1;

  /// Returns the links from one leaf to another; from a leaf to itself none.
  std::vector<int> route(int from, int to) const;

  struct Level {
    int fan_out = 2;     // children of a node
    int first_link = 0;  // of its nodes: up of node 0, down of node 0, up of node 1, ...
  };
  std::vector<Level> levels;  // from the leaves to below the root
};

/// Draws one to three levels, up to 1,024 leaves. Nodes of a level are equally fast, or each as it
/// is drawn.
TreeNetwork random_tree(Random& random);

}  // namespace interlock
