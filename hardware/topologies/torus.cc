// Dimension-ordered routes on a torus.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering: (vertex * dimensions + dimension) * 2 + direction, of the link that leaves the vertex.
#include "hardware/topologies/torus.h"

namespace interlock {
namespace {

/// Steps from `from` to `to` on a ring: above zero up, below zero down.
int steps(int from, int to, int ring) {
  const int up = (to - from + ring) % ring;
  if (2 * up < ring) return up;
  if (2 * up > ring) return up - ring;
  return ring == 2 || from % 2 == 0 ? up : up - ring;
}

int neighbour(int at, bool down, int ring) { return (at + (down ? ring - 1 : 1)) % ring; }

}  // namespace

void cross(const Torus& torus, int from, int to, LinkId first, Route& route) {
  const auto dimensions = static_cast<LinkId>(torus.dimensions.size());
  int stride = 1;
  int vertex = from;
  for (LinkId d = 0; d < dimensions; ++d) {
    const int ring = torus.dimensions[static_cast<std::size_t>(d)];
    int at = from / stride % ring;
    const int way = steps(at, to / stride % ring, ring);
    for (int left = std::abs(way); left > 0; --left) {
      cross(route, first + (vertex * dimensions + d) * 2 + (way < 0 ? 1 : 0), torus.link.bandwidth);
      const int next = neighbour(at, way < 0, ring);
      vertex += (next - at) * stride;
      at = next;
    }
    route.latency += std::abs(way) * torus.link.latency;
    stride *= ring;
  }
}

Link link(const Torus& torus, LinkId id) {
  const std::size_t d = static_cast<std::size_t>(id / 2) % torus.dimensions.size();
  const auto vertex = static_cast<int>(id / 2 / static_cast<LinkId>(torus.dimensions.size()));
  int stride = 1;
  for (std::size_t below = 0; below < d; ++below) stride *= torus.dimensions[below];
  const int ring = torus.dimensions[d];
  const int at = vertex / stride % ring;
  const int to = vertex + (neighbour(at, id % 2 == 1, ring) - at) * stride;
  return {"torus" + std::to_string(vertex) + "->torus" + std::to_string(to), torus.link.bandwidth};
}

std::int64_t size(const Torus& torus) {
  std::int64_t product = 1;
  for (const int ring : torus.dimensions) product *= ring;
  return product;
}

std::string shape(const Torus& torus) {
  std::string text;
  for (const int ring : torus.dimensions) {
    text += (text.empty() ? "" : " x ") + std::to_string(ring);
  }
  return text;
}

}  // namespace interlock
