// Shares of links that the messages and collectives of a program meet on.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/link_sharing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "sim/lower/links/turns.h"
#include "sim/program/cursor.h"

namespace interlock {

namespace {

/// Share of a run as short as it can be that a link may take for what it carries beside the average
/// of its class, up to which devices fold nearly. Of 1,000 random layouts 34 fold so: their steps
/// are off by 9 % at most (tests/validate/folding).
constexpr double kMostUneven = 0.1;

/// Counts what a run does, ranks that stand for others once.
struct RunCounts {
  std::vector<double> messages, collectives;  // how often, by channel and by collective
  Seconds kernels;                            // of the busiest rank
};

RunCounts counts_of_run(const Program& program) {
  RunCounts all = {.messages = std::vector<double>(program.channels.size()),
                   .collectives = std::vector<double>(program.collectives.size())};
  Seconds kernels;  // of a rank
  const auto add = [&](const Instruction& instruction, std::int64_t turns) {
    auto times = static_cast<double>(turns);
    if (instruction.code == Opcode::Compute) {
      kernels += program.ops[instruction.index].duration * times;
    }
    if (instruction.code == Opcode::Send) all.messages[instruction.index] += times;
    if (instruction.code != Opcode::Record) return;
    for (int e = instruction.index; e >= 0; e = program.events[e].next) {
      const Event& event = program.events[e];
      times /= event.recorders;
      if (event.collective >= 0) all.collectives[event.collective] += times;
    }
  };
  for (const Rank& rank : program.ranks) {
    kernels = Seconds(0);
    for (int number = 0; number < rank.streams; ++number) {
      visit_instructions(program, program.streams[rank.first_stream + number], add);
    }
    all.kernels = std::max(all.kernels, kernels);
  }
  return all;
}

}  // namespace

LinkSharing::LinkSharing(const LowerInputs& inputs, bool alone, FoldedLinks& folded, Users users,
                         Program& program)
    : inputs_(inputs),
      program_(program),
      alone_(alone),
      folded_(folded),
      planned_(users.planned),
      orbits_(users.orbits),
      ways_(std::move(users.ways)) {}

std::string LinkSharing::finish() {
  for (std::size_t c = 0; c < program_.collectives.size(); ++c) make_flows(static_cast<int>(c));
  return fold_links();
}

/// Makes the flows of a collective; where ranks stand for others, equal flows are one.
void LinkSharing::make_flows(int index) {
  Collective& collective = program_.collectives[index];
  const FlowWays& class_ways = ways_of(planned_[index]);
  std::vector<std::vector<Bytes>> flows(class_ways.ways.size());  // by way
  const std::vector<Flow>& own = planned_[index].plan->flows;
  for (std::size_t f = 0; f < own.size(); ++f) {
    std::vector<Bytes>& equal = flows[class_ways.of_flow[f]];
    if (equal.empty() || !folded_.folds()) equal.push_back(own[f].bytes);
    equal.back() = std::max(equal.back(), own[f].bytes);
  }
  for (std::size_t w = 0; w < flows.size(); ++w) {
    const std::vector<LinkId>& way = class_ways.ways[w];
    const std::vector<Bytes>& equal = flows[w];
    for (int i = 0; i < static_cast<int>(equal.size()); ++i) {
      const auto [entry, fresh] =
          wires_.try_emplace({collective.communicator, planned_[index].links, i, way},
                             static_cast<int>(program_.wires.size()));
      if (fresh) {
        ways_.push_back(way);
        program_.wires.push_back({.communicator = collective.communicator});
      }
      collective.flows.push_back({entry->second, equal[i]});
    }
  }
}

const FlowWays& LinkSharing::ways_of(const PlannedCollective& planned) {
  const auto [entry, fresh] = class_ways_.try_emplace(planned.links);
  if (fresh) entry->second = folded_.class_ways(*planned.links);
  return entry->second;
}

std::string LinkSharing::fold_links() {
  for (std::size_t w = 0; w < program_.wires.size(); ++w) {
    for (const LinkId link : ways_[w]) {
      program_.wires[w].links.push_back(link_index(folded_.class_of(link)));
    }
  }
  std::string problem = folded_.problem();
  if (folded_.folds() && problem.empty()) problem = share_links();
  for (Wire& wire : program_.wires) {
    wire.bandwidth = BytesPerSecond(kInfinity);
    for (const int link : wire.links) {
      const auto times = std::count(wire.links.begin(), wire.links.end(), link);
      wire.bandwidth =
          std::min(wire.bandwidth, program_.links[link].bandwidth / static_cast<double>(times));
    }
  }
  for (const auto& [collective, flow, time] : apart_) {
    Collective::Flow& one = program_.collectives[collective].flows[flow];
    one.bytes = Bytes(time.value() * program_.wires[one.wire].bandwidth.value());
  }
  for (Collective& collective : program_.collectives) {
    std::erase_if(collective.flows, [](const auto& flow) { return flow.bytes == Bytes(0); });
  }
  return problem;
}

int LinkSharing::link_index(LinkId id) {
  const auto [entry, fresh] = links_.try_emplace(id, static_cast<int>(program_.links.size()));
  if (fresh) {
    const Link made = link(inputs_.cluster, id);
    program_.links.push_back({made.name, made.bandwidth});
    raw_links_.push_back(id);
  }
  return entry->second;
}

/// Returns for each communicator whether another user shares one of its links.
std::vector<bool> LinkSharing::communicators_that_meet(const std::vector<LinkUse>& uses) const {
  std::vector<bool> meets(program_.communicators.size(), false);
  for (const Wire& wire : program_.wires) {
    if (wire.communicator < 0) continue;
    const bool met = std::any_of(wire.links.begin(), wire.links.end(),
                                 [&](int link) { return uses[link].users > 1; });
    if (met) meets[static_cast<std::size_t>(wire.communicator)] = true;
  }
  return meets;
}

/// Returns who uses each link: single messages and communicators.
std::vector<LinkSharing::LinkUse> LinkSharing::link_uses() {
  std::vector<LinkUse> uses(program_.links.size());
  for (std::size_t w = 0; w < orbits_.size(); ++w) {
    note_use(uses, static_cast<int>(program_.communicators.size() + w), {static_cast<int>(w)},
             orbits_[w]);
  }
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    std::vector<int> wires;
    for (const auto& flow : program_.collectives[c].flows) wires.push_back(flow.wire);
    note_use(uses, program_.collectives[c].communicator, wires, *planned_[c].orbit);
  }
  return uses;
}

