// Streams, ranks and the choice among ready ops.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/event_loop.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "sim/program/deadlock.h"

namespace interlock {

namespace {

/// Returns the number, within its rank, of the first stream that records each event; an event that
/// follows another in a chain has the stream of that one. Nothing if every rank has one stream.
std::vector<int> recorders_of(const Program& program) {
  const auto one = [](const Rank& rank) { return rank.streams <= 1; };
  if (std::all_of(program.ranks.begin(), program.ranks.end(), one)) return {};
  std::vector<int> recorders(program.events.size(), std::numeric_limits<int>::max());
  for (const Rank& rank : program.ranks) {
    for (int number = 0; number < rank.streams; ++number) {
      const auto note = [&](const Instruction& instruction, std::int64_t) {
        if (instruction.code != Opcode::Record) return;
        for (int e = instruction.index; e >= 0; e = program.events[e].next) {
          recorders[e] = std::min(recorders[e], number);
        }
      };
      visit_instructions(program, program.streams[rank.first_stream + number], note);
    }
  }
  return recorders;
}

}  // namespace

EventLoop::EventLoop(const Program& program, const TraceSink& sink)
    : program_(program),
      sink_(sink),
      code_(sink.memory ? Code{} : code_without_memory(program)),
      streams_(make_streams<StreamState>(program, code_, bool(sink.memory))),
      ranks_(program.ranks.size()),
      channels_(make_channels<ChannelState>(program)),
      wires_(program.wires.size()),
      wire_free_(program.wires.size(), 0),
      memory_(program, sink),
      times_(program),
      communicators_(program.communicators.size()),
      events_(program.events.size()),
      recorders_(recorders_of(program)) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].several_streams = program.ranks[r].streams > 1;
  }
  if (!program.interference.empty()) rates_.emplace(program);
  for (ChannelState& queue : channels_) {
    queue.shared = queue.wire >= 0 && program.wires[queue.wire].shared;
    rendezvous_ = rendezvous_ || (queue.depth == 0 && !queue.synchronous);
  }
}

void EventLoop::start() {
  for (int s = static_cast<int>(streams_.size()) - 1; s >= 0; --s) runnable_.push_back(s);
  drain();
}

void EventLoop::run_instant() {
  now_ = heap_.top().time;
  while (!heap_.empty() && heap_.top().time == now_) {
    // Everything due now is entered; drain() then lets ranks choose, which may make more due.
    while (!heap_.empty() && heap_.top().time == now_) {
      const TimedEvent event = heap_.top();
      heap_.pop();
      enter(event);
    }
    drain();
  }
}

void EventLoop::enter(const TimedEvent& event) {
  if (event.id < 0) return on_timer(-1 - event.id, event.generation);
  const int communicator = event.id - static_cast<int>(streams_.size());
  const int load = communicator - static_cast<int>(communicators_.size());
  if (load >= 0) return change_loads(load / 2, load % 2 == 0);
  if (communicator >= 0) return end_collective(communicator);
  StreamState& state = streams_[event.id];
  if (rates_ && event.generation > 0 && !ends_compute(event, state.rank)) return;
  if (state.computing) {
    state.computing = false;
    if (!std::exchange(state.replaying, false)) state.cursor.next();
    RankState& rank = ranks_[state.rank];
    if (rank.several_streams) {
      rank.busy = false;
      ask_to_choose(state.rank);
    }
  }
  advance(event.id);
}

void EventLoop::settle() {
  drain();
  while (!heap_.empty() && heap_.top().time == now_) run_instant();
}

RunSummary EventLoop::finish(const char* engine) const {
  std::vector<std::optional<Instruction>> standing;
  for (const StreamState& state : streams_) standing.push_back(state.cursor.standing());
  require_done(program_, standing);
  return {engine, count_tasks(program_), in_seconds(program_, makespan_)};
}

void EventLoop::set_timer(double time, int wire, std::uint32_t generation) {
  heap_.push({time, -1 - wire, generation});
}

/// Advances what was woken, then lets ranks choose. Events that this makes due at the same instant
/// are left to the caller.
void EventLoop::drain() {
  do {
    while (!runnable_.empty()) {
      const int stream = runnable_.back();
      runnable_.pop_back();
      advance(stream);
    }
    if (!heap_.empty() && heap_.top().time == now_) return;
    for (std::size_t i = 0; i < choosers_.size(); ++i) choose(choosers_[i]);
    choosers_.clear();
    if (!heap_.empty() && heap_.top().time == now_) return;
    for (std::size_t i = 0; i < starters_.size(); ++i) start_collective(starters_[i]);
    starters_.clear();
    if (!heap_.empty() && heap_.top().time == now_) return;
    replay_or_go_on();
  } while (!runnable_.empty());
}

