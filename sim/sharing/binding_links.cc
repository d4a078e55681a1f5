// Links that others stand in for.
// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing/binding_links.h"

#include <algorithm>

namespace interlock {

namespace {

bool contains(const std::vector<int>& links, int link) {
  return std::find(links.begin(), links.end(), link) != links.end();
}

/// Returns true if `other` holds back every flow that `link` could. If each of two links does so
/// for the other, the first stands in.
bool stands_in(const Program& program, const std::vector<std::vector<int>>& users, int other,
               int link) {
  const BytesPerSecond own = program.links[link].bandwidth, rate = program.links[other].bandwidth;
  if (other == link || rate > own) return false;
  if (rate == own && users[other].size() == users[link].size() && other > link) return false;
  return std::all_of(users[link].begin(), users[link].end(),
                     [&](int wire) { return contains(program.wires[wire].links, other); });
}

}  // namespace

std::vector<std::vector<int>> binding_links(const Program& program) {
  std::vector<std::vector<int>> users(program.links.size());
  for (std::size_t w = 0; w < program.wires.size(); ++w) {
    if (!program.wires[w].shared) continue;
    for (const int link : program.wires[w].links) users[link].push_back(static_cast<int>(w));
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
    for (const int wire : users[l]) binding[wire].push_back(link);
  }
  return binding;
}

}  // namespace interlock