/// Gives each link the part of its class that the messages simulated on it have of all. Classes of
/// links that are used by one user only may carry what they like. Where users differ in that part,
/// each wire crosses the link as often as its equals do.
std::string LinkSharing::share_links() {
  std::string problem, uneven;
  std::vector<Crossings> crossings;  // made where they are needed
  std::vector<LinkUse> uses = link_uses();
  const std::vector<bool> meets = communicators_that_meet(uses);
  const auto communicators = static_cast<int>(meets.size());
  if (!alone_) {
    uneven = part_uneven_flows(uses);
    share_in_turn(uses, meets);
  }
  for (std::size_t l = 0; l < uses.size(); ++l) {
    LinkUse& use = uses[l];
    auto& link = program_.links[l];
    // A communicator that shares no link needs no flow: its occupancy includes all its equals.
    const bool apart = use.last_user < communicators && !meets[use.last_user];
    if ((use.users == 1 && apart) || alone_) use.share = 1;
    if (use.users > 1 && !use.alike && !alone_) {
      if (crossings.empty()) crossings = crossings_of_equals();
      use.alike = weigh(static_cast<int>(l), crossings, use);
    }
    link.share = use.share;
    link.stands_for = folded_.class_size(raw_links_[l]);
    if (inputs_.data_parallel.outer.any()) link.likes = folded_.names_in_class(raw_links_[l]);
    link.bandwidth *= use.share;
    if (!problem.empty() || (use.users > 1 ? use.alike : alone_ || !use.uneven)) continue;
    problem =
        "what uses " + link.name + " and its like at the same time differs from one to the other";
  }
  for (std::size_t c = 0; c < planned_.size(); ++c) note_loads(static_cast<int>(c));
  if (!inputs_.folds_nearly) return problem.empty() ? uneven : problem;
  const std::optional<int> busiest = too_uneven(uses);
  if (!busiest) return "";
  return program_.links[*busiest].name + " carries much more than its like";
}

