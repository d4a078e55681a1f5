// Channels, wires and links, made when lowering first needs them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/wiring.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "sim/lower/links/link_sharing.h"
#include "sim/lower/links/shared_links.h"

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
  CollectiveDoers doers{.rank = first, .stage = first, .communicator = communicator};
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

int Wiring::add_collective(const Exchange& exchange, const SharedPlan& plan,
                           const CollectiveDoers& doers) {
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
void Wiring::add_plan(const SharedPlan& plan, const Exchange& exchange,
                      const CollectiveDoers& doers) {
  Collective& collective = program_.collectives.back();
  for (std::size_t other = 0; other < planned_.size(); ++other) {
    const PlannedCollective& known = planned_[other];
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
  LinkSharing sharing(inputs_, alone_, folded_, {planned_, orbits_, std::move(ways_)}, program_);
  std::string problem = sharing.finish();
  for (Channel& channel : program_.channels) {
    if (channel.wire < 0 || !channel.flows.empty()) continue;
    channel.occupancy = channel.bytes / program_.wires[channel.wire].bandwidth;
  }
  mark_shared_links(program_);
  return problem;
}

}  // namespace interlock
