// Passage: a message between two nodes as a network sees it, and which of equal paths it takes.
// SPDX-License-Identifier: Apache-2.0
//
// Networks of switches number their links from 0 (with gaps); a Cluster puts them behind its own.
// All routing is static: a message between the same two devices takes the same path for ever.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace interlock {

struct Passage {
  int from_node = 0;
  int to_node = 0;
  int card = 0;             // of its node, at the destination
  std::int64_t target = 0;  // number of the destination's card among all that share its network
  int from = 0;             // devices
  int to = 0;
};

/// How messages spread over paths of equal length. Destination: by the number of the card they go
/// to, as InfiniBand's subnet managers do; shifts and rings over all nodes then never collide
/// ("D-mod-K": Zahavi, Fat-Tree Routing and Node Ordering..., 2012). Hash: as Ethernet switches
/// do (ECMP), here by mix64 of from * 2^32 + to.
enum class PathChoice { Destination, Hash };

/// A number whose remainder by the count of equal paths names the path.
inline std::uint64_t path_number(PathChoice choice, const Passage& passage) {
  if (choice == PathChoice::Destination) return static_cast<std::uint64_t>(passage.target);
  return mix64((static_cast<std::uint64_t>(passage.from) << 32) +
               static_cast<std::uint64_t>(passage.to));
}

}  // namespace interlock
