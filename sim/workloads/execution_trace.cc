// A run as execution traces: what it realised, as nodes of each rank.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/execution_trace.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "sim/engines/engines.h"
#include "sim/program/issue_order.h"
#include "sim/program/log_index.h"

namespace interlock {
namespace {

/// Refuses what no graph of nodes can say.
void check_words(const Program& program) {
  for (const Channel& channel : program.channels) {
    if (channel.replay >= 0) {
      throw Error("how often its stages replay depends on times, which such a trace cannot say");
    }
    if (!channel.flows.empty()) {
      throw Error(
          "stages of different layouts send over several links at once, which is no message from "
          "one rank to another");
    }
  }
  for (const Collective& collective : program.collectives) {
    const bool shifts =
        collective.kind == CollectiveKind::Shift || collective.kind == CollectiveKind::Halo;
    if (shifts) {
      throw Error("neighbours shift tensors or halos, which such a trace has no collective for");
    }
  }
}

void check_whole(const Program& program, const TraceLog& log) {
  std::int64_t ops = 0;
  for (const Stream& stream : program.streams) {
    for (Cursor cursor(program, stream); !cursor.done(); cursor.next()) {
      if (cursor.instruction().code == Opcode::Compute) ++ops;
    }
  }
  if (ops == std::ssize(log.spans)) return;
  throw Error("the run is too long to be kept whole; expected fewer steps, e.g. training.steps 1");
}

void add(std::vector<int>& nodes, const std::vector<int>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

/// Makes the nodes of all ranks along the issues of a program in the order that it realised. The
/// next node of a stream comes after what the stream has waited for since its last op. Messages
/// within a rank, and events that one rank alone records, become plain dependencies; events of
/// several ranks become barriers.
class NodeWriter {
 public:
  NodeWriter(const Program& program, const TraceLog& log, const std::vector<int>& devices)
      : program_(program),
        log_(log),
        devices_(devices),
        places_(program, log),
        rank_of_(ranks_of_streams(program)),
        streams_(program.streams.size()),
        ranks_(program.ranks.size()),
        events_(program.events.size()) {
    for (const Span& span : log.spans) ranks_[span.rank].spans.push_back(&span);
  }

  /// Returns the nodes of each rank, in order of time. To be called once.
  std::vector<std::vector<ExecutionNode>> write() {
    const Code code = code_without_memory(program_);
    std::vector<std::size_t> most(ranks_.size(), 0);  // nodes
    visit_issues(program_, code, [&](const Issue& issue, const Cursor&) {
      if (issue.instruction.code == Opcode::Record) expect(issue);
      if (issue.instruction.code != Opcode::Wait) ++most[rank_of_[issue.stream]];
      return true;
    });
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].nodes.reserve(most[rank]);
    }
    visit_issues(program_, code, [this](const Issue& issue, const Cursor&) {
      step(issue);
      return true;
    });
    take_the_rest();
    std::vector<std::vector<ExecutionNode>> nodes;
    for (OwnNodes& own : ranks_) nodes.push_back(in_order_of_time(std::move(own.nodes)));
    return nodes;
  }

 private:
  static constexpr int kNone = -1;
  using Nodes = std::vector<int>;  // of one rank, as they are made, from 0

  struct Standing {
    Nodes needs;  // what its next node comes after
    int places = 0;
  };
  struct OwnNodes {
    std::vector<const Span*> spans;  // its ops, in order
    std::size_t turn = 0;            // of these
    std::vector<ExecutionNode> nodes;
    std::vector<Seconds> ends;  // of the nodes, at the earliest
    int last_op = kNone;
    std::map<int, int> communicator_last;  // the last node of a communicator

    int newest() const { return static_cast<int>(nodes.size()) - 1; }
  };
  struct Message {
    int channel = 0, sender = 0;  // stream
    bool received = false;
    Nodes sent, taken;  // within a rank
  };
  struct EventRanks {
    int recorder = kNone;  // the last
    bool several = false;
  };
  /// Counts what one rank has done for a generation of an event.
  struct Generation {
    int expected = 0, records = 0;
    Nodes done;
  };

