// The longest path: streams, turns, events, queues, rendezvous and wires.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/longest_path.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/engines/event_loop.h"
#include "sim/program/deadlock.h"

namespace interlock {

LongestPath::LongestPath(const Program& program, const TraceSink& sink)
    : program_(program),
      sink_(sink),
      code_(sink.memory ? Code{} : code_without_memory(program)),
      streams_(make_streams<StreamState>(program, code_, bool(sink.memory))),
      ranks_(program.ranks.size()),
      channels_(make_channels<ChannelState>(program)),
      wire_free_(program.wires.size(), 0),
      memory_(program, sink),
      times_(program),
      communicator_free_(program.communicators.size(), 0),
      rank_turns_(program.ranks.size()),
      wire_turns_(program.wires.size()),
      events_(program.events.size()),
      event_waiters_(program.events.size()) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].several_streams = program.ranks[r].streams > 1;
  }
  for (ChannelState& queue : channels_) queue.room = std::max(0, queue.depth);
}

[[gnu::flatten]] RunSummary LongestPath::run() {
  // The last in is the first out, which keeps what neighbours share in the cache. In turn, if
  // memory is watched, so that no stream falls far behind.
  for (int s = static_cast<int>(streams_.size()) - 1; s >= 0; --s) ready_.push_back(s);
  while (!ready_.empty()) {
    const int stream = sink_.memory ? ready_.front() : ready_.back();
    sink_.memory ? ready_.pop_front() : ready_.pop_back();
    advance(stream);
  }
  std::vector<std::optional<Instruction>> standing;
  for (const StreamState& state : streams_) standing.push_back(state.cursor.standing());
  require_done(program_, standing);
  return {"native", count_tasks(program_), in_seconds(program_, makespan_)};
}

void LongestPath::advance(int stream) {
  StreamState& state = streams_[stream];
  while (!state.cursor.done() && execute(stream, state)) {
    state.cursor.next();
    if (!std::exchange(steps_back_, false)) continue;
    ready_.push_back(stream);
    return;
  }
}

/// Runs one instruction; false if the stream was set aside and must run it again later.
bool LongestPath::execute(int stream, StreamState& state) {
  const Instruction& instruction = state.cursor.instruction();
  switch (instruction.code) {
    case Opcode::Compute:
      return compute(stream, state);
    case Opcode::Send:
      return send(stream, state);
    case Opcode::Receive:
      return receive(stream, state);
    case Opcode::Record:
      record(state);
      return true;
    case Opcode::Wait:
      return wait(stream, state);
    case Opcode::Allocate:
      if (ranks_[state.rank].several_streams && only_memory_before_op(state.cursor)) {
        if (!takes_turn(stream, state)) return false;
        state.time = std::max(state.time, ranks_[state.rank].free);
      }
      [[fallthrough]];
    case Opcode::Free:
      if (sink_.memory) memory_.change(state.cursor, state.rank, state.time);
      return true;
  }
  return true;
}

/// Returns true if the next Compute of a rank with several streams belongs to this stream.
bool LongestPath::takes_turn(int stream, StreamState& state) {
  const auto& order = program_.ranks[state.rank].order;
  Turns& turns = rank_turns_[state.rank];
  CHECK(turns.next < order.size(), "a frozen order that is too short");
  if (order[turns.next] == state.number) return true;
  turns.waiting.push_back(stream);
  return false;
}

bool LongestPath::compute(int stream, StreamState& state) {
  RankState& rank = ranks_[state.rank];
  const int op = state.cursor.instruction().index;
  if (rank.several_streams && !takes_turn(stream, state)) return false;
  const double start = std::max(state.time, rank.free);
  const double end = start + times_.op(op, state.cursor.micro_batch());
  if (state.run_start == kNever) state.run_start = start;
  run_op(state, op, start, end);
  makespan_ = std::max(makespan_, end);
  if (rank.several_streams) {
    ++rank_turns_[state.rank].next;
    wake_all(rank_turns_[state.rank].waiting);
  }
  return true;
}

/// Runs `op` from `start` to `end`: tells the sink, with what the device waited for before it.
void LongestPath::run_op(StreamState& state, int op, double start, double end) {
  RankState& rank = ranks_[state.rank];
  if (sink_.span) {
    const double message =
        exposed_time(start, rank.free, state.message_sent, state.message_arrival);
    const double exposed = std::min(start - rank.free, message + state.collectives);
    sink_.span({in_seconds(program_, start), in_seconds(program_, end),
                in_seconds(program_, exposed), state.rank, op, state.cursor.micro_batch()});
  }
  state.message_arrival = kNever;
  state.collectives = 0;
  state.time = rank.free = end;
}