/// Nothing more happens at this instant: who waits for a message that is not there replays. Those
/// whose message is there go on first, as what they do at this very instant may be what others wait
/// for.
void EventLoop::replay_or_go_on() {
  const auto here = [&](int stream) {
    return has_arrived(channels_[streams_[stream].cursor.instruction().index]);
  };
  const auto late = std::stable_partition(replayers_.begin(), replayers_.end(), here);
  runnable_.assign(replayers_.begin(), late);
  replayers_.erase(replayers_.begin(), late);
  if (!runnable_.empty()) return;
  for (const int stream : std::exchange(replayers_, {})) {
    StreamState& state = streams_[stream];
    state.replaying = true;
    start_compute(stream, state, channels_[state.cursor.instruction().index].replay);
  }
}

[[gnu::flatten]] void EventLoop::advance(int stream) {
  StreamState& state = streams_[stream];
  while (!state.cursor.done() && execute(stream, state)) state.cursor.next();
}

/// Runs one instruction; false if the stream must stand there until it is woken.
bool EventLoop::execute(int stream, StreamState& state) {
  const Instruction& instruction = state.cursor.instruction();
  switch (instruction.code) {
    case Opcode::Compute:
      return compute(stream, state);
    case Opcode::Send:
      state.announced = false;
      return send(stream, state);
    case Opcode::Receive:
      return receive(stream, state);
    case Opcode::Record:
      return record(stream, state);
    case Opcode::Wait:
      if (state.cursor.micro_batch() >= 0) state.announced = false;
      return wait(stream, state);
    case Opcode::Allocate:
      // Taken at the instant at which the op starts; a rank of one stream starts it now.
      if (ranks_[state.rank].several_streams && only_memory_before_op(state.cursor)) {
        return compute(stream, state);
      }
      [[fallthrough]];
    case Opcode::Free:
      if (sink_.memory) memory_.change(state.cursor, state.rank, now_);
      return true;
  }
  return true;
}

bool EventLoop::compute(int stream, StreamState& state) {
  RankState& rank = ranks_[state.rank];
  if (rank.several_streams) {
    rank.ready.push_back(stream);
    ask_to_choose(state.rank);
  } else {
    if (rendezvous_ && !state.announced) announce_receive(state);
    start_compute(stream, state, state.cursor.instruction().index);
  }
  return false;
}

void EventLoop::start_compute(int stream, StreamState& state, int op) {
  RankState& rank = ranks_[state.rank];
  const double takes = times_.op(op, state.cursor.micro_batch()), end = now_ + takes;
  Span span{.rank = state.rank, .op = op, .micro_batch = state.cursor.micro_batch()};
  if (sink_.span) {
    span.start = in_seconds(program_, now_);
    span.end = in_seconds(program_, end);
    const double message = exposed_time(now_, rank.free, state.message_sent, state.message_arrival);
    span.exposed = in_seconds(program_, std::min(now_ - rank.free, message + state.collectives));
    if (!rates_) sink_.span(span);
  }
  state.message_arrival = -1;
  state.collectives = 0;
  state.computing = true;
  rank.busy = true;
  if (rates_) {
    const KernelRates::End known = rates_->begin(span, stream, takes, now_);
    return heap_.push({known.time, stream, known.generation});
  }
  rank.free = end;
  makespan_ = std::max(makespan_, end);
  heap_.push({end, stream, 0});
}

void EventLoop::ask_to_choose(int rank) {
  if (!std::exchange(ranks_[rank].will_choose, true)) choosers_.push_back(rank);
}

/// Starts the first ready op of a free rank: by the frozen order, else by priority.
void EventLoop::choose(int index) {
  RankState& rank = ranks_[index];
  rank.will_choose = false;
  if (rank.busy || rank.ready.empty()) return;
  auto chosen = rank.ready.end();
  const auto& order = program_.ranks[index].order;
  if (!order.empty()) {
    chosen = std::find_if(rank.ready.begin(), rank.ready.end(),
                          [&](int s) { return streams_[s].number == order[rank.turn]; });
    if (chosen == rank.ready.end()) return;
  } else {
    chosen = std::min_element(rank.ready.begin(), rank.ready.end(),
                              [&](int a, int b) { return precedes(a, b); });
  }
  const int stream = *chosen;
  rank.ready.erase(chosen);
  ++rank.turn;
  StreamState& state = streams_[stream];
  for (; state.cursor.instruction().code != Opcode::Compute; state.cursor.next()) {
    const Opcode code = state.cursor.instruction().code;
    CHECK(code == Opcode::Allocate || code == Opcode::Free, "only memory between taking and op");
    if (sink_.memory) memory_.change(state.cursor, state.rank, now_);
  }
  start_compute(stream, state, state.cursor.instruction().index);
}

