// Workload: what the instructions of a program stand for when it is run for real.
// SPDX-License-Identifier: Apache-2.0
//
// Example: where ops[5] is the forward of stage 1, compute(5, 3) runs it for micro-batch 3.
#pragma once

#include <functional>

namespace interlock {

/// The numbers behind a program. An executor decides when, the workload what. Everything of a rank
/// is called from one thread at a time; what was sent happens before what receives it. Members that
/// are empty are not called. What they throw ends the run, and leaves through the executor.
struct Workload {
  /// Runs Program::ops[op] for `micro_batch`.
  std::function<void(int op, int micro_batch)> compute;
  /// Hands over what goes into Program::channels[channel]; on the sender, when the channel has room
  /// and before the message is on its way.
  std::function<void(int channel, int micro_batch)> send;
  /// Takes the oldest message that was sent and not taken; on the receiver, when it has arrived.
  /// The number is the sender's, but of readouts (see Cargo): there it is the receiver's own.
  std::function<void(int channel, int micro_batch)> receive;
  /// Hands over what `rank` gives to the collective of Program::events[event]; on its thread.
  std::function<void(int event, int rank, int micro_batch)> join;
  /// Carries out that collective, when all have joined; on the thread of the last one, while the
  /// others may be at what does not wait for it.
  std::function<void(int event, int micro_batch)> exchange;
};

}  // namespace interlock
