// Collectives, and the links that everything goes over.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "sim/run/wiring.h"

namespace interlock {

namespace {

/// How many times the bytes of `other` the flows have; 0 where they differ in anything else.
double size_ratio(const std::vector<Flow>& flows, const std::vector<Flow>& other) {
  if (flows.size() != other.size() || flows.empty()) return 0;
  const double ratio = flows[0].bytes / other[0].bytes;
  const auto alike = [&](const Flow& a, const Flow& b) {
    return a.from == b.from && a.to == b.to && a.bytes == ratio * b.bytes;
  };
  return std::equal(flows.begin(), flows.end(), other.begin(), alike) ? ratio : 0;
}

}  // namespace

namespace {

/// What a member of `n` at least reads and writes in its memory: once each byte that leaves or
/// enters, and a second operand for each that is added up.
Bytes memory_bytes(const Exchange& exchange, std::size_t n) {
  const Bytes moved = exchange.bytes * (static_cast<double>(n - 1) / static_cast<double>(n));
  switch (exchange.kind) {
    case CollectiveKind::AllReduce:  // a reduce-scatter and an all-gather
      return 5 * moved;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::Reduce:
      return 3 * moved;
    case CollectiveKind::AllGather:
    case CollectiveKind::Broadcast:
    case CollectiveKind::AllToAll:
      return 2 * moved;
    case CollectiveKind::Shift:
      return 2 * exchange.bytes;
    case CollectiveKind::Halo:
      return 2 * (exchange.bytes + exchange.back);
    case CollectiveKind::HostCopy:
      return exchange.bytes;
  }
  return Bytes(0);
}

}  // namespace

int Wiring::collective(const Exchange& exchange, int rank, int stage) {
  const std::vector<int> group =
      group_of(mesh_of_rank(inputs_, rank), exchange.axis, folded_.coordinates(rank));
  const int own_lane = lane(exchange, rank, group);
  const auto [entry, fresh] = collectives_.try_emplace(
      {own_lane, exchange.kind, exchange.bytes.value(), exchange.back.value(), stage},
      static_cast<int>(program_.collectives.size()));
  if (!fresh) return entry->second;
  const CollectivePlan plan =
      is_host(exchange.axis) || inputs_.layouts.empty()
          ? plan_exchange(inputs_.cluster, group, exchange)
          : plan_of_all_groups(inputs_.cluster, inputs_.layouts.meshes[rank], rank, exchange);
  return add_collective(exchange, plan, {group, rank, stage, own_lane});
}

int Wiring::collective_of_lane(const Exchange& exchange, int lane) {
  Doers doers{.rank = program_.lanes[lane].ranks.front(), .lane = lane};
  doers.stage = doers.rank;
  const auto [entry, fresh] = collectives_.try_emplace(
      {lane, exchange.kind, exchange.bytes.value(), exchange.back.value(), doers.stage},
      static_cast<int>(program_.collectives.size()));
  if (!fresh) return entry->second;
  for (const int rank : program_.lanes[lane].ranks) {
    doers.group.push_back(folded_.device_of_rank(rank));
  }
  return add_collective(exchange, plan_exchange(inputs_.cluster, doers.group, exchange), doers);
}

int Wiring::add_collective(const Exchange& exchange, const CollectivePlan& plan,
                           const Doers& doers) {
  const Seconds busy = add_plan(plan, exchange.axis, doers);
  program_.collectives.push_back({.kind = exchange.kind,
                                  .axis = exchange.axis,
                                  .stage = doers.stage,
                                  .lane = doers.lane,
                                  .bytes = exchange.bytes,
                                  .back = exchange.back,
                                  .occupancy = busy,
                                  .latency = plan.latency,
                                  .memory_bytes = memory_bytes(exchange, doers.group.size())});
  return static_cast<int>(program_.collectives.size()) - 1;
}

/// Notes what the links of a lane have to carry. Plans that differ in size only do so alike.
Seconds Wiring::add_plan(const CollectivePlan& plan, MeshAxis axis, const Doers& doers) {
  for (std::size_t other = 0; other < planned_.size(); ++other) {
    const Planned& known = planned_[other];
    if (program_.collectives[other].lane != doers.lane) continue;
    const double ratio = size_ratio(plan.flows, known.flows);
    if (ratio == 0) continue;
    const Seconds busy = program_.collectives[other].occupancy * ratio;
    planned_.push_back({plan.flows, known.orbit, known.size * ratio});
    return busy;
  }
  const bool alone = program_.lanes[doers.lane].ranks.size() == 1;
  FoldedLinks::Orbit orbit;
  const Seconds busy = folded_.add_collective(plan, {doers.group, axis, doers.rank, alone}, orbit);
  planned_.push_back({plan.flows, std::make_shared<FoldedLinks::Orbit>(std::move(orbit))});
  return busy;
}

/// The communicator of a group.
int Wiring::lane(const Exchange& exchange, int rank, const std::vector<int>& group) {
  const auto [entry, fresh] = communicators_.try_emplace({exchange.axis, group.front()},
                                                         static_cast<int>(program_.lanes.size()));
  if (fresh) program_.lanes.emplace_back();
  auto& ranks = program_.lanes[entry->second].ranks;
  if (!fresh) return entry->second;
  const int simulated = static_cast<int>(inputs_.schedule.ranks.size());
  for (int other = 0; other < simulated; ++other) {
    const int device = folded_.device_of_rank(other);
    if (std::find(group.begin(), group.end(), device) != group.end()) ranks.push_back(other);
  }
  CHECK(std::find(ranks.begin(), ranks.end(), rank) != ranks.end(), "a rank in its own group");
  return entry->second;
}

std::string Wiring::finish() {
  for (std::size_t c = 0; c < program_.collectives.size(); ++c) make_flows(static_cast<int>(c));
  std::string problem = fold_links();
  for (Channel& channel : program_.channels) {
    if (channel.wire < 0 || !channel.flows.empty()) continue;
    channel.occupancy = channel.bytes / program_.wires[channel.wire].bandwidth;
  }
  mark_shared_links();
  return problem;
}

/// Where ranks stand for others, flows that play the same part are one.
void Wiring::make_flows(int index) {
  Collective& collective = program_.collectives[index];
  std::map<std::vector<LinkId>, std::vector<Bytes>> flows;
  for (const Flow& flow : planned_[index].flows) {
    std::vector<LinkId> way = route(inputs_.cluster, flow.from, flow.to).links;
    for (LinkId& link : way) link = folded_.class_of(link);
    std::vector<Bytes>& equal = flows[way];
    if (equal.empty() || !folded_.folds()) equal.emplace_back(0);
    equal.back() = std::max(equal.back(), flow.bytes);
  }
  for (const auto& [way, equal] : flows) {
    for (int i = 0; i < static_cast<int>(equal.size()); ++i) {
      const auto [entry, fresh] = lane_wires_.try_emplace({collective.lane, i, way},
                                                          static_cast<int>(program_.wires.size()));
      if (fresh) {
        ways_.push_back(way);
        program_.wires.push_back({.lane = collective.lane});
      }
      collective.flows.push_back({entry->second, equal[i]});
    }
  }
}

std::string Wiring::fold_links() {
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
      wire.bandwidth = std::min(wire.bandwidth, program_.links[link].bandwidth);
    }
  }
  return problem;
}

