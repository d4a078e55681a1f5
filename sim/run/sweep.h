// Sweep: the state of a longest-path sweep over a program whose order is fixed.
// SPDX-License-Identifier: Apache-2.0
//
// Each stream runs ahead on its own clock until it needs something that no other stream has
// computed yet (a message, room in a queue, an event, its turn); it is then set aside and taken up
// again by whoever provides it. No clock is shared and no event is queued, so the order in which
// streams are taken up does not matter, and a task costs a few nanoseconds.
#pragma once

#include <map>
#include <vector>

#include "sim/run/engines.h"
#include "sim/run/fifo.h"

namespace interlock {

class Sweep {
 public:
  Sweep(const Program& program, const TraceSink& sink);
  RunSummary run();

 private:
  static constexpr double kNever = -1;

  struct Message {
    double sent, arrival;
  };

  struct ChannelState {
    Fifo<Message> messages;          // sent and untaken
    Fifo<double> taken;              // when room was made; bounded channels only
    int room = 0;                    // sends that need not wait for a taking
    bool sender_stands = false;      // rendezvous: sent, and not yet asked for
    int sender = -1, receiver = -1;  // streams set aside here
  };

  struct Generation {
    int records = 0;
    double time = 0;
  };

  struct StreamState {
    double time = 0;
    double message_sent = 0, message_arrival = kNever;  // the last message it had to wait for
    int rank = 0, lane = 0;
  };
  struct RankState {
    double free = 0;
    std::size_t turn = 0;
    std::vector<int> waiting;  // streams that wait for their turn
  };
  struct WireState {
    double free = 0;
    std::size_t turn = 0;
    std::vector<int> waiting;
  };

  void advance(int stream);
  bool execute(int stream, StreamState& state, Cursor& cursor);
  bool compute(int stream, StreamState& state, const Cursor& cursor);
  bool takes_turn(int stream, StreamState& state);
  bool send(int stream, StreamState& state, const Cursor& cursor);
  bool receive(int stream, StreamState& state, const Cursor& cursor);
  bool wait(int stream, StreamState& state, const Cursor& cursor);
  void record(const StreamState& state, const Cursor& cursor);
  bool stand_until_asked(int stream, StreamState& state, ChannelState& queue);
  bool meet_receiver(int stream, StreamState& state, const Cursor& cursor);
  bool meet_sender(int stream, StreamState& state, const Cursor& cursor);
  bool wire_is_free_for(int stream, int channel);
  Message transfer(int channel, double at, int micro_batch);
  void take(StreamState& state, const Message& message);
  void change_memory(double at, int rank, MemoryClass memory_class, double bytes);
  void wake(int& stream);
  void wake_all(std::vector<int>& streams);
  void set_aside(std::vector<int>& waiting, int stream);

  const Program& program_;
  const TraceSink& sink_;
  std::vector<Cursor> cursors_;
  std::vector<StreamState> streams_;
  std::vector<RankState> ranks_;
  std::vector<ChannelState> channels_;
  std::vector<WireState> wires_;
  std::vector<std::map<int, Generation>> events_;  // by generation
  std::vector<std::vector<int>> event_waiters_;
  std::vector<int> ready_;
  double makespan_ = 0;
};

}  // namespace interlock
