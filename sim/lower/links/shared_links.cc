// Users of links, counted.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/shared_links.h"

#include <algorithm>

namespace interlock {
namespace {

/// Marks all flows of a collective, and of a message, if one of them shares a link.
void spread_sharing(Program& program) {
  for (Collective& collective : program.collectives) {
    const auto& flows = collective.flows;
    collective.shared = std::any_of(flows.begin(), flows.end(), [&](const Collective::Flow& flow) {
      return program.wires[flow.wire].shared;
    });
  }
  for (const Wire& wire : program.wires) {
    if (wire.part_of >= 0 && wire.shared) program.wires[wire.part_of].shared = true;
  }
  for (Wire& wire : program.wires) {
    if (wire.part_of >= 0) wire.shared = program.wires[wire.part_of].shared;
  }
  for (const Collective& collective : program.collectives) {
    if (!collective.shared) continue;
    for (const Collective::Flow& flow : collective.flows) program.wires[flow.wire].shared = true;
  }
}

}  // namespace

void mark_shared_links(Program& program) {
  constexpr int kNobody = -1, kSeveral = -2;
  std::vector<int> users(program.links.size(), kNobody);
  const int communicators = static_cast<int>(program.communicators.size());
  const auto user_of = [&](int wire) {
    const int communicator = program.wires[wire].communicator;
    const int whole = program.wires[wire].part_of;
    return communicator >= 0 ? communicator : communicators + (whole >= 0 ? whole : wire);
  };
  for (int w = 0; w < static_cast<int>(program.wires.size()); ++w) {
    for (const int link : program.wires[w].links) {
      const bool other = users[link] != kNobody && users[link] != user_of(w);
      users[link] = other ? kSeveral : user_of(w);
    }
  }
  for (Wire& wire : program.wires) {
    wire.shared = std::any_of(wire.links.begin(), wire.links.end(),
                              [&](int link) { return users[link] == kSeveral; });
  }
  spread_sharing(program);
}

}  // namespace interlock
