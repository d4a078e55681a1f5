// Lowers execution traces: each node becomes an instruction, what it waits for some before it.
// SPDX-License-Identifier: Apache-2.0
//
// Each event is of one node, so it has one generation. A message is received by the stream that
// asks for it; by a stream of its own if several or none do, or if its sender waits for it.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "sim/lower/wiring.h"
#include "sim/program/ticks.h"
#include "sim/workloads/trace_streams.h"

namespace interlock {
namespace {

/// Returns the inputs of wiring for a program without stages: rank r is device r.
LowerInputs wiring_inputs(const Cluster& cluster, int ranks) {
  LowerInputs inputs{.schedule = {.stages = ranks}, .cluster = cluster};
  inputs.schedule.ranks.resize(static_cast<std::size_t>(ranks));
  inputs.mesh.degree(Dimension::Pipeline) = ranks;
  return inputs;
}

class Lowering {
 public:
  Lowering(const TraceGraph& graph, const Cluster& cluster)
      : graph_(graph),
        ranks_(static_cast<int>(graph.first.size()) - 1),
        inputs_(wiring_inputs(cluster, ranks_)),
        wiring_(inputs_, false, program_),
        event_of_(graph.nodes.size(), -1),
        channel_of_(graph.nodes.size(), -1),
        askers_(graph.nodes.size(), 0),
        placed_(graph.nodes.size(), false) {}

  Program lower() {
    lay_steps();
    for (int rank = 0; rank < ranks_; ++rank) laid_.push_back(lay_streams(graph_, rank));
    make_channels();
    make_meetings();
    make_copies();
    note_waits();
    for (int rank = 0; rank < ranks_; ++rank) write_rank(rank);
    wiring_.finish();
    round_durations(program_, std::numeric_limits<double>::max());
    return std::move(program_);
  }

 private:
  const GraphNode& at(int node) const { return graph_.nodes[static_cast<std::size_t>(node)]; }
  int& event_of(int node) { return event_of_[static_cast<std::size_t>(node)]; }
  int nodes() const { return static_cast<int>(graph_.nodes.size()); }
  /// Returns the micro-batch of a node; nodes that meet have the same. In traces of a tool that
  /// knows no micro-batches each op of a rank is one, and each collective of the run.
  int micro_batch(int node) const {
    const GraphNode& own = at(node);
    if (!graph_.steps) return own.meeting >= 0 ? own.meeting : own.number;
    if (own.meeting >= 0) return graph_.meetings[own.meeting].micro_batch;
    return own.kind == NodeKind::Receive ? at(own.partner).node->micro_batch
                                         : own.node->micro_batch;
  }

  void lay_steps() {
    program_.ranks.resize(static_cast<std::size_t>(ranks_));
    const TraceSteps steps = graph_.steps.value_or(TraceSteps{.stages = ranks_});
    program_.stages = steps.stages;
    program_.steps = steps.steps;
    program_.micro_batches = steps.micro_batches;
    program_.update_every = steps.update_every;
    for (int i = 0; i < nodes() && !graph_.steps; ++i) {
      program_.micro_batches = std::max(program_.micro_batches, micro_batch(i) + 1);
    }
  }

  /// One for each message, unless the trace says that several are one queue: those of another tool
  /// may be taken in any order.
  void make_channels() {
    std::map<std::tuple<int, int, int, double>, int> queues;
    for (int i = 0; i < nodes(); ++i) {
      if (at(i).kind != NodeKind::Send) continue;
      const ExecutionNode& sent = *at(i).node;
      int fresh = -1;
      const auto queue = std::tuple{sent.from, sent.to, sent.tag, sent.bytes.value()};
      int& channel = sent.ordered ? queues.try_emplace(queue, -1).first->second : fresh;
      if (channel < 0) channel = wiring_.add_channel(channel_of(i));
      channel_of_[static_cast<std::size_t>(i)] = channel;
      channel_of_[static_cast<std::size_t>(at(i).partner)] = channel;
    }
  }

