// ThreadRun's inside: a program under way on real threads.
// SPDX-License-Identifier: Apache-2.0
//
// One mutex guards everything that ranks share; it is unlocked while a workload works. A rank does
// all that its streams can do, runs an op, and so on; when nothing can be done it sleeps until
// another rank changes its state, or until a message arrives. When all ranks that are not done
// sleep, and none of them by the clock, the program deadlocks.
//
// Times are nanoseconds since the run began. Beside the clock on the wall, streams have a time of
// their own, as programs know it: only ops, emulated wires and waiting for others move it. It
// stamps memory, so that instants of a program are instants of its trace.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sim/engines/message_holds.h"
#include "validate/executors/executor.h"
#include "validate/executors/unroll.h"

namespace interlock {

/// Bounds how late a sleeper wakes up.
inline constexpr std::chrono::nanoseconds kWakeUpDelay{50'000};

class ThreadedProgram {
 public:
  ThreadedProgram(const Program& program, const Workload& workload, const ThreadOptions& options);
  ThreadRun run(const TraceSink& sink);

 private:
  using Time = std::int64_t;
  using Lock = std::unique_lock<std::mutex>;
  static constexpr Time kNever = std::numeric_limits<Time>::max();

  struct Stream {
    UnrolledStream unrolled;
    std::size_t at = 0;
    Time time = 0;                  // when the instruction at `at` may be done, as programs know it
    bool handed_over = false;       // the message of the Send at `at` is with the channel
    std::optional<Time> in_flight;  // since when the last message that it stood for was under way
    Time arrival = 0;               // of that message
    bool done() const { return at == unrolled.code.size(); }
    const Instruction& instruction() const { return unrolled.code[at]; }
  };
  struct Device {
    int first_stream = 0, streams = 1;
    Time free = 0;         // when its last op ended
    std::size_t turn = 0;  // of a frozen order
    Time next = kNever;    // when something arrives that it looked for
    bool asleep = false, poked = false;
    std::condition_variable changed;
    std::vector<OpSample> samples;
  };
  /// A message that is sent and not taken. Sent and arrived as programs know it; under way on the
  /// wall clock.
  struct Message {
    int micro_batch = 0;
    Time sent = 0, arrival = 0;
    Time left = 0, landed = 0;
    bool timed = false;  // synchronous ones are when both streams are there
  };
  struct Queue {
    Time occupancy = 0, latency = 0;
    std::deque<Message> messages;
    std::vector<Time> taken;  // when each was
    std::size_t sent = 0;
  };
  struct Generation {
    int records = 0;
    Time time = 0;   // of the last one; of a collective, its end
    Time begun = 0;  // of a collective
    bool done = false;
  };

  // thread_executor.cc
  void start_all(std::vector<std::jthread>& threads);
  ThreadRun summarise();

  // thread_rank.cc
  void live(int rank);
  void work(Device& device, Lock& lock);
  bool over(const Device& device) const;
  bool enter_all(Device& device, Lock& lock);
  bool passes(Stream& stream, Lock& lock);
  Stream* pick(Device& device);
  void compute(Device& device, Stream& stream, Lock& lock);
  void change_memory(const Stream& stream, const Instruction& instruction);
  void let_go(int channel, int micro_batch, Time time);
  void sleep(Device& device, Lock& lock);
  bool must_stop() const;
  void poke(int rank);
  void end_run(std::exception_ptr failure);
  Time now() const;

  // thread_messages.cc
  bool send(Stream& stream, Lock& lock);
  bool receive(Stream& stream, Lock& lock);
  void give_times(int channel, Message& message, Time sent);
  bool record(const Stream& stream, Lock& lock);
  void exchange(int event, int micro_batch, Generation& generation, Lock& lock);
  bool wait(Stream& stream);

  const Program& program_;
  const Workload& workload_;
  const ThreadOptions options_;
  std::chrono::steady_clock::time_point begin_;

  std::mutex mutex_;  // guards all that follows, but for samples
  std::vector<Stream> streams_;
  std::vector<Device> devices_;
  std::vector<Queue> queues_;
  std::vector<Time> wire_free_, communicator_free_;
  std::vector<std::map<int, Generation>> events_;
  MessageHolds<Time> holds_;
  TraceLog log_;
  int alive_ = 0, asleep_ = 0;  // ranks that are not done; that sleep until they are poked
  bool ended_ = false;          // before its end: by failure, deadlock or from outside
  std::exception_ptr failure_;
};

}  // namespace interlock