  OwnNodes& own_of(const Issue& issue) { return ranks_[rank_of_[issue.stream]]; }
  Nodes& needs_of(const Issue& issue) { return streams_[issue.stream].needs; }
  Generation& generation(std::int32_t slot, const Issue& issue) {
    return generations_[{slot, rank_of_[issue.stream]}];
  }

  /// Notes a Record that will come.
  void expect(const Issue& issue) {
    const auto [code, index, micro_batch] = issue.instruction;
    const int rank = rank_of_[issue.stream];
    EventRanks& ranks = events_[index];
    const int before = std::exchange(ranks.recorder, rank);
    ranks.several = ranks.several || (before != kNone && before != rank);
    ++generation(issue.slot, issue).expected;
    const Event& event = program_.events[index];
    if (!issue.completes || event.collective < 0) return;
    const std::int32_t entry = places_.find(event, micro_batch, Seconds(0));
    if (entry < 0) return;
    places_.take(entry);
    collectives_[issue.slot] = entry;
  }

  void step(const Issue& issue) {
    switch (issue.instruction.code) {
      case Opcode::Compute:
        return compute(issue);
      case Opcode::Send:
        return send(issue);
      case Opcode::Receive:
        return receive(issue);
      case Opcode::Record:
        return record(issue);
      case Opcode::Wait:
        if (issue.slot < 0) return;
        join_ahead(issue);
        add(needs_of(issue), generation(issue.slot, issue).done);
        return;
      default:
        return;
    }
  }

  void compute(const Issue& issue) {
    OwnNodes& own = own_of(issue);
    Nodes& needs = needs_of(issue);
    const Span& span = *own.spans[own.turn++];
    const OpInfo& info = program_.ops[span.op];
    if (own.last_op >= 0) add(needs, {own.last_op});
    ExecutionNode& node = make(NodeKind::Compute, issue.stream, needs);
    node.name = std::to_string(info.stage) + letter(info.kind) + std::to_string(span.micro_batch);
    node.micro_batch = span.micro_batch;
    node.start = span.start;
    node.duration = span.end - span.start;
    node.flops = info.flops;
    node.op = {info.kind, info.stage, info.loss, info.useful};
    own.ends.back() = span.end;
    own.last_op = own.newest();
    needs = {own.last_op};
  }

  /// To a stage of the same rank: a dependency, and another one on the message that made room.
  void send(const Issue& issue) {
    const int index = issue.instruction.index;
    const Channel& channel = program_.channels[index];
    Nodes& needs = needs_of(issue);
    Message& message = messages_.emplace_back();
    message.channel = index;
    message.sender = issue.stream;
    if (channel.wire < 0) {
      if (issue.after >= 0) add(needs, messages_[issue.after].taken);
      message.sent = needs;
      return;
    }
    make_message(NodeKind::Send, issue.stream, needs, issue.instruction);
    if (channel.synchronous || channel.sender_waits) needs = {own_of(issue).newest()};
  }

  void receive(const Issue& issue) {
    const Channel& channel = program_.channels[issue.instruction.index];
    Nodes& needs = needs_of(issue);
    Message& message = messages_[issue.slot];
    message.received = true;
    if (channel.wire >= 0) {
      make_message(NodeKind::Receive, issue.stream, needs, issue.instruction);
      needs = {own_of(issue).newest()};
      return;
    }
    if (channel.depth == 0) add(streams_[message.sender].needs, needs);
    add(needs, message.sent);
    message.taken = needs;
  }

