// Channels, wires and links, made when lowering first needs them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/wiring.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "sim/lower/links/flows_apart.h"
#include "sim/lower/links/shared_links.h"
#include "sim/lower/links/turns.h"

namespace interlock {

namespace {

std::int64_t pair_key(int from, int to) { return (static_cast<std::int64_t>(from) << 32) | to; }

int depth_of(const QueuePolicy& queue) {
  if (queue.kind == QueuePolicy::Kind::Unlimited) return Channel::kUnlimited;
  return queue.kind == QueuePolicy::Kind::Buffered ? queue.depth : 0;
}

std::shared_ptr<const CollectivePlan> shared(CollectivePlan plan) {
  return std::make_shared<const CollectivePlan>(std::move(plan));
}

}  // namespace

Wiring::Wiring(const LowerInputs& inputs, bool alone, Program& program)
    : inputs_(inputs),
      program_(program),
      costs_(inputs),
      alone_(alone),
      folded_(inputs, alone),
      slots_(std::max(inputs.policy.in_flight, inputs.schedule.slices)),
      neighbours_(std::size_t{2} * inputs.schedule.stages * slots_, -1) {
  CHECK(inputs.policy.in_flight == 1 || inputs.schedule.slices == 1, "slots of one kind");
}

Bytes Wiring::message_bytes(Cargo cargo, int from_stage, int to_stage, int micro_batch) const {
  switch (cargo) {
    case Cargo::Activation:
      return costs_.sent_output(from_stage, to_stage, micro_batch);
    case Cargo::Gradient: {
      const Bytes tensor =
          costs_.sent_input_gradient({.stage = from_stage, .micro_batch = micro_batch});
      if (!inputs_.policy.kind->sends_lists) return tensor;
      const auto& traversals = inputs_.roles[from_stage].traversals;
      const auto tensors = std::ranges::count_if(traversals, &Traversal::to_previous);
      return tensor * static_cast<double>(tensors);
    }
    case Cargo::Readout:
      return costs_.of_stage(to_stage, micro_batch).readout;
    case Cargo::Copy:
      return costs_.of_stage(from_stage, micro_batch).state.gradients;
    default:
      return Bytes(0);  // see add_channel
  }
}

int Wiring::channel(Cargo cargo, int from_stage, int to_stage, int micro_batch) {
  const int slot = micro_batch % slots_;
  if (cargo == Cargo::Readout || cargo == Cargo::Copy) {
    auto& known = cargo == Cargo::Readout ? readouts_ : copies_;
    const int way = cargo == Cargo::Readout ? slot : from_stage;
    const auto [entry, fresh] = known.try_emplace(pair_key(to_stage, way), -1);
    if (fresh) entry->second = make_channel(cargo, from_stage, to_stage, micro_batch);
    return entry->second;
  }
  // A stage has one from which activations come, and one to which its gradients go.
  const int end = cargo == Cargo::Activation ? to_stage * 2 : from_stage * 2 + 1;
  int& found = neighbours_[end * slots_ + slot];
  if (found < 0) found = make_channel(cargo, from_stage, to_stage, micro_batch);
  return found;
}

int Wiring::make_channel(Cargo cargo, int from_stage, int to_stage, int micro_batch) {
  Channel channel{.cargo = cargo,
                  .from_rank = inputs_.schedule.rank_of_stage[from_stage],
                  .to_rank = inputs_.schedule.rank_of_stage[to_stage],
                  .from_stage = from_stage,
                  .to_stage = to_stage,
                  .depth = depth_of(inputs_.policy.queue),
                  .bytes = message_bytes(cargo, from_stage, to_stage, micro_batch)};
  // Copies of resident bytes do not wait.
  const bool resident = cargo == Cargo::Readout || cargo == Cargo::Copy;
  if (resident) {
    channel.depth = Channel::kUnlimited;
    channel.from_resident = true;
  }
  channel.read_by_head = cargo == Cargo::Activation && inputs_.roles[from_stage].head &&
                         to_stage == costs_.after(from_stage).front() && channel.bytes > Bytes(0) &&
                         !costs_.cast_output(from_stage, to_stage, micro_batch);
  const bool one_device = channel.from_rank == channel.to_rank;
  const bool waits_for_itself = one_device && inputs_.schedule.ranks[channel.from_rank].size() == 1;
  if (waits_for_itself) channel.depth = Channel::kUnlimited;
  if (!one_device) {
    channel.wire = wire(channel.from_rank, channel.to_rank);
    channel.latency = latencies_[channel.wire];
    const int parts = resident ? 1 : message_parts(std::min(from_stage, to_stage));
    if (parts > 1) {
      channel.held = channel.bytes;
      channel.bytes = channel.bytes / parts;
    }
    channel.synchronous = inputs_.policy.copies_on_compute_stream && !resident;
    channel.sender_waits = inputs_.policy.waits_for_sends && !channel.synchronous && !resident &&
                           channel.depth == Channel::kUnlimited;
  }
  if (!inputs_.layouts.empty() && channel.wire >= 0) reshard(channel);
  if (inputs_.policy.replays && cargo == Cargo::Activation) {
    channel.replay = replay_op(to_stage, micro_batch);
  }
  program_.channels.push_back(channel);
  return static_cast<int>(program_.channels.size()) - 1;
}

/// Returns the number of tensor devices that each send a part of what stage `below` hands on, or of
/// its gradient: those of its last layer.
int Wiring::message_parts(int below) const {
  if (inputs_.layers.empty() || inputs_.policy.message_parts == 1) {
    return inputs_.policy.message_parts;
  }
  return inputs_.layers.at(costs_.of_stage(below, 0).layout).degree(Dimension::Tensor);
}

int Wiring::add_channel(Channel channel, int parts) {
  channel.wire = wire(channel.from_rank, channel.to_rank);
  channel.latency = latencies_[channel.wire] * parts;
  program_.channels.push_back(std::move(channel));
  return static_cast<int>(program_.channels.size()) - 1;
}

/// A turn on an old input; none if it takes no time, or a stage would never get on.
int Wiring::replay_op(int stage, int micro_batch) {
  const OpCost turn = costs_.turn(stage, micro_batch);
  if (turn.time <= Seconds(0)) return -1;
  program_.ops.push_back({.kind = OpKind::R,
                          .stage = stage,
                          .loss = stage,
                          .duration = turn.time,
                          .flops = turn.flops,
                          .replay = true});
  return static_cast<int>(program_.ops.size()) - 1;
}

/// The channel leads to devices that hold its tensor otherwise: many flows at once.
void Wiring::reshard(Channel& channel) {
  const StageLayouts& layouts = inputs_.layouts;
  const bool upwards = channel.to_stage > channel.from_stage;
  const int below = std::min(channel.from_stage, channel.to_stage);
  Bytes held = layouts.outputs[below], other = layouts.inputs[below + 1];
  if (!upwards) std::swap(held, other);
  if (held <= Bytes(0)) return;
  const double times = channel.bytes / held;  // tensors in a message
  channel.received = other * times;
  const Resharding plan = plan_crossing(inputs_.cluster, layouts, inputs_.schedule.rank_of_stage,
                                        {below, upwards, times});
  channel.latency = plan.latency;
  channel.occupancy = plan.time - plan.latency;
  std::map<std::vector<LinkId>, Bytes> flows;
  for (const Flow& flow : plan.flows) {
    flows[route(inputs_.cluster, flow.from, flow.to).links] += flow.bytes;
  }
  for (const auto& [way, bytes] : flows) {
    channel.flows.push_back({part_wire(channel.wire, way), bytes});
  }
}

int Wiring::part_wire(int whole, const std::vector<LinkId>& way) {
  const auto [entry, fresh] =
      part_wires_.try_emplace({whole, way}, static_cast<int>(program_.wires.size()));
  if (fresh) {
    ways_.push_back(way);
    orbits_.emplace_back();
    latencies_.emplace_back();
    program_.wires.push_back({.from_rank = program_.wires[whole].from_rank,
                              .to_rank = program_.wires[whole].to_rank,
                              .part_of = whole});
  }
  return entry->second;
}

int Wiring::wire(int from_rank, int to_rank) {
  const auto [entry, fresh] =
      wires_.try_emplace(pair_key(from_rank, to_rank), static_cast<int>(program_.wires.size()));
  if (fresh) {
    const Route way = folded_.add_way(from_rank, to_rank, orbits_.emplace_back());
    ways_.push_back(inputs_.layouts.empty() ? way.links : std::vector<LinkId>());
    latencies_.push_back(way.latency);
    program_.wires.push_back({.from_rank = from_rank, .to_rank = to_rank});
  }
  return entry->second;
}

int Wiring::collective(const Exchange& exchange, int rank, int stage) {
  const int own_communicator = communicator_of(exchange, rank);
  const auto [entry, fresh] =
      collectives_.try_emplace({own_communicator, exchange.kind, exchange.bytes.value(),
                                exchange.back.value(), stage, exchange.routing},
                               static_cast<int>(program_.collectives.size()));
  if (!fresh) return entry->second;
  const std::vector<int>& group = groups_.at(own_communicator);
  const SharedPlan plan = is_host(exchange.axis) || inputs_.layouts.empty()
                              ? folded_.plan_of(exchange, group)
                              : shared(plan_of_all_groups(
                                    inputs_.cluster, inputs_.layouts.meshes[rank], rank, exchange));
  return add_collective(exchange, plan, {group, rank, stage, own_communicator});
}

int Wiring::collective_of_communicator(const Exchange& exchange, int communicator) {
  const int first = program_.communicators[communicator].ranks.front();
  Doers doers{.rank = first, .stage = first, .communicator = communicator};
  const auto [entry, fresh] =
      collectives_.try_emplace({communicator, exchange.kind, exchange.bytes.value(),
                                exchange.back.value(), doers.stage, exchange.routing},
                               static_cast<int>(program_.collectives.size()));
  if (!fresh) return entry->second;
  for (const int rank : program_.communicators[communicator].ranks) {
    doers.group.push_back(folded_.device_of_rank(rank));
  }
  return add_collective(exchange, shared(plan_exchange(inputs_.cluster, doers.group, exchange)),
                        doers);
}

int Wiring::add_collective(const Exchange& exchange, const SharedPlan& plan, const Doers& doers) {
  program_.collectives.push_back({.kind = exchange.kind,
                                  .axis = exchange.axis,
                                  .stage = doers.stage,
                                  .communicator = doers.communicator,
                                  .bytes = exchange.bytes,
                                  .back = exchange.back,
                                  .latency = plan->latency,
                                  .memory_bytes = memory_bytes(exchange, doers.group.size())});
  add_plan(plan, exchange, doers);
  return static_cast<int>(program_.collectives.size()) - 1;
}

/// Notes what the links of a communicator have to carry for its last collective, and how long they
/// do. Plans that differ in size only do so alike.
void Wiring::add_plan(const SharedPlan& plan, const Exchange& exchange, const Doers& doers) {
  Collective& collective = program_.collectives.back();
  for (std::size_t other = 0; other < planned_.size(); ++other) {
    const Planned& known = planned_[other];
    if (program_.collectives[other].communicator != doers.communicator) continue;
    const double ratio = size_ratio(plan->flows, known.plan->flows);
    if (ratio == 0) continue;
    collective.occupancy = program_.collectives[other].occupancy * ratio;
    collective.own_occupancy = program_.collectives[other].own_occupancy * ratio;
    planned_.push_back({plan, doers, exchange.axis, exchange.layout, known.orbit,
                        known.size * ratio, known.links});
    return;
  }
  const bool alone = program_.communicators[doers.communicator].ranks.size() == 1;
  FoldedLinks::Orbit orbit;
  const CollectiveLinks& links = folded_.add_collective(
      plan, {doers.group, exchange.axis, exchange.layout, doers.rank, alone}, orbit);
  planned_.push_back({plan, doers, exchange.axis, exchange.layout,
                      std::make_shared<FoldedLinks::Orbit>(std::move(orbit)), 1, &links});
  collective.occupancy = links.busy;
  collective.own_occupancy = links.own_busy;
}

/// Returns the communicator of the group with which `rank` does an exchange.
int Wiring::communicator_of(const Exchange& exchange, int rank) {
  const auto [of_rank, first] = of_rank_.try_emplace({exchange.axis, exchange.layout, rank}, -1);
  if (!first) return of_rank->second;
  std::vector<int> group = folded_.group_of_rank(exchange, rank);
  const auto [entry, fresh] =
      of_group_.try_emplace({exchange.axis, exchange.layout, group.front()},
                            static_cast<int>(program_.communicators.size()));
  of_rank->second = entry->second;
  if (!fresh) return entry->second;
  auto& ranks = program_.communicators.emplace_back().ranks;
  const int simulated = static_cast<int>(inputs_.schedule.ranks.size());
  for (int other = 0; other < simulated; ++other) {
    const int device = folded_.device_of_rank(other);
    if (std::find(group.begin(), group.end(), device) != group.end()) ranks.push_back(other);
  }
  CHECK(std::find(ranks.begin(), ranks.end(), rank) != ranks.end(), "a rank in its own group");
  groups_[entry->second] = std::move(group);
  return entry->second;
}

std::string Wiring::finish() {
  for (std::size_t c = 0; c < program_.collectives.size(); ++c) make_flows(static_cast<int>(c));
  std::string problem = fold_links();
  for (Channel& channel : program_.channels) {
    if (channel.wire < 0 || !channel.flows.empty()) continue;
    channel.occupancy = channel.bytes / program_.wires[channel.wire].bandwidth;
  }
  mark_shared_links(program_);
  return problem;
}

/// Makes the flows of a collective; where ranks stand for others, equal flows are one.
void Wiring::make_flows(int index) {
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
      const auto [entry, fresh] = communicator_wires_.try_emplace(
          {collective.communicator, i, way}, static_cast<int>(program_.wires.size()));
      if (fresh) {
        ways_.push_back(way);
        program_.wires.push_back({.communicator = collective.communicator});
      }
      collective.flows.push_back({entry->second, equal[i]});
    }
  }
}