  Channel channel_of(int send) const {
    const ExecutionNode &sent = *at(send).node, &received = *at(at(send).partner).node;
    // A trace says nothing of memory: a message frees none of its sender's and takes none.
    Channel channel{.from_rank = sent.from,
                    .to_rank = sent.to,
                    .from_stage = sent.from,
                    .to_stage = sent.to,
                    .depth = sent.depth,
                    .synchronous = sent.synchronous,
                    .sender_waits = sent.sender_waits,
                    .from_resident = true,
                    .bytes = sent.bytes,
                    .received = Bytes(0)};
    if (graph_.steps && sent.cargo && received.cargo) {
      channel.cargo = sent.cargo->cargo;
      channel.from_stage = sent.cargo->stage;
      channel.to_stage = received.cargo->stage;
    }
    return channel;
  }

  int new_event(const Event& event) {
    program_.events.push_back(event);
    return static_cast<int>(program_.events.size()) - 1;
  }

  void make_meetings() {
    for (const std::vector<int>& ranks : graph_.groups) program_.communicators.push_back({ranks});
    std::vector<int> events;
    for (const Meeting& meeting : graph_.meetings) {
      Event event{.recorders = static_cast<int>(
                      graph_.groups[static_cast<std::size_t>(meeting.group)].size())};
      if (meeting.kind) {
        event.collective = wiring_.collective_of_communicator(
            {.kind = *meeting.kind, .axis = MeshAxis::Data, .bytes = meeting.bytes}, meeting.group);
      }
      events.push_back(new_event(event));
    }
    for (int i = 0; i < nodes(); ++i) {
      if (at(i).meeting >= 0) event_of(i) = events[static_cast<std::size_t>(at(i).meeting)];
    }
  }

  /// To and from hosts: collectives of one member, a communicator for each direction.
  void make_copies() {
    std::map<std::pair<int, NodeKind>, int> communicators;
    for (int i = 0; i < nodes(); ++i) {
      const GraphNode& node = at(i);
      if (node.kind != NodeKind::Load && node.kind != NodeKind::Store) continue;
      const auto [communicator, fresh] = communicators.try_emplace(
          {node.rank, node.kind}, static_cast<int>(program_.communicators.size()));
      if (fresh) program_.communicators.push_back({{node.rank}});
      const MeshAxis way = node.kind == NodeKind::Load ? MeshAxis::FromHost : MeshAxis::ToHost;
      event_of(i) =
          new_event({.collective = wiring_.collective_of_communicator(
                         {.kind = CollectiveKind::HostCopy, .axis = way, .bytes = node.node->bytes},
                         communicator->second)});
    }
  }

  /// Events of all that some stream waits for but the arrival of what it alone receives.
  void note_waits() {
    visit_placed(
        [&](const StreamNode& placed) { placed_[static_cast<std::size_t>(placed.node)] = true; });
    visit_placed([&](const StreamNode& placed) {
      for (const int before : placed.waits) note_wait(before);
    });
    for (int i = 0; i < nodes(); ++i) {
      if (at(i).kind == NodeKind::Receive && asks(i) > 1) need_event(i);
    }
  }

  template <class Visit>
  void visit_placed(const Visit& visit) const {
    for (const RankStreams& laid : laid_) {
      for (const auto& stream : laid.streams) std::for_each(stream.begin(), stream.end(), visit);
    }
  }

  void note_wait(int before) {
    switch (at(before).kind) {
      case NodeKind::Receive:
        if (is_placed(before)) return need_event(before);
        ++asks(before);
        return;
      case NodeKind::Send:
        if (holds_sender(*at(before).node)) return need_event(before);
        need_event(at(before).partner);
        event_of(before) = event_of(at(before).partner);
        return;
      case NodeKind::Compute:
        return need_event(before);
      default:
        return;
    }
  }

  bool is_placed(int node) const { return placed_[static_cast<std::size_t>(node)]; }
  int& asks(int node) { return askers_[static_cast<std::size_t>(node)]; }
  void need_event(int node) {
    if (event_of(node) < 0) event_of(node) = new_event({});
  }

