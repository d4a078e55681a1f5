// Chooses equal parts of nodes.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/node_share.h"

#include <bit>

namespace interlock {

int share_of_node(int devices_per_node, int devices) {
  const int all = devices_per_node;
  const bool power = std::has_single_bit(static_cast<unsigned>(all));
  if (devices <= all || devices % all == 0 || power) return all;
  const int usual = static_cast<int>(std::bit_floor(static_cast<unsigned>(all)));
  if (devices % usual == 0) return usual;
  for (int share = all - 1; 2 * share >= all; --share) {
    if (devices % share == 0) return share;
  }
  return all;
}

int cards_of_share(int cards, int stated, int devices) {
  return cards % stated == 0 ? cards / stated * devices : cards;
}

std::string node_share_words(int devices_per_node, int devices) {
  const int share = share_of_node(devices_per_node, devices);
  if (share == devices_per_node) return "";
  return std::to_string(share) + " of the " + std::to_string(devices_per_node) +
         " devices of each node are used, in " + std::to_string(devices / share) + " nodes, as " +
         std::to_string(devices) + " devices fill no whole nodes";
}

}  // namespace interlock