  /// Messages that no stage needs any more, so that all have two ends.
  void take_the_rest() {
    const int micro_batch = program_.micro_batches * program_.steps - 1;
    std::stable_sort(messages_.begin(), messages_.end(),
                     [](const Message& a, const Message& b) { return a.channel < b.channel; });
    for (const Message& message : messages_) {
      const Channel& channel = program_.channels[message.channel];
      if (message.received || channel.wire < 0) continue;
      const int last_op = ranks_[channel.to_rank].last_op;
      make_message(NodeKind::Receive, program_.ranks[channel.to_rank].first_stream,
                   last_op < 0 ? Nodes{} : Nodes{last_op},
                   {Opcode::Receive, message.channel, micro_batch});
    }
  }

  void make_message(NodeKind kind, int stream, const Nodes& after, const Instruction& message) {
    const int index = message.index, micro_batch = message.micro_batch;
    const Channel& channel = program_.channels[index];
    ExecutionNode& node = make(kind, stream, after);
    node.name = std::string(kind == NodeKind::Send ? "send " : "receive ") +
                std::to_string(channel.from_stage) + " to " + std::to_string(channel.to_stage) +
                ", " + std::to_string(micro_batch);
    node.micro_batch = micro_batch;
    node.from = devices_[channel.from_rank];
    node.to = devices_[channel.to_rank];
    node.tag = index;
    node.bytes = channel.bytes;
    const bool sends = kind == NodeKind::Send;
    node.cargo = {channel.cargo, sends ? channel.from_stage : channel.to_stage};
    node.ordered = true;
    node.depth = channel.depth;
    node.synchronous = channel.synchronous;
    node.sender_waits = channel.sender_waits;
    node.duration = channel.occupancy + channel.latency;
  }

  void record(const Issue& issue) {
    const Event& event = program_.events[issue.instruction.index];
    OwnNodes& own = own_of(issue);
    Nodes& needs = needs_of(issue);
    if (event.in_turn && issue.after < 0) {
      const auto before =
          own.communicator_last.find(program_.collectives[event.collective].communicator);
      if (before != own.communicator_last.end()) add(needs, {before->second});
    }
    Generation& done = generation(issue.slot, issue);
    add(done.done, issue.after < 0 ? needs : generation(issue.after, issue).done);
    ++done.records;
    if (event.collective >= 0) {
      join(event, issue, done.done);
    } else if (!events_[issue.instruction.index].several) {
      return;
    } else if (done.records == done.expected) {
      ExecutionNode& barrier = make(NodeKind::Collective, issue.stream, done.done);
      barrier.name = "barrier, " + std::to_string(issue.instruction.micro_batch);
      barrier.micro_batch = issue.instruction.micro_batch;
      // Groups of collectives are communicators; those of barriers come behind.
      const auto index = static_cast<std::size_t>(issue.instruction.index);
      barrier.group = std::to_string(program_.communicators.size() + index);
      done.done = {own.newest()};
    }
  }

  /// The rank waits for what another one broadcasts, which it has joined long since.
  void join_ahead(const Issue& issue) {
    const Event& event = program_.events[issue.instruction.index];
    Generation& own = generation(issue.slot, issue);
    const bool receives = event.collective >= 0 && own.expected == 0;
    if (!receives) return;
    own.expected = 1;
    join(event, issue, own.done);
  }

  /// The rank joins the collective of a generation, which it has waited for up to now.
  void join(const Event& event, const Issue& issue, Nodes& done) {
    const int micro_batch = issue.instruction.micro_batch;
    const Collective& collective = program_.collectives[event.collective];
    const auto members =
        static_cast<double>(program_.communicators[collective.communicator].ranks.size());
    NodeKind kind = NodeKind::Collective;
    if (collective.axis == MeshAxis::ToHost) kind = NodeKind::Store;
    if (collective.axis == MeshAxis::FromHost) kind = NodeKind::Load;
    ExecutionNode& node = make(kind, issue.stream, done);
    node.name = std::string(is_host(collective.axis) ? "copy" : "collective") + " of stage " +
                std::to_string(collective.stage) + ", " + std::to_string(micro_batch);
    node.micro_batch = micro_batch;
    node.bytes = collective.bytes;
    if (collective.kind == CollectiveKind::AllGather) node.bytes = node.bytes / members;
    node.collective = collective.kind;
    node.group = std::to_string(collective.communicator);
    node.duration = collective.occupancy + collective.latency;
    if (const auto entry = collectives_.find(issue.slot); entry != collectives_.end()) {
      const CollectiveSpan& span = log_.collectives[entry->second];
      node.start = span.start;
      node.duration = span.end - span.start;
    }
    OwnNodes& own = own_of(issue);
    own.ends.back() = node.start + node.duration;
    own.communicator_last[collective.communicator] = own.newest();
    done = {own.newest()};
  }

