// VirtualClocks: a program under way on logical clocks, one instant after the other.
// SPDX-License-Identifier: Apache-2.0
//
// Written to be read, not to be fast. Nothing is woken and no event carries a meaning: at every
// instant each stream is asked whether it can go on, again and again until none can. Then
// 1. every free rank of several streams picks the first of its ops that could begin;
// 2. if none picked anything, a stream that waits for a message that is not there replays an old
// input; and if that changed something, all streams are asked again. Instants are the times at
// which an event is known to happen. Times are whole ticks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/program/trace.h"
#include "validate/executors/unroll.h"

namespace interlock {

class VirtualClocks {
 public:
  VirtualClocks(const Program& program, const TraceSink& sink);
  /// Throws: Error on deadlock.
  RunSummary run();

 private:
  using Ticks = std::int64_t;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Stream {
    UnrolledStream unrolled;
    std::size_t at = 0;  // the instruction that it stands at
    Ticks since = 0;     // when it came there
    bool computing = false, replaying = false;
    Ticks end = 0;              // of what it computes
    bool handed_over = false;   // its Send has offered or sent the message
    std::size_t asked = kNone;  // the Receive that the sender was last told about
    // Since its last op: the last message that it stood for, and how long for collectives.
    std::optional<Ticks> message_sent;
    Ticks message_arrival = 0, collectives = 0;

    bool done() const { return at == unrolled.code.size(); }
    const Instruction& instruction() const { return unrolled.code[at]; }
  };
  struct Device {
    bool several = false;  // streams, among which it picks
    bool busy = false;
    Ticks free = 0;        // when its last op ends
    std::size_t turn = 0;  // of a frozen order
  };
  struct Message {
    int micro_batch = 0;
    Ticks sent = 0, start = 0, arrival = 0;
    bool timed = false;  // not before its turn on the wire has come
  };
  struct Queue {
    Ticks occupancy = 0, latency = 0;
    std::vector<Message> messages;  // of the whole run
    std::size_t taken = 0;          // of these
    std::vector<Ticks> asks;        // rendezvous: when the receiver will want each message
    // Synchronous: who stands there, the sender with this micro-batch.
    std::optional<int> offered;
    bool wanted = false;
    // Messages that the sender's head reads, too: the end of the transfer, or the head's start, if
    // the other is yet to come.
    std::map<int, Ticks> half_read;
  };
  struct Way {
    Ticks free = 0;
    std::vector<int> pending;  // channels of messages that wait for their turn
    std::size_t turn = 0;      // of a frozen order
  };
  struct Generation {
    int records = 0;
    Ticks joined = 0, time = 0;    // by the last; complete
    Ticks recorded = 0, sent = 0;  // in line, by the last so far: when, and its message
    bool complete = false;
  };
  struct Joined {
    int event = 0, micro_batch = 0;
    Ticks time = 0;
  };
  struct Group {
    std::deque<Joined> joined;  // the front is under way
    Ticks start = 0, end = 0;
  };

  // virtual_streams.cc
  Ticks in_ticks(Seconds duration) const;
  Seconds in_seconds(Ticks ticks) const;
  void expect(Ticks time);
  void settle();
  void go_on(Stream& stream);
  void step(Stream& stream);
  bool passes(Stream& stream);
  bool compute(Stream& stream);
  void begin(Stream& stream, int op);
  void pick(int rank);
  Stream* first_of(int rank);
  void replay(Stream& stream);
  bool change_memory(const Stream& stream);
  void take_or_free(const Stream& stream);
  void read_half(int channel, int micro_batch, Ticks time);
  void change_memory(Ticks time, int rank, MemoryClass memory_class, double bytes);

  // virtual_messages.cc
  bool send(Stream& stream);
  bool send_synchronously(Stream& stream, Queue& queue);
  bool has_left(Stream& stream, const Queue& queue);
  bool receive(Stream& stream);
  void meet(int channel);
  void announce(Stream& stream);
  void ask(Queue& queue, Ticks time);
  void hand_over(int channel, int micro_batch);
  void carry(int wire);
  void give_times(int channel, Message& message, Ticks start);
  bool has_arrived(const Queue& queue) const;

  // virtual_events.cc
  bool record(Stream& stream);
  bool wait(Stream& stream);
  void note_record(int event, int micro_batch);
  void complete(int event, int micro_batch);
  void begin_collective(int communicator);
  void end_collective(int communicator);

  const Program& program_;
  const TraceSink& sink_;
  std::vector<Stream> streams_;
  std::vector<Device> devices_;
  std::vector<Queue> queues_;
  std::vector<Way> ways_;  // by wire
  std::vector<std::map<int, Generation>> events_;
  std::vector<Group> groups_;  // by communicator
  std::set<Ticks> instants_;   // to come
  Ticks now_ = 0, makespan_ = 0;
  bool changed_ = false;  // something, since it was last asked
};

/// Runs `program` on logical clocks, written from the meaning of instructions (instruction.h,
/// docs/design.md) without any code of the engines: times must equal theirs exactly. Throws: Error
/// on deadlock, or if the program has variation or interference. REQUIRES: !shares_links(program).
RunSummary run_virtual(const Program& program, const TraceSink& sink);

}  // namespace interlock
