// Executors: functions that run a Program on something else than an engine, and feed a TraceSink.
// SPDX-License-Identifier: Apache-2.0
//
// cpu      a thread for each rank, real work, wall-clock times.
// cuda     GPUs, or partitions of one; lives in a module, see validate/cuda.
//
// Times of a trace are seconds since the run began. An executor of real work delivers its trace
// when the run is over, in order of time.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sim/program/trace.h"
#include "validate/executors/workload.h"

namespace interlock {

/// A fact about an op that a real run found out and a trace does not say: its times on the clocks.
/// Example: {op 3, micro_batch 1, wall 2 ms, cpu 1.5 ms}: for 0.5 ms other threads had the
/// processor.
struct OpSample {
  int op = 0, micro_batch = 0;
  Seconds wall;  // from start to end
  Seconds cpu;   // that its thread was on a processor
};

struct ThreadOptions {
  /// A message arrives no sooner than its channel's occupancy and latency say.
  bool emulate_links = false;
  /// Ends the run soon after it becomes true. Everything that was done by then is delivered.
  const std::atomic<bool>* stop = nullptr;
};

struct ThreadRun {
  RunSummary summary;
  std::vector<OpSample> samples;  // by rank, in order of start
  bool stopped = false;           // before its end; tasks are those that were done
};

/// Runs one thread for each rank. A span is the time that the workload took; a transfer is the time
/// that its send took, or, with emulated links, the time of the wire. An instruction without
/// duration takes none in the memory of the trace: changes between two ops with no wait between
/// them are one instant. Throws: Error on deadlock, naming what every rank waits for; what the
/// workload throws. REQUIRES: why_not_executable(program).empty().
ThreadRun run_threads(const Program& program, const Workload& workload,
                      const ThreadOptions& options, const TraceSink& sink);

/// Runs ops one after the other on the caller's thread, with nothing beside them, in issue_order();
/// streams that choose do so as an engine would. Samples in that order, as far as `stop` let it go.
/// REQUIRES: why_not_executable(program).empty().
std::vector<OpSample> run_in_order(const Program& program, const Workload& workload,
                                   const std::atomic<bool>* stop = nullptr);

/// Returns why real executors cannot run `program` ("it has collectives, ..."); empty if they can.
std::string why_not_executable(const Program& program);

}  // namespace interlock
