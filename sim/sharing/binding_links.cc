// Links that others stand in for.
// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing/binding_links.h"

#include <algorithm>

namespace interlock {

namespace {

int times(const Program& program, int wire, int link) {
  const std::vector<int>& links = program.wires[wire].links;
  return static_cast<int>(std::count(links.begin(), links.end(), link));
}

/// Returns true if `other` is full whenever `link` is: each user takes as large a part of it, or a
/// larger one. If each of two links stands in for the other, the first does.
bool stands_in(const Program& program, const std::vector<std::vector<int>>& users, int other,
               int link) {
  if (other == link) return false;
  const BytesPerSecond own = program.links[link].bandwidth, rate = program.links[other].bandwidth;
  bool equal = users[other].size() == users[link].size();
  for (const int wire : users[link]) {
    const BytesPerSecond part = own * times(program, wire, other);
    const BytesPerSecond least = rate * times(program, wire, link);
    if (part < least) return false;
    equal = equal && part == least;
  }
  return !equal || other < link;
}

}  // namespace

bool crosses_again(const Program& program) {
  return std::any_of(program.wires.begin(), program.wires.end(), [](const Wire& wire) {
    std::vector<int> links = wire.links;
    std::sort(links.begin(), links.end());
    return wire.shared && std::adjacent_find(links.begin(), links.end()) != links.end();
  });
}

std::vector<std::vector<int>> binding_links(const Program& program) {
  std::vector<std::vector<int>> users(program.links.size());
  for (std::size_t w = 0; w < program.wires.size(); ++w) {
    if (!program.wires[w].shared) continue;
    const int wire = static_cast<int>(w);
    for (const int link : program.wires[w].links) {
      if (users[link].empty() || users[link].back() != wire) users[link].push_back(wire);
    }
  }
  std::vector<std::vector<int>> binding(program.wires.size());
  for (std::size_t l = 0; l < users.size(); ++l) {
    if (users[l].empty()) continue;
    const int link = static_cast<int>(l);
    // Who stands in is on the way of every user, so on that of the first.
    const auto& way = program.wires[users[l].front()].links;
    const bool left_out = std::any_of(
        way.begin(), way.end(), [&](int other) { return stands_in(program, users, other, link); });
    if (left_out) continue;
    for (const int wire : users[l]) {
      const auto crossings = static_cast<std::size_t>(times(program, wire, link));
      binding[wire].insert(binding[wire].end(), crossings, link);
    }
  }
  return binding;
}

}  // namespace interlock