/// F, H, R, I, B, W, U; then the nearer loss; then the older micro-batch; then the lower stage.
bool EventLoop::precedes(int stream, int other) const {
  auto priority = [&](int s) {
    const OpInfo& op = next_op(s);
    return std::tuple(op.kind, op.loss - op.stage, streams_[s].cursor.micro_batch(), op.stage, s);
  };
  return priority(stream) < priority(other);
}

/// The op at which a ready stream stands, behind what it allocates.
const OpInfo& EventLoop::next_op(int stream) const {
  Cursor cursor = streams_[stream].cursor;
  while (cursor.instruction().code != Opcode::Compute) cursor.next();
  return program_.ops[cursor.instruction().index];
}

void EventLoop::wake(int& stream) {
  if (stream >= 0) runnable_.push_back(std::exchange(stream, -1));
}

bool EventLoop::record(int stream, StreamState& state) {
  const Cursor& cursor = state.cursor;
  const int index = cursor.instruction().index;
  const Event& event = program_.events[index];
  if (event.in_turn) {
    CommunicatorState& communicator =
        communicators_[program_.collectives[event.collective].communicator];
    if (!communicator.joined.empty()) {
      if (!std::exchange(state.waited, true)) state.waits_since = now_;
      state.announced = false;
      communicator.waiting.push_back(stream);
      return false;
    }
    if (std::exchange(state.waited, false)) state.collectives += now_ - state.waits_since;
  }
  if (event.message >= 0) {
    const int number = cursor.micro_batch() / event.micro_batches;
    note_sent(events_[index].generations[number], now_, state.message_sent);
  }
  note_record(index, cursor.micro_batch());
  return true;
}

void EventLoop::note_record(int index, int micro_batch) {
  const Event& event = program_.events[index];
  Generation& generation = events_[index].generations[micro_batch / event.micro_batches];
  if (++generation.records < event.recorders) return;
  CHECK(generation.records == event.recorders, "a member records a generation once");
  generation.recorded = now_;
  if (event.collective < 0) return complete(index, micro_batch);
  const int communicator = program_.collectives[event.collective].communicator;
  communicators_[communicator].joined.push({index, micro_batch, now_});
  if (communicators_[communicator].joined.size() == 1) ask_to_start(communicator);
}

/// Starts the first collective of the communicator; where ranks have several streams, when nothing
/// else happens at this instant, as what others join at it may come first.
void EventLoop::ask_to_start(int communicator) {
  if (recorders_.empty()) return start_collective(communicator);
  if (std::exchange(communicators_[communicator].will_start, true)) return;
  starters_.push_back(communicator);
}

/// Puts first, of the collectives that were joined when the first one was, that of the oldest
/// micro-batch, then of the first stream; those of one stream keep its order.
void EventLoop::order_joined(Fifo<Joined>& joined) const {
  const auto stream = [&](std::uint32_t i) { return recorders_[joined.at(i).event]; };
  std::uint32_t end = 1;
  while (end < joined.size() && joined.at(end).time == joined.front().time) ++end;
  std::uint32_t first = 0;
  for (std::uint32_t i = 1; i < end; ++i) {
    std::uint32_t earliest = 0;  // of its stream
    while (stream(earliest) != stream(i)) ++earliest;
    const auto key = [&](std::uint32_t j) {
      return std::pair(joined.at(j).micro_batch, stream(j));
    };
    if (earliest == i && key(i) < key(first)) first = i;
  }
  if (first > 0) joined.move_to_front(first);
}

bool EventLoop::wait(int stream, StreamState& state) {
  const Cursor& cursor = state.cursor;
  if (cursor.micro_batch() < 0) return true;
  const int index = cursor.instruction().index;
  const Event& event = program_.events[index];
  EventState& waited = events_[index];
  const Generation& generation = waited.generations[cursor.micro_batch() / event.micro_batches];
  if (!generation.complete()) {
    if (!std::exchange(state.waited, true)) state.waits_since = now_;
    CHECK(state.next_waiter < 0, "a stream waits for one event at a time");
    const int last = std::exchange(waited.last_waiter, stream);
    state.next_waiter = last < 0 ? stream : std::exchange(streams_[last].next_waiter, stream);
  } else if (std::exchange(state.waited, false)) {
    if (event.collective >= 0) {
      const double began = std::max(generation.recorded, state.waits_since);
      state.collectives += std::max(0.0, generation.time - began);
    } else if (event.message >= 0) {
      note_stood(state, generation, state.waits_since);
    }
  }
  return generation.complete();
}