/// Returns a link that counts as busier than its class is on average for too much of a run; nothing
/// if there is none. A run takes at least what its kernels take, and what a link carries on
/// average. What a collective takes whose links nothing else uses is known whatever its flows are.
std::optional<int> LinkSharing::too_uneven(const std::vector<LinkUse>& uses) {
  std::vector<double> carried(program_.links.size()), mean(program_.links.size());
  const RunCounts done = counts_of_run(program_);
  const auto carry = [&](int wire, double bytes) {
    for (const int link : program_.wires[wire].links) {
      carried[link] += bytes / program_.links[link].share;
    }
  };
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    const double times = done.collectives[c];
    for (const auto& [wire, bytes] : program_.collectives[c].flows) {
      carry(wire, times * bytes.value());
    }
    for (const auto& [link, use] : folded_.class_uses(*planned_[c].orbit)) {
      mean[link_index(link)] += times * use.bytes.value() * planned_[c].size;
    }
  }
  for (std::size_t c = 0; c < program_.channels.size(); ++c) {
    const Channel& channel = program_.channels[c];
    if (channel.wire < 0 || !channel.flows.empty()) continue;
    const double bytes = done.messages[c] * channel.bytes.value();
    carry(channel.wire, bytes);
    for (const auto& [link, use] : folded_.class_uses(orbits_[channel.wire])) {
      mean[link_index(link)] += use.mean * bytes;
    }
  }
  double shortest = done.kernels.value();
  for (std::size_t link = 0; link < uses.size(); ++link) {
    const ProgramLink& own = program_.links[link];
    const double rate = (own.bandwidth / own.share).value();
    carried[link] /= rate;
    mean[link] /= rate;
    shortest = std::max(shortest, mean[link]);
  }
  for (std::size_t link = 0; link < uses.size(); ++link) {
    const bool matters = uses[link].users > 1 || uses[link].uneven;
    const double beside = carried[link] - mean[link];
    if (matters && beside > kMostUneven * shortest) return static_cast<int>(link);
  }
  return {};
}

/// Follows flows that are not alike, and that nothing else meets, with every device. Says which of
/// those that others meet are not alike; empty if none are.
std::string LinkSharing::part_uneven_flows(const std::vector<LinkUse>& uses) {
  std::vector<std::pair<int, const FoldedLinks::Orbit*>> orbits;
  for (const PlannedCollective& p : planned_)
    orbits.emplace_back(p.doers.communicator, p.orbit.get());
  const std::vector<bool> meets_equals = meet_equals(orbits);
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    if (part_uneven_flows(static_cast<int>(c), uses, meets_equals[c])) continue;
    return "the devices with device " + std::to_string(planned_[c].doers.group.front()) +
           " send more and less in one collective, beside others";
  }
  return "";
}

