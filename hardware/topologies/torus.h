// Torus: nodes, or devices themselves, on a grid whose rows are rings.
// SPDX-License-Identifier: Apache-2.0
//
// Number 0 is a corner, and the first dimension counts fastest. Messages go the shorter way round,
// first along the first dimension, then along the next (dimension-ordered routing, free of
// deadlock with two virtual channels: Dally and Seitz, 1987). Where both ways are as long, even
// coordinates go up and odd ones down, so that each direction carries half. A ring of two is one
// full-duplex link.
//
// Example: on 4 x 2, 0 reaches 3 by the one link between them; 0 goes up to 2 by 1, but the odd 1
// goes down to 3 by 0; and 0 reaches 6 by 1, 2 and then 6.
#pragma once

#include <vector>

#include "hardware/topologies/link.h"

namespace interlock {

struct Torus {
  std::vector<int> dimensions;
  bool of_devices = false;  // else of nodes
  LinkSpeed link;           // between neighbours
};

/// Adds the links between two vertices, and their latency.
void cross(const Torus& torus, int from, int to, LinkId first, Route& route);
/// REQUIRES: `id` came from such a route whose `first` was 0.
Link link(const Torus& torus, LinkId id);

/// Returns the number of vertices.
std::int64_t size(const Torus& torus);
/// Returns the shape in words: "4 x 8 x 8".
std::string shape(const Torus& torus);

}  // namespace interlock