/// Completes the generation of `micro_batch`.
void EventLoop::complete(int index, int micro_batch) {
  const Event& event = program_.events[index];
  const int number = micro_batch / event.micro_batches;
  EventState& done = events_[index];
  done.generations[number].time = now_;
  done.generations.finish(number, generations_kept(event));
  const int left = std::exchange(done.last_waiter, -1);
  while (left >= 0) {
    const int first = streams_[left].next_waiter;
    runnable_.push_back(first);
    const int second = std::exchange(streams_[first].next_waiter, -1);
    if (first == left) break;
    streams_[left].next_waiter = second;
  }
}

/// Starts the first collective of the communicator, whose end is known, or whose flows share links
/// with others.
void EventLoop::start_collective(int index) {
  CommunicatorState& communicator = communicators_[index];
  communicator.will_start = false;
  if (!recorders_.empty()) order_joined(communicator.joined);
  const Event& event = program_.events[communicator.joined.front().event];
  const Collective& collective = program_.collectives[event.collective];
  communicator.started = now_;
  if (rates_) change_loads(collective, true);
  communicator.factor = times_.of_collective(communicator.joined.front().event,
                                             communicator.joined.front().micro_batch);
  if (!collective.shared) {
    const double end = now_ +
                       scaled(in_ticks(program_, collective.occupancy), communicator.factor) +
                       scaled(in_ticks(program_, collective.latency), communicator.factor);
    heap_.push({end, static_cast<std::int32_t>(streams_.size()) + index, 0});
    return;
  }
  communicator.flows_left = static_cast<int>(collective.flows.size());
  for (const Collective::Flow& flow : collective.flows) {
    wires_[flow.wire].carrying = true;
    start_flow(flow, communicator.factor);
  }
}

/// A flow of the collective under way has ended.
void EventLoop::end_flow(int index) {
  CommunicatorState& communicator = communicators_[index];
  if (--communicator.flows_left > 0) return;
  const Event& event = program_.events[communicator.joined.front().event];
  const Seconds latency = program_.collectives[event.collective].latency;
  const double end = now_ + scaled(in_ticks(program_, latency), communicator.factor);
  heap_.push({end, static_cast<std::int32_t>(streams_.size()) + index, 0});
}

void EventLoop::end_collective(int index) {
  CommunicatorState& communicator = communicators_[index];
  const Joined done = communicator.joined.front();
  const Event& event = program_.events[done.event];
  communicator.joined.pop();
  if (rates_) change_loads(program_.collectives[event.collective], false);
  makespan_ = std::max(makespan_, now_);
  if (sink_.collective) {
    sink_.collective({in_seconds(program_, done.time), in_seconds(program_, communicator.started),
                      in_seconds(program_, now_), event.collective, done.micro_batch});
  }
  if (sink_.memory) memory_.end_collective(event, now_);
  complete(done.event, done.micro_batch);
  if (event.next >= 0) note_record(event.next, done.micro_batch);
  if (!communicator.joined.empty()) return ask_to_start(index);
  runnable_.insert(runnable_.end(), communicator.waiting.begin(), communicator.waiting.end());
  communicator.waiting.clear();
}

/// Returns true if `event`, an end that was once planned for an op of `rank`, still holds.
bool EventLoop::ends_compute(const TimedEvent& event, int rank) {
  if (!rates_->is_current(rank, event.generation)) return false;
  ranks_[rank].free = now_;
  makespan_ = std::max(makespan_, now_);
  Span span = rates_->end(rank);
  span.end = in_seconds(program_, now_);
  if (sink_.span) sink_.span(span);
  return true;
}

void EventLoop::change_load(int rank, const KernelLoad& load, bool begins) {
  const auto end = rates_->change(rank, load, begins, now_);
  if (end) heap_.push({end->time, end->stream, end->generation});
}

/// A message of `channel` is on its way, or no longer.
void EventLoop::change_loads(int index, bool begins) {
  const Channel& channel = program_.channels[index];
  change_load(channel.from_rank, rates_->of_sender(index), begins);
  change_load(channel.to_rank, rates_->of_receiver(index), begins);
}

void EventLoop::change_loads(const Collective& collective, bool begins) {
  for (const int rank : program_.communicators[collective.communicator].ranks)
    change_load(rank, rates_->of_member(collective, rank), begins);
}

/// A message of a wire of its own, whose times are known beforehand.
void EventLoop::load_while_sent(int channel, double start, double end) {
  if (end == start) return;  // its end might come before its start, as both are the same instant
  const auto first = static_cast<std::int32_t>(streams_.size() + communicators_.size());
  if (start > now_) {
    heap_.push({start, first + 2 * channel, 0});
  } else {
    change_loads(channel, true);
  }
  heap_.push({end, first + 2 * channel + 1, 0});
}

}  // namespace interlock
