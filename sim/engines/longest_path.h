// LongestPath: runs a program whose order is fixed, stream by stream, as a longest path.
// SPDX-License-Identifier: Apache-2.0
//
// Each stream runs ahead on its own clock until it needs something that no other stream has
// computed yet (a message, room in a queue, an event, its turn); it is then set aside and taken up
// again by the stream that provides it. No clock is shared and no event is queued, so the order in
// which streams are taken up does not matter, and a task costs a few nanoseconds.
//
// Example: 1F1B of two stages and two micro-batches, F of 1 s, B of 2 s, messages of no time.
// Stream 0 runs F0 and F1 up to 2 s, and is set aside at the Receive of gradient 0. Stream 1 runs
// F0 from 1 s, B0, whose Send makes stream 0 ready, F1 and B1, up to 7 s. Stream 0 then runs B0
// from 4 s and B1 from 7 s to 9 s.
#pragma once

#include <deque>
#include <vector>

#include "sim/engines/engine_state.h"
#include "sim/engines/engines.h"
#include "sim/engines/fifo.h"
#include "sim/engines/generations.h"
#include "sim/engines/memory_changes.h"
#include "sim/engines/varied_times.h"

namespace interlock {

class LongestPath {
 public:
  LongestPath(const Program& program, const TraceSink& sink);
  RunSummary run();

 private:
  static constexpr double kNever = -1;

  struct Message {
    double sent, arrival;
  };

  // The state of a channel that a send or a receive touches.
  struct ChannelState {
    Fifo<Message> messages;  // sent and untaken
    double occupancy = 0, latency = 0;
    double way = 0;  // what both are for a message that meets no other
    int wire = -1, depth = Channel::kUnlimited;
    int room = 0;                    // sends that need not wait for a taking
    int sender = -1, receiver = -1;  // streams set aside here
    int replay = -1;
    bool was_taken = false;  // some message
    bool synchronous = false;
    bool sender_waits = false;   // until the message has left
    bool sender_stands = false;  // rendezvous: sent, and not yet asked for
    /// Times that senders wait for, one a message. Bounded: when it was taken; rendezvous: when its
    /// sender may go; synchronous: when it had arrived.
    Fifo<double> taken;
  };

  struct Generation {
    int records = 0;
    double joined = 0;              // by the last one
    double time = 0;                // complete
    double recorded = 0, sent = 0;  // see note_sent
  };

  struct StreamState {
    Cursor cursor;
    double time = 0;
    double run_start = kNever;  // of the ops since its last Send, Receive or Wait, if any
    double message_sent = 0, message_arrival = kNever;  // the last message it had to wait for
    double collectives = 0;  // how long it waited for some since its last op
    int rank = 0, number = 0;
  };
  struct RankState {
    double free = 0;
    bool several_streams = false;
  };
  /// Whose turn it is, where a frozen program says so.
  struct Turns {
    std::size_t next = 0;
    std::vector<int> waiting;  // streams
  };

  void advance(int stream);
  bool execute(int stream, StreamState& state);
  bool compute(int stream, StreamState& state);
  void run_op(StreamState& state, int op, double start, double end);
  bool takes_turn(int stream, StreamState& state);
  bool send(int stream, StreamState& state);
  bool receive(int stream, StreamState& state);
  bool wait(int stream, StreamState& state);
  void record(StreamState& state);
  void note_record(int event, int micro_batch, double time);
  void run_collective(int index, Generation& generation, int micro_batch);
  bool stand_until_asked(int stream, StreamState& state, ChannelState& queue);
  void stand_until_left(StreamState& state, int channel);
  double release_time(const StreamState& state, const ChannelState& queue) const;
  bool meet_receiver(int stream, StreamState& state);
  bool meet_sender(int stream, StreamState& state);
  bool wire_is_free_for(int stream, int channel);
  void wire_was_used(int wire);
  Message transfer(int channel, double at, int micro_batch);
  void replay(StreamState& state, const ChannelState& queue);
  void take(StreamState& state, const Message& message);
  void wake(int& stream);
  void wake_all(std::vector<int>& streams);

  const Program& program_;
  const TraceSink& sink_;
  Code code_;  // that streams walk, if no sink watches memory
  std::vector<StreamState> streams_;
  std::vector<RankState> ranks_;
  std::vector<ChannelState> channels_;
  std::vector<double> wire_free_;
  MemoryChanges memory_;  // of a sink that watches it
  VariedTimes times_;
  std::vector<double> communicator_free_;
  std::vector<Turns> rank_turns_, wire_turns_;   // frozen programs
  std::vector<Generations<Generation>> events_;  // by generation
  std::vector<std::vector<int>> event_waiters_;
  std::deque<int> ready_;    // streams to take up
  bool steps_back_ = false;  // the stream at work lets all others go first
  double makespan_ = 0;
};

}  // namespace interlock