bool LinkSharing::part_uneven_flows(int index, const std::vector<LinkUse>& uses,
                                    bool meets_equals) {
  const PlannedCollective& planned = planned_[index];
  const FlowWays& ways = ways_of(planned);
  const auto [sets, fresh] = sets_.try_emplace(planned.links);
  if (fresh) sets->second = sets_that_meet(ways, planned.plan->flows);
  const auto met = [&](LinkId link) { return uses[links_.at(link)].users > 1; };
  const bool meets = std::ranges::any_of(
      sets->second, [&](const FlowSet& set) { return any_link(ways, set, met); });
  // Alone even among its equals, a collective takes what its busiest link takes.
  if (!meets && !meets_equals) return true;
  const auto& classes = folded_.class_uses(*planned.orbit);
  Collective& collective = program_.collectives[index];
  for (const FlowSet& set : sets->second) {
    const bool uneven = (meets ? set.uneven : set.differ) ||
                        any_link(ways, set, [&](LinkId link) { return !classes.at(link).alike; });
    if (!uneven) continue;
    if (any_link(ways, set, met)) return false;
    const auto alone = folded_.time_alone(*planned.links, member_of(planned), set.flows);
    if (!alone) return false;
    const Seconds time = *alone * planned.size;
    collective.known_late = collective.known_late || time > collective.occupancy;
    collective.occupancy = std::max(collective.occupancy, time);
    if (!meets) continue;
    for (const int way : set.ways) collective.flows[way].bytes = Bytes(0);
    apart_.push_back({index, set.ways.front(), time});
  }
  return true;
}

FoldedLinks::Member LinkSharing::member_of(const PlannedCollective& planned) const {
  return {planned.doers.group, planned.axis, planned.layout, planned.doers.rank, false};
}

/// Gives each collective its own share of the links that its communicator alone uses.
void LinkSharing::share_in_turn(std::vector<LinkUse>& uses, const std::vector<bool>& meets) {
  std::vector<LinkMessages> messages(planned_.size());
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    const Collective& collective = program_.collectives[c];
    if (!meets[static_cast<std::size_t>(collective.communicator)]) continue;
    for (const Collective::Flow& flow : collective.flows) {
      for (const int link : program_.wires[flow.wire].links) {
        if (uses[link].users == 1 && uses[link].varies) ++messages[c][link].simulated;
      }
    }
    if (messages[c].empty()) continue;
    const auto& classes = folded_.class_uses(*planned_[c].orbit);
    for (auto& [link, counts] : messages[c]) counts.all = classes.at(raw_links_[link]).most;
  }
  for (const auto& [link, share] : weigh_turns(program_, messages)) uses[link].share = share;
}

std::vector<LinkSharing::Crossings> LinkSharing::crossings_of_equals() {
  std::vector<Crossings> crossings(program_.wires.size());
  for (std::size_t w = 0; w < orbits_.size(); ++w) {
    FoldedLinks::LinkCounts counts;
    for (const FoldedLinks::Use& use : orbits_[w]) counts[folded_.link_of(use)] += use.messages;
    crossings[w] = crossings_of(counts);
  }
  std::set<const FoldedLinks::Orbit*> seen;
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    if (seen.insert(planned_[c].orbit.get()).second) add_crossings_of(c, crossings);
  }
  return crossings;
}

LinkSharing::Crossings LinkSharing::crossings_of(const FoldedLinks::LinkCounts& counts) {
  Crossings made;
  for (const auto& [link, crossings] : folded_.class_crossings(counts)) {
    const bool even = crossings.alike || inputs_.folds_nearly;
    made[link_index(link)] = even ? crossings.most : 0;
  }
  return made;
}