int Wiring::link_index(LinkId id) {
  const auto [entry, fresh] = links_.try_emplace(id, static_cast<int>(program_.links.size()));
  if (fresh) {
    const Link made = link(inputs_.cluster, id);
    program_.links.push_back({made.name, made.bandwidth});
    raw_links_.push_back(id);
  }
  return entry->second;
}

void Wiring::mark_shared_links() {
  // Collectives of a lane come one after the other: all its wires are one user.
  constexpr int kNobody = -1, kSeveral = -2;
  std::vector<int> users(program_.links.size(), kNobody);
  const int lanes = static_cast<int>(program_.lanes.size());
  const auto user_of = [&](int wire) {
    const int lane = program_.wires[wire].lane;
    const int whole = program_.wires[wire].part_of;
    return lane >= 0 ? lane : lanes + (whole >= 0 ? whole : wire);
  };
  for (int w = 0; w < static_cast<int>(program_.wires.size()); ++w) {
    for (const int link : program_.wires[w].links) {
      const bool other = users[link] != kNobody && users[link] != user_of(w);
      users[link] = other ? kSeveral : user_of(w);
    }
  }
  for (Wire& wire : program_.wires) {
    wire.shared = std::any_of(wire.links.begin(), wire.links.end(),
                              [&](int link) { return users[link] == kSeveral; });
  }
  spread_sharing();
}

/// What has several flows is all SimGrid's if one of them is, or some would not end with the
/// others.
void Wiring::spread_sharing() {
  for (Collective& collective : program_.collectives) {
    const auto& flows = collective.flows;
    collective.shared = std::any_of(flows.begin(), flows.end(), [&](const Collective::Flow& flow) {
      return program_.wires[flow.wire].shared;
    });
  }
  for (const Wire& wire : program_.wires) {
    if (wire.part_of >= 0 && wire.shared) program_.wires[wire.part_of].shared = true;
  }
  for (Wire& wire : program_.wires) {
    if (wire.part_of >= 0) wire.shared = program_.wires[wire.part_of].shared;
  }
  for (const Collective& collective : program_.collectives) {
    if (!collective.shared) continue;
    for (const Collective::Flow& flow : collective.flows) program_.wires[flow.wire].shared = true;
  }
}

}  // namespace interlock