  void write_rank(int index) {
    const RankStreams& laid = laid_[static_cast<std::size_t>(index)];
    Rank& rank = program_.ranks[static_cast<std::size_t>(index)];
    rank.first_stream = static_cast<int>(program_.streams.size());
    known_ops_.clear();
    for (const std::vector<StreamNode>& stream : laid.streams) {
      begin_stream();
      for (const StreamNode& placed : stream) write_node(rank, placed);
      end_stream();
    }
    for (int i = graph_.first[static_cast<std::size_t>(index)];
         i < graph_.first[static_cast<std::size_t>(index) + 1]; ++i) {
      if (at(i).kind != NodeKind::Receive || is_placed(i)) continue;
      if (event_of(i) < 0 && asks(i) > 0) continue;  // received where it is asked for
      begin_stream();
      emit(Opcode::Receive, channel_of_[static_cast<std::size_t>(i)], i);
      if (event_of(i) >= 0) emit(Opcode::Record, event_of(i), i);
      end_stream();
    }
    const auto streams = [&] { return static_cast<int>(program_.streams.size()); };
    if (streams() == rank.first_stream) begin_stream();  // every rank has one
    rank.streams = streams() - rank.first_stream;
    if (rank.streams > 1) rank.order.assign(laid.order.begin(), laid.order.end());
    std::sort(rank.stages.begin(), rank.stages.end());
  }

  void begin_stream() {
    program_.streams.push_back({.first = static_cast<int>(program_.segments.size()), .count = 1});
    program_.segments.push_back({.first = static_cast<int>(program_.instructions.size())});
  }
  void end_stream() {
    Segment& last = program_.segments.back();
    last.count = static_cast<int>(program_.instructions.size()) - last.first;
  }

  void write_node(Rank& rank, const StreamNode& placed) {
    const int i = placed.node;
    for (const int before : placed.waits) {
      if (at(before).kind == NodeKind::Receive && event_of(before) < 0) {
        emit(Opcode::Receive, channel_of_[static_cast<std::size_t>(before)], before);
      } else {
        emit(Opcode::Wait, event_of(before), before);
      }
    }
    switch (at(i).kind) {
      case NodeKind::Compute:
        emit(Opcode::Compute, op(rank, at(i)), i);
        break;
      case NodeKind::Send:
        emit(Opcode::Send, channel_of_[static_cast<std::size_t>(i)], i);
        if (!holds_sender(*at(i).node)) return;  // who receives it records that it is there
        break;
      case NodeKind::Receive:
        emit(Opcode::Receive, channel_of_[static_cast<std::size_t>(i)], i);
        break;
      default:
        break;
    }
    if (event_of(i) >= 0) emit(Opcode::Record, event_of(i), i);
  }
  void emit(Opcode code, int index, int node) {
    program_.instructions.push_back({code, index, micro_batch(node)});
  }

  /// Returns the op of a node; of another tool: a forward of the stage that its rank is.
  int op(Rank& rank, const GraphNode& node) {
    const NodeOp said =
        graph_.steps ? *node.node->op : NodeOp{OpKind::F, node.rank, node.rank, true};
    OpInfo info{.kind = said.kind,
                .stage = said.stage,
                .loss = said.loss,
                .useful = said.useful,
                .duration = node.node->duration,
                .flops = node.node->flops};
    const std::tuple key{
        said.kind, said.stage, said.loss, said.useful, info.duration.value(), info.flops.value()};
    const auto [entry, fresh] = known_ops_.try_emplace(key, program_.ops.size());
    if (!fresh) return entry->second;
    program_.ops.emplace_back(std::move(info)).counted = node.node->flops;
    std::vector<int>& stages = rank.stages;
    if (!std::count(stages.begin(), stages.end(), said.stage)) stages.push_back(said.stage);
    return entry->second;
  }

  const TraceGraph& graph_;
  int ranks_;
  LowerInputs inputs_;
  Program program_;
  Wiring wiring_;
  std::vector<RankStreams> laid_;
  std::vector<int> event_of_, channel_of_;  // by node; -1: none
  std::vector<int> askers_;                 // of a Receive: streams that wait for it
  std::vector<bool> placed_;                // in a stream
  std::map<std::tuple<OpKind, int, int, bool, double, double>, int> known_ops_;  // of a rank
};

}  // namespace

Program lower_traces(const std::vector<ExecutionTrace>& traces, const Cluster& cluster) {
  check_devices(traces, cluster);
  return Lowering(graph_of(traces), cluster).lower();
}

}  // namespace interlock
