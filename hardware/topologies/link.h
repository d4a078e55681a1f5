// Link: a one-way way for messages; Route: the links that one message takes.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a message crosses link 6 (up, 100 GB/s), then link 9 (down, 25 GB/s). Its route has the
// links {6, 9} and a bandwidth of 25 GB/s.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace interlock {

using LinkId = std::int64_t;

/// Links of both directions are numbered side by side: even ones lead up, odd ones down.
enum LinkDirection { Up = 0, Down = 1 };
inline const char* direction_name(LinkId id) { return id % 2 == Up ? " up" : " down"; }

/// A one-way link. Names tell both ends ("0->1") or one end and a direction ("gpu3 up").
struct Link {
  std::string name;
  BytesPerSecond bandwidth;
};

/// Latency and bandwidth of a kind of links, each direction for itself.
struct LinkSpeed {
  Seconds latency;
  BytesPerSecond bandwidth;    // what messages and collectives reach
  BytesPerSecond stated = {};  // what the data sheet says; 0: not told
};

/// The way of a message between two devices. Empty `links`: the devices are the same.
struct Route {
  std::vector<LinkId> links;
  Seconds latency;           // of the whole way
  BytesPerSecond bandwidth;  // of the narrowest link
};

/// Adds one more link to `route`, at its end.
inline void cross(Route& route, LinkId id, BytesPerSecond bandwidth) {
  route.bandwidth = route.links.empty() ? bandwidth : std::min(route.bandwidth, bandwidth);
  route.links.push_back(id);
}

}  // namespace interlock