/// Adds those of the flows of a collective. Flows of different sizes on one wire are not alike:
/// nearly, a link is crossed as often as one flow of the largest size must to carry as much.
void LinkSharing::add_crossings_of(std::size_t collective, std::vector<Crossings>& crossings) {
  const PlannedCollective& planned = planned_[collective];
  const FlowWays& class_ways = ways_of(planned);
  const std::vector<Flow>& flows = planned.plan->flows;
  if (flows.empty()) return;
  std::map<std::pair<int, Bytes>, int> numbers;  // of kinds: a way and a size
  std::vector<int> kinds;                        // by flow
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const auto next = static_cast<int>(numbers.size());
    kinds.push_back(
        numbers.try_emplace({class_ways.of_flow[f], flows[f].bytes}, next).first->second);
  }
  const auto& counts = folded_.crossed(*planned.links, member_of(planned), kinds);
  for (std::size_t w = 0; w < class_ways.ways.size(); ++w) {
    const auto way = static_cast<int>(w);
    const auto first = numbers.lower_bound({way, Bytes(0)});
    const auto end = numbers.lower_bound({way + 1, Bytes(0)});
    const Bytes largest = std::prev(end)->first.second;
    if (largest <= Bytes(0)) continue;
    std::unordered_map<LinkId, double> carried;  // in flows of the largest size
    for (auto kind = first; kind != end; ++kind) {
      const double size = kind->first.second / largest;
      for (const auto& [link, times] : counts[kind->second]) carried[link] += times * size;
    }
    FoldedLinks::LinkCounts crossed;
    const bool one_size = std::next(first) == end;
    for (const auto& [link, times] : carried) {
      crossed[link] = static_cast<int>(std::ceil(times * (1 - 1e-9)));
    }
    Crossings made = crossings_of(crossed);
    if (!one_size && !inputs_.folds_nearly) {
      for (auto& [link, times] : made) times = 0;
    }
    // One of each way, see make_flows.
    crossings[program_.collectives[collective].flows[w].wire].swap(made);
  }
}

/// Lets each wire cross `link` as often as its equals do, times what all these have in common.
/// False if the links of its class are not crossed alike.
bool LinkSharing::weigh(int link, const std::vector<Crossings>& crossings, LinkUse& use) {
  std::vector<int> users;
  int common = 0;
  for (std::size_t w = 0; w < program_.wires.size(); ++w) {
    const std::vector<int>& links = program_.wires[w].links;
    if (std::find(links.begin(), links.end(), link) == links.end()) continue;
    const auto times = crossings[w].find(link);
    if (times == crossings[w].end() || times->second == 0) return false;
    common = std::gcd(common, times->second);
    users.push_back(static_cast<int>(w));
  }
  for (const int wire : users) {
    std::vector<int>& links = program_.wires[wire].links;
    std::erase(links, link);
    links.insert(links.end(), static_cast<std::size_t>(crossings[wire].at(link) / common), link);
  }
  use.share = 1.0 / common;
  return true;
}

/// Notes that `user` has the flows of `wires` under way at once.
void LinkSharing::note_use(std::vector<LinkUse>& uses, int user, const std::vector<int>& wires,
                           const FoldedLinks::Orbit& orbit) {
  std::map<int, int> simulated;  // messages on each link at once
  for (const int wire : wires) {
    for (const int link : program_.wires[wire].links) ++simulated[link];
  }
  const auto& classes = folded_.class_uses(orbit);
  for (const auto& [link, count] : simulated) {
    LinkUse& use = uses[link];
    const auto found = classes.find(raw_links_[link]);
    CHECK(found != classes.end(), "an orbit has the links of its messages");
    const double share = static_cast<double>(count) / found->second.most;
    use.varies = use.varies || (use.users > 0 && use.share != share);
    use.alike = use.alike && found->second.alike && !use.varies;
    const bool message = user >= static_cast<int>(program_.communicators.size());
    use.uneven = use.uneven || (message && found->second.least < found->second.most);
    use.share = use.users == 0 ? share : std::min(use.share, share);
    if (use.users == 0 || use.last_user != user) ++use.users;
    use.last_user = user;
  }
}

/// Notes the bytes that a collective and its equals carry over the links that they use.
void LinkSharing::note_loads(int index) {
  Collective& collective = program_.collectives[index];
  const auto& classes = folded_.class_uses(*planned_[index].orbit);
  for (const auto& [link, use] : classes) {
    const int own = link_index(link);
    collective.loads.push_back({own, use.bytes * planned_[index].size * program_.links[own].share});
  }
  std::sort(collective.loads.begin(), collective.loads.end(),
            [](const LinkBytes& a, const LinkBytes& b) { return a.link < b.link; });
}

}  // namespace interlock
