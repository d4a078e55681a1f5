// Trace: what happened when, delivered to sinks as it becomes known.
// SPDX-License-Identifier: Apache-2.0
//
// Spans of one rank come in order of their start; nothing is promised between ranks. Engines and
// executors feed the same sinks, so that metrics and reports work on predicted and measured runs.
//
// Example: the 1F1B of program.h with F = 1 s, B = 2 s and messages of 0.5 s without latency begins
//   span      rank 0 F0  0 to 1 s        transfer  channel 0, micro-batch 0: sent 1, 1 to 1.5 s
//   span      rank 0 F1  1 to 2 s        transfer  channel 0, micro-batch 1: sent 2, 2 to 2.5 s
//   span      rank 1 F0  1.5 to 2.5 s, 0.5 s exposed
//   span      rank 1 B0  2.5 to 4.5 s    transfer  channel 1, micro-batch 0: sent 4.5, 4.5 to 5 s
//   span      rank 0 B0  5 to 7 s, 0.5 s exposed
// and its memory: stash of 3 MB, +3 MB on rank 0 at 0 s and 1 s, -3 MB at 7 s, when B0 ends.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/program/program.h"

namespace interlock {

/// One executed Compute.
struct Span {
  Seconds start, end;
  Seconds exposed;  // idle before it while its message was on the way
  std::int32_t rank = 0, op = 0, micro_batch = 0;
};

/// One message between two ranks.
struct Transfer {
  Seconds sent;        // accepted by the channel
  Seconds start, end;  // occupied the wire
  Seconds arrival;     // end + latency
  std::int32_t channel = 0, micro_batch = 0;
};

/// One collective.
struct CollectiveSpan {
  Seconds joined;      // by the last member
  Seconds start, end;  // in its communicator, latency included
  std::int32_t collective = 0, micro_batch = 0;
};

/// Bytes taken (positive) or given back (negative) on a rank.
struct MemoryChange {
  Seconds time;
  double bytes = 0;
  std::int32_t rank = 0;
  MemoryClass memory_class = MemoryClass::Stash;
};

/// Receives a trace. Members that are empty are not called.
struct TraceSink {
  std::function<void(const Span&)> span;
  std::function<void(const Transfer&)> transfer;
  std::function<void(const MemoryChange&)> memory;
  std::function<void(const CollectiveSpan&)> collective;
};

/// Returns a sink that hands everything to both. Both must outlive it.
TraceSink tee(const TraceSink& first, const TraceSink& second);

/// A trace kept whole.
struct TraceLog {
  std::vector<Span> spans;
  std::vector<Transfer> transfers;
  std::vector<MemoryChange> memory;
  std::vector<CollectiveSpan> collectives;
};
/// Returns a sink that appends to `log`.
TraceSink log_sink(TraceLog& log);

/// The totals of a run that an engine reports at its end.
struct RunSummary {
  std::string engine;  // "native" or "simgrid"
  std::int64_t tasks = 0;
  Seconds makespan;  // first start to last end
};

}  // namespace interlock
