// EventLoopState: what an event loop remembers of streams, ranks, channels and collectives.
// SPDX-License-Identifier: Apache-2.0
//
// Example, with ticks of 0.1 s: stage 1 stands at its Receive, and its stream is the channel's
// `receiver`. At 1 s stage 0 sends, on a wire that is free and shares no link, what takes 0.5 s.
// The channel then has messages {{sent 10, arrival 15}}, untaken 1 and receiver -1: the stream
// wakes at 15.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/engines/fifo.h"
#include "sim/engines/generations.h"
#include "sim/program/cursor.h"

namespace interlock {

/// The parts of the state of an EventLoop. Times are ticks.
struct EventLoopState {
  struct Message {
    double sent, arrival;
  };
  struct ChannelState {
    Fifo<Message> messages;  // on the way with known arrival, or arrived; untaken
    double occupancy = 0, latency = 0;
    double way = 0;  // what both are for a message that meets no other
    int wire = -1, depth = Channel::kUnlimited;
    int untaken = 0;          // sent and not taken, arrival known or not
    int sender = -1;          // stream that stands at a Send
    int receiver = -1;        // stream that stands at a Receive
    int sent = 0, asked = 0;  // rendezvous: messages sent, and asked for or announced to be
    double ask_time = 0;      // of the last one
    int replay = -1;
    bool was_taken = false;  // some message
    bool synchronous = false;
    bool sender_waits = false;
    bool shared = false;  // its wire shares links
  };
  struct StreamState {
    Cursor cursor;
    double message_sent = 0, message_arrival = -1;  // the last message it had to wait for
    double stood_from = 0;                          // at its Send, for the transfer; see Channel
    double collectives = 0;                         // how long it waited for some since its last op
    int rank = 0, number = 0;
    bool computing = false;
    bool handed_over = false;  // the message of its Send is on the way
    bool waited = false;       // its Receive found no arrived message at first
    double waits_since = 0;
    bool announced = false;  // its next Receive
    bool replaying = false;  // computes an old input while it waits at its Receive
    int next_waiter = -1;    // see EventState
  };
  struct RankState {
    double free = 0;
    std::size_t turn = 0;
    bool several_streams = false;
    bool busy = false, will_choose = false;  // several streams only; will_choose: in choosers_
    std::vector<int> ready;  // streams that stand at a Compute; several streams only
  };
  struct Pending {
    int channel, micro_batch;
    double sent;
  };
  struct Generation {
    double recorded = 0;  // by the last one so far
    double time = -1;     // complete; -1: not yet
    double sent = 0;      // see note_sent
    int records = 0;
    bool complete() const { return time >= 0; }
  };
  /// Streams that stand at a Wait of one event, in a ring: of each comes the next one, and behind
  /// the last one the first.
  struct EventState {
    [[no_unique_address]] Generations<Generation> generations;
    int last_waiter = -1;
  };
  /// A collective that all have joined.
  struct Joined {
    int event, micro_batch;
    double time;
  };
  struct CommunicatorState {
    Fifo<Joined> joined;       // the front is under way, or will_start
    bool will_start = false;   // its front, at the end of this instant; in starters_
    std::vector<int> waiting;  // streams that stand until none is
    double started = 0;
    double factor = 1;  // of its time, by jitter
    int flows_left = 0;
  };
  struct SharedWire {
    double started = 0;
    int flows_left = 0;  // of the front
    bool carrying = false;
    Fifo<Pending> pending;  // the front is being carried
  };
};

}  // namespace interlock
