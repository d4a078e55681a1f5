// Channels, wires and links, made when lowering first needs them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/run/wiring.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

namespace {

std::int64_t pair_key(int from, int to) { return (static_cast<std::int64_t>(from) << 32) | to; }

int depth_of(const QueuePolicy& queue) {
  switch (queue.kind) {
    case QueuePolicy::Kind::Rendezvous:
      return 0;
    case QueuePolicy::Kind::Buffered:
      return queue.depth;
    case QueuePolicy::Kind::Unlimited:
      break;
  }
  return Channel::kUnlimited;
}

}  // namespace

Wiring::Wiring(const LowerInputs& inputs, bool alone, Program& program)
    : inputs_(inputs),
      program_(program),
      costs_(inputs),
      alone_(alone),
      folded_(inputs, alone),
      lanes_(std::max(inputs.policy.in_flight, inputs.schedule.slices)),
      neighbours_(std::size_t{2} * inputs.schedule.stages * lanes_, -1) {
  CHECK(inputs.policy.in_flight == 1 || inputs.schedule.slices == 1, "lanes of one kind");
}

Bytes Wiring::message_bytes(Cargo cargo, int from_stage, int to_stage, int micro_batch) const {
  switch (cargo) {
    case Cargo::Activation:
      return costs_.of_stage(from_stage, micro_batch).output;
    case Cargo::Gradient: {
      const Bytes tensor = costs_.input_gradient({.stage = from_stage, .micro_batch = micro_batch});
      if (inputs_.policy.kind != ScheduleKind::List) return tensor;
      const auto& traversals = inputs_.roles[from_stage].traversals;
      const auto tensors = std::count_if(traversals.begin(), traversals.end(),
                                         [](const Traversal& t) { return t.to_previous; });
      return tensor * static_cast<double>(tensors);
    }
    case Cargo::Readout:
      return costs_.of_stage(to_stage, micro_batch).readout;
    case Cargo::Copy:
      return costs_.of_stage(from_stage, micro_batch).state.gradients;
  }
  return Bytes(0);
}

int Wiring::channel(Cargo cargo, int from_stage, int to_stage, int micro_batch) {
  const int lane = micro_batch % lanes_;
  if (cargo == Cargo::Readout || cargo == Cargo::Copy) {
    auto& known = cargo == Cargo::Readout ? readouts_ : copies_;
    const int way = cargo == Cargo::Readout ? lane : from_stage;
    const auto [entry, fresh] = known.try_emplace(pair_key(to_stage, way), -1);
    if (fresh) entry->second = make_channel(cargo, from_stage, to_stage, micro_batch);
    return entry->second;
  }
  // A stage has one from which activations come, and one to which its gradients go.
  const int end = cargo == Cargo::Activation ? to_stage * 2 : from_stage * 2 + 1;
  int& found = neighbours_[end * lanes_ + lane];
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
  // Copies of resident bytes wait for nobody.
  const bool resident = cargo == Cargo::Readout || cargo == Cargo::Copy;
  if (resident) {
    channel.depth = Channel::kUnlimited;
    channel.from_resident = true;
  }
  channel.read_by_head = cargo == Cargo::Activation && inputs_.roles[from_stage].head &&
                         to_stage == costs_.after(from_stage).front() && channel.bytes > Bytes(0);
  // Nor can a stream wait for itself.
  const bool one_device = channel.from_rank == channel.to_rank;
  if (one_device && inputs_.schedule.ranks[channel.from_rank].size() == 1) {
    channel.depth = Channel::kUnlimited;
  }
  if (channel.from_rank != channel.to_rank) {
    channel.wire = wire(channel.from_rank, channel.to_rank);
    channel.latency = latencies_[channel.wire];
    if (!resident) channel.bytes = channel.bytes / inputs_.policy.message_parts;
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

int Wiring::add_channel(Channel channel) {
  channel.wire = wire(channel.from_rank, channel.to_rank);
  channel.latency = latencies_[channel.wire];
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

}  // namespace interlock