  ExecutionNode& make(NodeKind kind, int stream, const Nodes& after) {
    const int rank = rank_of_[stream];
    OwnNodes& own = ranks_[rank];
    ExecutionNode& node = own.nodes.emplace_back();
    node.kind = kind;
    node.stream = stream - program_.ranks[rank].first_stream;
    node.place = streams_[stream].places++;
    for (const int other : after) {
      node.after.push_back(static_cast<std::uint64_t>(other));
      node.start = std::max(node.start, own.ends[static_cast<std::size_t>(other)]);
    }
    own.ends.push_back(node.start);
    return node;
  }

  /// Numbered from 1: readers may take an id of 0 for one that is missing.
  static std::vector<ExecutionNode> in_order_of_time(std::vector<ExecutionNode> nodes) {
    std::vector<std::uint64_t> order(nodes.size()), id(nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
      return nodes[a].start < nodes[b].start;
    });
    for (std::size_t place = 0; place < order.size(); ++place) id[order[place]] = place + 1;
    std::vector<ExecutionNode> sorted;
    sorted.reserve(nodes.size());
    for (const std::uint64_t index : order) {
      ExecutionNode& node = sorted.emplace_back(std::move(nodes[index]));
      node.id = id[index];
      for (std::uint64_t& other : node.after) other = id[other];
      std::sort(node.after.begin(), node.after.end());
    }
    return sorted;
  }

  const Program& program_;
  const TraceLog& log_;
  const std::vector<int>& devices_;
  CollectivePlaces places_;
  std::vector<int> rank_of_;  // by stream
  std::vector<Standing> streams_;
  std::vector<OwnNodes> ranks_;
  std::vector<EventRanks> events_;
  std::vector<Message> messages_;                     // by slot
  std::map<std::int32_t, std::int32_t> collectives_;  // in the log, by slot of the generation
  std::map<std::pair<std::int32_t, int>, Generation> generations_;  // by slot and rank
};

}  // namespace

TraceNotes notes_on(const std::vector<ExecutionTrace>& traces) {
  TraceNotes notes;
  for (const ExecutionTrace& trace : traces) {
    for (const ExecutionNode& node : trace.nodes) {
      if (node.kind == NodeKind::Other) ++notes.others;
      const bool timeless = node.kind == NodeKind::Compute && node.duration <= Seconds(0);
      if (timeless && !node.op) ++notes.without_time;  // updates of ours may take none
    }
  }
  return notes;
}

std::vector<ExecutionTrace> execution_traces(const Program& program, const TraceLog& log,
                                             const std::vector<int>& devices) {
  check_words(program);
  check_whole(program, log);
  Program realised = freeze(program, log);
  realised.wire_order.clear();  // queues are order enough
  const TraceSteps steps{.stages = program.stages,
                         .micro_batches = program.micro_batches,
                         .steps = program.steps,
                         .update_every = program.update_every,
                         .measured = program.steps};
  std::vector<ExecutionTrace> traces(program.ranks.size());
  auto nodes = NodeWriter(realised, log, devices).write();
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    CHECK(static_cast<std::size_t>(devices[rank]) < traces.size(), "devices in use have no gaps");
    traces[devices[rank]] = {"", std::move(nodes[rank]), steps};
  }
  return traces;
}

}  // namespace interlock