void LongestPath::record(StreamState& state) {
  const Cursor& cursor = state.cursor;
  const int index = cursor.instruction().index;
  const Event& event = program_.events[index];
  if (event.in_turn) {
    const double free = communicator_free_[program_.collectives[event.collective].communicator];
    if (free > state.time) {
      state.collectives += free - state.time;
      state.time = free;
      state.run_start = kNever;
    }
  }
  if (event.message >= 0) {
    Generation& generation = events_[index][cursor.micro_batch() / event.micro_batches];
    note_sent(generation, state.time, state.message_sent);
  }
  note_record(index, cursor.micro_batch(), state.time);
}

void LongestPath::note_record(int index, int micro_batch, double time) {
  const Event& event = program_.events[index];
  const int number = micro_batch / event.micro_batches;
  Generation& generation = events_[index][number];
  ++generation.records;
  generation.joined = generation.time = std::max(generation.joined, time);
  if (generation.records < event.recorders) return;
  CHECK(generation.records == event.recorders, "a member records a generation once");
  if (event.collective >= 0) run_collective(index, generation, micro_batch);
  if (event.next >= 0) note_record(event.next, micro_batch, generation.time);
  events_[index].finish(number, EventLoop::generations_kept(event));
  wake_all(event_waiters_[index]);
}

/// Members join collectives of a communicator in one order, so that this one comes after all that
/// the last member joined before.
void LongestPath::run_collective(int index, Generation& generation, int micro_batch) {
  const Event& event = program_.events[index];
  const Collective& collective = program_.collectives[event.collective];
  double& free = communicator_free_[collective.communicator];
  const double start = std::max(generation.joined, free);
  const double factor = times_.of_collective(index, micro_batch);
  free = start + scaled(in_ticks(program_, collective.occupancy), factor) +
         scaled(in_ticks(program_, collective.latency), factor);
  generation.time = free;
  makespan_ = std::max(makespan_, free);
  if (sink_.memory) memory_.end_collective(event, free);
  if (!sink_.collective) return;
  sink_.collective({in_seconds(program_, generation.joined), in_seconds(program_, start),
                    in_seconds(program_, free), event.collective, micro_batch});
}

bool LongestPath::wait(int stream, StreamState& state) {
  const Cursor& cursor = state.cursor;
  if (cursor.micro_batch() < 0) return true;
  const int index = cursor.instruction().index;
  const Event& event = program_.events[index];
  const Generation& generation = events_[index][cursor.micro_batch() / event.micro_batches];
  if (generation.records < event.recorders) {
    event_waiters_[index].push_back(stream);
    return false;
  }
  if (event.collective >= 0) {
    const double began = std::max(generation.joined, state.time);
    state.collectives += std::max(0.0, generation.time - began);
  } else if (event.message >= 0) {
    note_stood(state, generation, state.time);
  }
  state.time = std::max(state.time, generation.time);
  state.run_start = kNever;
  return true;
}

void LongestPath::wake(int& stream) {
  if (stream >= 0) ready_.push_back(std::exchange(stream, -1));
}

void LongestPath::wake_all(std::vector<int>& streams) {
  ready_.insert(ready_.end(), streams.begin(), streams.end());
  streams.clear();
}

RunSummary run_longest_path(const Program& program, const TraceSink& sink) {
  CHECK(!chooses_order(program), "the longest path needs a fixed order");
  CHECK(!shares_links(program), "the longest path knows no contention");
  CHECK(program.interference.empty(), "the longest path knows no kernels that change their rate");
  return LongestPath(program, sink).run();
}

bool LongestPath::send(int stream, StreamState& state) {
  state.run_start = kNever;
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.synchronous) return meet_receiver(stream, state);
  if (queue.sender_stands) return stand_until_asked(stream, state, queue);
  double at = state.time;
  if (queue.depth > 0 && queue.room == 0) {
    if (queue.taken.empty()) {
      queue.sender = stream;
      return false;
    }
    at = std::max(at, queue.taken.front());
  }
  if (!wire_is_free_for(stream, index)) return false;
  if (queue.depth > 0) {
    queue.room > 0 ? --queue.room : (queue.taken.pop(), 0);
  }
  state.time = at;
  queue.messages.push(transfer(index, at, state.cursor.micro_batch()));
  // Who watches memory must keep what it is told until all neighbours have come as far.
  steps_back_ = sink_.memory && queue.depth != 0;
  wake(queue.receiver);
  if (queue.sender_waits) stand_until_left(state, index);
  return queue.depth != 0 || stand_until_asked(stream, state, queue);
}

/// The message that was sent last over the wire of `channel` keeps its sender until it has left.
void LongestPath::stand_until_left(StreamState& state, int channel) {
  const double left = wire_free_[channels_[channel].wire];
  const bool idles = left > state.time && !ranks_[state.rank].several_streams;
  if (idles || program_.channels[channel].in_line) {
    state.message_sent = state.time;
    state.message_arrival = left;
  }
  state.time = std::max(state.time, left);
}