const FlowWays& Wiring::ways_of(const Planned& planned) {
  const auto [entry, fresh] = class_ways_.try_emplace(planned.links);
  if (fresh) entry->second = folded_.class_ways(*planned.links);
  return entry->second;
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

int Wiring::link_index(LinkId id) {
  const auto [entry, fresh] = links_.try_emplace(id, static_cast<int>(program_.links.size()));
  if (fresh) {
    const Link made = link(inputs_.cluster, id);
    program_.links.push_back({made.name, made.bandwidth});
    raw_links_.push_back(id);
  }
  return entry->second;
}

/// Returns for each communicator whether another user shares one of its links.
std::vector<bool> Wiring::communicators_that_meet(const std::vector<LinkUse>& uses) const {
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
std::vector<Wiring::LinkUse> Wiring::link_uses() {
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
std::string Wiring::share_links() {
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
  return problem.empty() ? uneven : problem;
}

/// Follows flows that are not alike, and that nothing else meets, with every device. Says which of
/// those that others meet are not alike; empty if none are.
std::string Wiring::part_uneven_flows(const std::vector<LinkUse>& uses) {
  std::vector<std::pair<int, const FoldedLinks::Orbit*>> orbits;
  for (const Planned& p : planned_) orbits.emplace_back(p.doers.communicator, p.orbit.get());
  const std::vector<bool> meets_equals = meet_equals(orbits);
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    if (part_uneven_flows(static_cast<int>(c), uses, meets_equals[c])) continue;
    return "the devices with device " + std::to_string(planned_[c].doers.group.front()) +
           " send more and less in one collective, beside others";
  }
  return "";
}

bool Wiring::part_uneven_flows(int index, const std::vector<LinkUse>& uses, bool meets_equals) {
  const Planned& planned = planned_[index];
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

FoldedLinks::Member Wiring::member_of(const Planned& planned) const {
  return {planned.doers.group, planned.axis, planned.layout, planned.doers.rank, false};
}

/// Gives each collective its own share of the links that its communicator alone uses.
void Wiring::share_in_turn(std::vector<LinkUse>& uses, const std::vector<bool>& meets) {
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

std::vector<Wiring::Crossings> Wiring::crossings_of_equals() {
  std::vector<Crossings> crossings(program_.wires.size());
  for (std::size_t w = 0; w < orbits_.size(); ++w) {
    std::unordered_map<LinkId, int> counts;
    for (const FoldedLinks::Use& use : orbits_[w]) counts[folded_.link_of(use)] += use.messages;
    crossings[w] = alike_crossings(counts);
  }
  std::set<const FoldedLinks::Orbit*> seen;
  for (std::size_t c = 0; c < planned_.size(); ++c) {
    if (seen.insert(planned_[c].orbit.get()).second) add_crossings_of(c, crossings);
  }
  return crossings;
}

Wiring::Crossings Wiring::alike_crossings(const std::unordered_map<LinkId, int>& counts) {
  Crossings crossings;
  for (const auto& [link, times] : folded_.alike_crossings(counts)) {
    crossings[link_index(link)] = times;
  }
  return crossings;
}

/// Adds those of the flows of a collective. Flows of different sizes on one wire are not alike, nor
/// are those of collectives that use a wire differently.
void Wiring::add_crossings_of(std::size_t collective, std::vector<Crossings>& crossings) {
  const Planned& planned = planned_[collective];
  const FlowWays& class_ways = ways_of(planned);
  const std::vector<Flow>& flows = planned.plan->flows;
  if (flows.empty()) return;
  std::vector<std::set<Bytes>> sizes(class_ways.ways.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    sizes[class_ways.of_flow[f]].insert(flows[f].bytes);
  }
  const auto& counts = folded_.crossed(*planned.links, member_of(planned), class_ways.of_flow);
  std::map<int, std::size_t> ways;  // by wire
  for (std::size_t w = 0; w < class_ways.ways.size(); ++w) {
    ways[program_.collectives[collective].flows[w].wire] = w;  // one of each way, see make_flows
  }
  for (const auto& [wire, way] : ways) {
    Crossings made = alike_crossings(counts[way]);
    for (auto& [link, count] : made) {
      const auto known = crossings[wire].find(link);
      const bool other = known != crossings[wire].end() && known->second != count;
      if (sizes[way].size() > 1 || other) count = 0;
    }
    crossings[wire].swap(made);
  }
}

/// Lets each wire cross `link` as often as its equals do, times what all these have in common.
/// False if the links of its class are not crossed alike.
bool Wiring::weigh(int link, const std::vector<Crossings>& crossings, LinkUse& use) {
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
void Wiring::note_use(std::vector<LinkUse>& uses, int user, const std::vector<int>& wires,
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
void Wiring::note_loads(int index) {
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
