// Routes of trees, and trees that are drawn.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/support/tree_network.h"

#include <algorithm>

namespace interlock {

std::vector<int> TreeNetwork::route(int from, int to) const {
  std::vector<int> up, down;
  for (const Level& level : levels) {
    if (from == to) break;
    up.push_back(level.first_link + 2 * from);
    down.push_back(level.first_link + 2 * to + 1);
    from /= level.fan_out;
    to /= level.fan_out;
  }
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

TreeNetwork random_tree(Random& random) {
  TreeNetwork tree;
  const int depth = random.integer(1, 3);
  const int most = random.integer(0, 9) == 0 ? 1024 : 64;
  for (int level = 0; level < depth; ++level) {
    tree.levels.push_back({.fan_out = random.integer(2, 8)});
    tree.leaves *= tree.levels.back().fan_out;
  }
  while (tree.leaves * 2 <= most && random.integer(0, 3) > 0) {
    tree.levels.back().fan_out *= 2;
    tree.leaves *= 2;
  }
  const bool alike = random.integer(0, 1) == 0;
  for (int nodes = tree.leaves; TreeNetwork::Level & level : tree.levels) {
    level.first_link = static_cast<int>(tree.bandwidths.size());
    const double usual = 1e9 * random.integer(1, 8);
    for (int link = 0; link < 2 * nodes; ++link) {
      tree.bandwidths.push_back(alike ? usual : usual * (0.5 + random.uniform()));
    }
    nodes /= level.fan_out;
  }
  return tree;
}

}  // namespace interlock