/// Rendezvous: the message is on its way; its sender stands for as long as the message will have to
/// wait for the receiver, as far as that is known.
bool LongestPath::stand_until_asked(int stream, StreamState& state, ChannelState& queue) {
  queue.sender_stands = queue.taken.empty();
  if (queue.sender_stands) {
    queue.sender = stream;
    return false;
  }
  state.time = std::max(state.time, queue.taken.front());
  queue.taken.pop();
  return true;
}

bool LongestPath::receive(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.synchronous) return meet_sender(stream, state);
  if (queue.messages.empty()) {
    queue.receiver = stream;
    return false;
  }
  if (queue.replay >= 0 && std::exchange(queue.was_taken, true)) replay(state, queue);
  const double release = release_time(state, queue);
  take(state, queue.messages.front());
  queue.messages.pop();
  if (queue.depth >= 0) {
    queue.taken.push(queue.depth == 0 ? release : state.time);
    wake(queue.sender);
  }
  state.run_start = kNever;
  return true;
}

/// Whole turns on old inputs until the message has arrived.
void LongestPath::replay(StreamState& state, const ChannelState& queue) {
  const double turn = times_.op(queue.replay, state.cursor.micro_batch());
  while (queue.messages.front().arrival > state.time) {
    run_op(state, queue.replay, state.time, state.time + turn);
  }
  makespan_ = std::max(makespan_, state.time);
}

/// When a rendezvous lets its sender go: a message's way before the receiver asks, but not before
/// the receiver knew when that would be, which is when it began its last unbroken run of ops.
double LongestPath::release_time(const StreamState& state, const ChannelState& queue) const {
  if (state.run_start == kNever || ranks_[state.rank].several_streams) return state.time;
  return std::max(state.run_start, state.time - queue.way);
}

/// Synchronous, from the sender: it offers its message and stands until the receiver has it.
bool LongestPath::meet_receiver(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (!queue.taken.empty()) {
    state.time = queue.taken.front();
    queue.taken.pop();
    // It stood for the transfer.
    if (!ranks_[state.rank].several_streams || program_.channels[index].in_line) {
      const auto way =
          times_.message(index, state.cursor.micro_batch(), {queue.occupancy, queue.latency});
      state.message_sent = state.time - way.occupancy - way.latency;
      state.message_arrival = state.time;
    }
    return true;
  }
  queue.sender = stream;
  queue.messages.push({state.time, 0});
  wake(queue.receiver);
  return false;
}

bool LongestPath::meet_sender(int stream, StreamState& state) {
  const int index = state.cursor.instruction().index;
  ChannelState& queue = channels_[index];
  if (queue.messages.empty()) {
    queue.receiver = stream;
    return false;
  }
  if (!wire_is_free_for(stream, index)) return false;
  const double met = std::max(state.time, queue.messages.front().sent);
  const Message message = transfer(index, met, state.cursor.micro_batch());
  queue.messages.pop();
  take(state, message);
  if (program_.channels[index].in_line) state.message_sent = message.sent;
  queue.taken.push(message.arrival);
  wake(queue.sender);
  return true;
}

/// In a frozen program, messages of a wire keep the order that was realised.
bool LongestPath::wire_is_free_for(int stream, int channel) {
  const int wire = channels_[channel].wire;
  if (wire < 0 || program_.wire_order.empty()) return true;
  const auto& order = program_.wire_order[wire];
  Turns& turns = wire_turns_[wire];
  CHECK(turns.next < order.size(), "a frozen wire order that is too short");
  if (order[turns.next] == channel) return true;
  turns.waiting.push_back(stream);
  return false;
}

void LongestPath::wire_was_used(int wire) {
  if (program_.wire_order.empty()) return;
  ++wire_turns_[wire].next;
  wake_all(wire_turns_[wire].waiting);
}

LongestPath::Message LongestPath::transfer(int index, double at, int micro_batch) {
  const ChannelState& queue = channels_[index];
  double end = at, arrival = at;
  if (queue.wire >= 0) {
    const double start = std::max(at, wire_free_[queue.wire]);
    const auto way = times_.message(index, micro_batch, {queue.occupancy, queue.latency});
    end = wire_free_[queue.wire] = start + way.occupancy;
    arrival = end + way.latency;
    makespan_ = std::max(makespan_, arrival);
    wire_was_used(queue.wire);
    if (sink_.transfer) {
      sink_.transfer({in_seconds(program_, at), in_seconds(program_, start),
                      in_seconds(program_, end), in_seconds(program_, arrival), index,
                      micro_batch});
    }
  }
  if (sink_.memory) {
    memory_.begin_message(index, at);
    memory_.end_message(index, micro_batch, end);
  }
  return {at, arrival};
}

void LongestPath::take(StreamState& state, const Message& message) {
  if (message.arrival <= state.time) return;
  state.time = message.arrival;
  state.message_sent = message.sent;
  state.message_arrival = message.arrival;
}

}  // namespace interlock
