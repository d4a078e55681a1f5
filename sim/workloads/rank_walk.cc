// Walks the streams of one rank, and puts the nodes that it makes into order of time.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/rank_walk.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace interlock {
namespace {

void add(std::vector<int>& nodes, const std::vector<int>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

RankWalk::RankWalk(const RealisedRun& run, int rank)
    : run_(run),
      program_(run.program),
      rank_(rank),
      local_(program_.channels.size()),
      first_free_(program_.collectives.size(), 0) {
  const Rank& own = program_.ranks[rank];
  for (int s = own.first_stream; s < own.first_stream + own.streams; ++s) {
    streams_.push_back({Cursor(program_, program_.streams[s]), {}});
  }
  visit_rank(program_, own, [&](const Cursor& cursor) {
    const Instruction& instruction = cursor.instruction();
    if (instruction.code != Opcode::Record) return;
    ++events_[turn_of(instruction.index, cursor.micro_batch())].expected;
  });
  for (const auto& spans : run.collectives) taken_.emplace_back(spans.size(), false);
}

std::vector<ExecutionNode> RankWalk::nodes() {
  for (bool progress = true; progress;) {
    progress = false;
    for (lane_ = 0; lane_ < static_cast<int>(streams_.size()); ++lane_) {
      Standing& stream = streams_[lane_];
      for (; !stream.cursor.done() && step(stream); stream.cursor.next()) progress = true;
    }
  }
  for (const Standing& stream : streams_) {
    CHECK(stream.cursor.done(), "a run that was realised can be walked");
  }
  take_the_rest();
  return in_order_of_time();
}

/// One instruction; false if the stream stands until another one has gone on.
bool RankWalk::step(Standing& stream) {
  switch (stream.cursor.instruction().code) {
    case Opcode::Compute:
      return compute(stream);
    case Opcode::Send:
      return send(stream);
    case Opcode::Receive:
      return receive(stream);
    case Opcode::Record:
      return record(stream);
    case Opcode::Wait:
      return wait(stream);
    case Opcode::Allocate:
    case Opcode::Free:
      return true;
  }
  return true;
}

bool RankWalk::compute(Standing& stream) {
  const std::vector<std::int32_t>& order = program_.ranks[rank_].order;
  CHECK(op_turn_ < order.size(), "an order of all ops");
  if (order[op_turn_] != lane_) return false;
  const Span& span = *run_.spans[rank_][op_turn_++];
  const OpInfo& info = program_.ops[span.op];
  if (last_op_ >= 0) add(stream.needs, {last_op_});
  ExecutionNode& node = make(NodeKind::Compute, stream.needs);
  node.name = std::to_string(info.stage) + letter(info.kind) + std::to_string(span.micro_batch);
  node.micro_batch = span.micro_batch;
  node.start = span.start;
  node.duration = span.end - span.start;
  node.flops = info.flops;
  node.op = {info.kind, info.stage, info.loss, info.useful};
  ends_.back() = span.end;
  last_op_ = newest();
  stream.needs = {last_op_};
  return true;
}

bool RankWalk::send(Standing& stream) {
  const int index = stream.cursor.instruction().index;
  const Channel& channel = program_.channels[index];
  if (channel.wire < 0) return send_within(stream, channel, local_[index]);
  make_message(NodeKind::Send, stream.needs, *stream.cursor.standing());
  if (channel.synchronous || channel.sender_waits) stream.needs = {newest()};
  return true;
}

/// To a stage of the same rank: a dependency, and another one on whoever made room or asked.
bool RankWalk::send_within(Standing& stream, const Channel& channel, LocalChannel& queue) {
  if (channel.depth > 0 && queue.sent.size() >= static_cast<std::size_t>(channel.depth)) {
    const std::size_t before = queue.sent.size() - static_cast<std::size_t>(channel.depth);
    if (queue.taken.size() <= before) return false;
    add(stream.needs, queue.taken[before]);
  }
  if (!stream.handed_over) queue.sent.push_back(stream.needs);
  if (channel.depth != 0) return true;
  const std::size_t number = queue.sent.size() - 1;
  stream.handed_over = queue.asked.size() <= number;
  if (stream.handed_over) return false;
  add(stream.needs, queue.asked[number]);
  return true;
}

bool RankWalk::receive(Standing& stream) {
  const int index = stream.cursor.instruction().index;
  if (program_.channels[index].wire >= 0) {
    make_message(NodeKind::Receive, stream.needs, *stream.cursor.standing());
    stream.needs = {newest()};
    return true;
  }
  LocalChannel& queue = local_[index];
  if (queue.asked.size() == queue.taken.size()) queue.asked.push_back(stream.needs);
  if (queue.sent.size() <= queue.taken.size()) return false;
  add(stream.needs, queue.sent[queue.taken.size()]);
  queue.taken.push_back(stream.needs);
  return true;
}

/// Messages that nobody needs any more, so that all have two ends.
void RankWalk::take_the_rest() {
  lane_ = 0;
  for (int c = 0; c < static_cast<int>(program_.channels.size()); ++c) {
    const Channel& channel = program_.channels[c];
    if (channel.to_rank != rank_ || channel.wire < 0) continue;
    for (int i = 0; i < run_.untaken[c]; ++i) {
      make_message(NodeKind::Receive, last_op_ < 0 ? Nodes{} : Nodes{last_op_},
                   {Opcode::Receive, c, program_.micro_batches * program_.steps - 1});
    }
  }
}

void RankWalk::make_message(NodeKind kind, const Nodes& after, const Instruction& message) {
  const int index = message.index, micro_batch = message.micro_batch;
  const Channel& channel = program_.channels[index];
  ExecutionNode& node = make(kind, after);
  node.name = std::string(kind == NodeKind::Send ? "send " : "receive ") +
              std::to_string(channel.from_stage) + " to " + std::to_string(channel.to_stage) +
              ", " + std::to_string(micro_batch);
  node.micro_batch = micro_batch;
  node.from = run_.devices[channel.from_rank];
  node.to = run_.devices[channel.to_rank];
  node.tag = index;
  node.bytes = channel.bytes;
  const bool sends = kind == NodeKind::Send;
  node.cargo = {channel.cargo, sends ? channel.from_stage : channel.to_stage};
  node.ordered = true;
  node.depth = channel.depth;
  node.synchronous = channel.synchronous;
  node.duration = channel.occupancy + channel.latency;
}

bool RankWalk::record(Standing& stream) {
  const int index = stream.cursor.instruction().index;
  const Event& event = program_.events[index];
  if (event.in_turn) {
    const auto before = lane_last_.find(program_.collectives[event.collective].lane);
    if (before != lane_last_.end()) add(stream.needs, {before->second});
  }
  note_record(index, stream.cursor.micro_batch(), stream.needs);
  return true;
}

void RankWalk::note_record(int index, int micro_batch, const Nodes& needs) {
  const Event& event = program_.events[index];
  Generation& generation = events_[turn_of(index, micro_batch)];
  add(generation.done, needs);
  ++generation.records;
  if (event.collective >= 0) {
    join(event, micro_batch, generation.done);
  } else if (run_.crosses[index]) {
    if (generation.records < generation.expected) return;
    ExecutionNode& barrier = make(NodeKind::Collective, generation.done);
    barrier.name = "barrier, " + std::to_string(micro_batch);
    barrier.micro_batch = micro_batch;
    // Groups of collectives are lanes; those of barriers come behind.
    barrier.group = std::to_string(program_.lanes.size() + static_cast<std::size_t>(index));
  } else {
    generation.complete = generation.records == event.recorders;
    return;
  }
  generation.done = {newest()};
  generation.complete = true;
  if (event.next >= 0) note_record(event.next, micro_batch, {newest()});
}

void RankWalk::join(const Event& event, int micro_batch, const Nodes& needs) {
  const Collective& collective = program_.collectives[event.collective];
  const auto members = static_cast<double>(program_.lanes[collective.lane].ranks.size());
  NodeKind kind = NodeKind::Collective;
  if (collective.axis == MeshAxis::ToHost) kind = NodeKind::Store;
  if (collective.axis == MeshAxis::FromHost) kind = NodeKind::Load;
  ExecutionNode& node = make(kind, needs);
  node.name = std::string(is_host(collective.axis) ? "copy" : "collective") + " of stage " +
              std::to_string(collective.stage) + ", " + std::to_string(micro_batch);
  node.micro_batch = micro_batch;
  node.bytes = collective.bytes;
  if (collective.kind == CollectiveKind::AllGather) node.bytes = node.bytes / members;
  node.collective = collective.kind;
  node.group = std::to_string(collective.lane);
  node.duration = collective.occupancy + collective.latency;
  if (const CollectiveSpan* span = span_of(event, micro_batch)) {
    node.start = span->start;
    node.duration = span->end - span->start;
  }
  ends_.back() = node.start + node.duration;
  lane_last_[collective.lane] = newest();
}

/// The first of the log that this rank has not joined yet. One collective may be there for several
/// events; its micro-batch is that of whoever joined last.
const CollectiveSpan* RankWalk::span_of(const Event& event, int micro_batch) {
  const auto& spans = run_.collectives[event.collective];
  std::vector<bool>& taken = taken_[event.collective];
  std::size_t& first = first_free_[event.collective];
  while (first < spans.size() && taken[first]) ++first;
  for (std::size_t i = first; i < spans.size(); ++i) {
    const bool same =
        spans[i]->micro_batch / event.micro_batches == micro_batch / event.micro_batches;
    if (taken[i] || !same) continue;
    taken[i] = true;
    return spans[i];
  }
  return nullptr;
}

bool RankWalk::wait(Standing& stream) {
  const int micro_batch = stream.cursor.micro_batch();
  if (micro_batch < 0) return true;
  const Generation& generation = events_[turn_of(stream.cursor.instruction().index, micro_batch)];
  if (!generation.complete) return false;
  add(stream.needs, generation.done);
  return true;
}

RankWalk::Turn RankWalk::turn_of(int event, int micro_batch) const {
  return {event, micro_batch / program_.events[event].micro_batches};
}

ExecutionNode& RankWalk::make(NodeKind kind, const Nodes& after) {
  ExecutionNode& node = nodes_.emplace_back();
  node.kind = kind;
  node.stream = lane_;
  node.place = streams_[lane_].places++;
  for (const int other : after) {
    node.after.push_back(static_cast<std::uint64_t>(other));
    node.start = std::max(node.start, ends_[static_cast<std::size_t>(other)]);
  }
  ends_.push_back(node.start);
  return node;
}

/// Numbered from 1: readers may take an id of 0 for one that is missing.
std::vector<ExecutionNode> RankWalk::in_order_of_time() {
  std::vector<std::uint64_t> order(nodes_.size()), id(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return nodes_[a].start < nodes_[b].start;
  });
  for (std::size_t place = 0; place < order.size(); ++place) id[order[place]] = place + 1;
  std::vector<ExecutionNode> sorted;
  sorted.reserve(nodes_.size());
  for (const std::uint64_t index : order) {
    ExecutionNode& node = sorted.emplace_back(std::move(nodes_[index]));
    node.id = id[index];
    for (std::uint64_t& other : node.after) other = id[other];
    std::sort(node.after.begin(), node.after.end());
  }
  return sorted;
}

}  // namespace interlock
