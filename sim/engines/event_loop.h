// EventLoop: a program under way, in time order. The clock belongs to its driver.
// SPDX-License-Identifier: Apache-2.0
//
// A driver asks for next_time(), moves its clock there and calls run_instant(), until nothing is
// left. Within one instant everything that has become possible is entered before any rank that may
// choose chooses; ops that take no time make the instant go round again.
// Transfers on wires of their own are worked out when they are sent. Those on wires that share a
// link are handed to the driver by `start_shared`; the driver reports their end by end_shared().
//
// Example: 1F1B of two stages and two micro-batches, F of 1 s, B of 2 s, messages of no time.
// start() begins F0 of stage 0. The instants are 1, 2, 4, 5, 6, 7 and 9 s; at 1 s F1 of stage 0 and
// F0 of stage 1 begin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/engines/engine_state.h"
#include "sim/engines/event_loop_state.h"
#include "sim/engines/kernel_rates.h"
#include "sim/engines/memory_changes.h"
#include "sim/engines/varied_times.h"
#include "sim/program/trace.h"
#include "sim/sharing/event_heap.h"

namespace interlock {

class EventLoop {
 public:
  EventLoop(const Program& program, const TraceSink& sink);

  /// Lets every stream run to its first wait, at time 0.
  void start();
  double next_time() const { return heap_.empty() ? kForever : heap_.top().time; }
  /// Does everything that happens at next_time().
  void run_instant();
  /// Throws: Error if streams wait that nothing will wake.
  RunSummary finish(const char* engine) const;

  /// Called when `bytes` may start on a wire that shares links; alone they take `occupancy` ticks.
  std::function<void(int wire, Bytes bytes, double occupancy)> start_shared;
  /// Ends the transfer that `wire` carries at `time`, which moves the loop's now.
  void end_shared(int wire, double time);
  /// Does what the last calls of end_shared() have made possible at now.
  void settle();
  /// Asks for `on_timer(wire, generation)` at `time`, within run_instant().
  void set_timer(double time, int wire, std::uint32_t generation);
  std::function<void(int wire, std::uint32_t generation)> on_timer;
  double now() const { return now_; }

  static constexpr double kForever = 1e300;
  /// Returns how many complete generations of an event are remembered: those that a stream may
  /// still come to wait for.
  static std::uint32_t generations_kept(const Event& event) {
    return event.collective < 0 ? 4096 : static_cast<std::uint32_t>(event.kept);
  }

 private:
  using Message = EventLoopState::Message;
  using ChannelState = EventLoopState::ChannelState;
  using StreamState = EventLoopState::StreamState;
  using RankState = EventLoopState::RankState;
  using Pending = EventLoopState::Pending;
  using Generation = EventLoopState::Generation;
  using EventState = EventLoopState::EventState;
  using Joined = EventLoopState::Joined;
  using CommunicatorState = EventLoopState::CommunicatorState;
  using SharedWire = EventLoopState::SharedWire;

  void enter(const TimedEvent& event);
  void drain();
  void advance(int stream);
  bool execute(int stream, StreamState& state);
  bool compute(int stream, StreamState& state);
  void start_compute(int stream, StreamState& state, int op);
  bool ends_compute(const TimedEvent& event, int rank);
  void replay_or_go_on();
  void ask_to_choose(int rank);
  void choose(int rank);
  bool precedes(int stream, int other) const;
  const OpInfo& next_op(int stream) const;

  bool send(int stream, StreamState& state);
  bool receive(int stream, StreamState& state);
  bool has_arrived(const ChannelState& queue) const {
    return !queue.messages.empty() && queue.messages.front().arrival <= now_;
  }
  void meet(int channel, int micro_batch);
  bool stand_until_asked(int stream, StreamState& state, ChannelState& queue);
  void announce_receive(StreamState& state);
  void ask(ChannelState& queue, double time);
  void transfer(int channel, int micro_batch);
  void carry(int wire);
  void start_flow(const WireFlow& flow, double factor);
  void deliver(int channel, const Message& message);
  void wake_at(int& stream, double time);
  void report(const Pending& pending, double start, double end, double arrival);
  bool wait(int stream, StreamState& state);
  bool record(int stream, StreamState& state);
  void note_record(int event, int micro_batch);
  void complete(int event, int micro_batch);
  void ask_to_start(int communicator);
  void order_joined(Fifo<Joined>& joined) const;
  void start_collective(int communicator);
  void end_flow(int communicator);
  void end_collective(int communicator);
  void change_load(int rank, const KernelLoad& load, bool begins);
  void change_loads(int channel, bool begins);
  void change_loads(const Collective& collective, bool begins);
  void load_while_sent(int channel, double start, double end);
  void wake(int& stream);

  const Program& program_;
  const TraceSink& sink_;
  Code code_;  // that streams walk, if no sink watches memory
  std::vector<StreamState> streams_;
  std::vector<RankState> ranks_;
  std::vector<ChannelState> channels_;
  std::vector<SharedWire> wires_;
  std::vector<double> wire_free_;
  MemoryChanges memory_;  // of a sink that watches it
  VariedTimes times_;
  std::optional<KernelRates> rates_;  // where communication slows kernels down
  std::vector<CommunicatorState> communicators_;
  std::vector<EventState> events_;
  /// The stream of a rank that records each event, or the one before it in a chain. Several streams
  /// a rank only.
  std::vector<int> recorders_;
  bool rendezvous_ = false;     // some channel is one
  std::vector<int> runnable_;   // streams to advance now
  std::vector<int> choosers_;   // ranks to choose now
  std::vector<int> starters_;   // communicators to start a collective now
  std::vector<int> replayers_;  // streams that replay, unless their message arrives now
  EventHeap heap_;
  double now_ = 0, makespan_ = 0;
};

}  // namespace interlock
