// What part of a link folded ranks have of all that they stand for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/error.h"
#include "sim/run/wiring.h"

namespace interlock {

/// By lane: whether somebody else uses one of its links.
std::vector<bool> Wiring::lanes_that_meet(const std::vector<LinkUse>& uses) const {
  std::vector<bool> meets(program_.lanes.size(), false);
  for (const Wire& wire : program_.wires) {
    if (wire.lane < 0) continue;
    const bool met = std::any_of(wire.links.begin(), wire.links.end(),
                                 [&](int link) { return uses[link].users > 1; });
    if (met) meets[static_cast<std::size_t>(wire.lane)] = true;
  }
  return meets;
}

/// Gives each link the part of its class that the messages simulated on it have of all. Classes of
/// links that are used by one user only may carry what they like.
std::string Wiring::share_links() {
  std::string problem;
  std::vector<LinkUse> uses(program_.links.size());
  for (std::size_t w = 0; w < orbits_.size(); ++w) {
    note_use(uses, static_cast<int>(program_.lanes.size() + w), {static_cast<int>(w)}, orbits_[w]);
  }
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    std::vector<int> wires;
    for (const auto& flow : program_.collectives[c].flows) wires.push_back(flow.wire);
    note_use(uses, program_.collectives[c].lane, wires, *planned_[c].orbit);
  }
  const std::vector<bool> meets = lanes_that_meet(uses);
  for (std::size_t l = 0; l < uses.size(); ++l) {
    // A lane that meets nobody is no flow: its occupancy knows what its equals carry.
    const bool of_lane = uses[l].last_user < static_cast<int>(program_.lanes.size());
    const bool apart = of_lane && !meets[static_cast<std::size_t>(uses[l].last_user)];
    if ((uses[l].users == 1 && apart) || alone_) uses[l].share = 1;
    program_.links[l].share = uses[l].share;
    program_.links[l].stands_for = folded_.class_size(raw_links_[l]);
    program_.links[l].bandwidth *= uses[l].share;
    if (problem.empty() && uses[l].users > 1 && !uses[l].alike) {
      problem = "what uses " + program_.links[l].name +
                " and its like at the same time differs from one to the other";
    }
  }
  for (std::size_t c = 0; c < planned_.size(); ++c) note_loads(static_cast<int>(c));
  return problem;
}

/// Notes that `user` has the flows of `wires` under way at once.
void Wiring::note_use(std::vector<LinkUse>& uses, int user, const std::vector<int>& wires,
                      const FoldedLinks::Orbit& orbit) {
  std::map<int, int> simulated;  // messages on each link at once
  for (const int wire : wires) {
    for (const int link : program_.wires[wire].links) ++simulated[link];
  }
  const auto classes = folded_.class_uses(orbit);
  for (const auto& [link, count] : simulated) {
    LinkUse& use = uses[link];
    const auto found = classes.find(raw_links_[link]);
    CHECK(found != classes.end(), "an orbit has the links of its messages");
    const double share = static_cast<double>(count) / found->second.most;
    use.alike = use.alike && found->second.alike && (use.users == 0 || use.share == share);
    use.share = use.users == 0 ? share : std::min(use.share, share);
    if (use.users == 0 || use.last_user != user) ++use.users;
    use.last_user = user;
  }
}

/// What a collective and its equals carry over the links that they use.
void Wiring::note_loads(int index) {
  Collective& collective = program_.collectives[index];
  const auto classes = folded_.class_uses(*planned_[index].orbit);
  for (const auto& [link, use] : classes) {
    const int own = link_index(link);
    collective.loads.push_back({own, use.bytes * planned_[index].size * program_.links[own].share});
  }
  std::sort(collective.loads.begin(), collective.loads.end(),
            [](const LinkBytes& a, const LinkBytes& b) { return a.link < b.link; });
}

}  // namespace interlock
