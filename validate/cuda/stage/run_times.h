// RunTimes: events around what is issued, and the trace that they make when the run is over.
// SPDX-License-Identifier: Apache-2.0
//
// Times count from an event of each GPU. GPUs have clocks of their own: between GPUs, times are as
// near as their first events were.
//
// Example: on a rank an op ended at 2 ms; the next one starts at 5 ms, behind a message that was
// sent at 1 ms and arrived at 4.5 ms. In the log that op has an exposed time of min(5, 4.5) -
// max(2, 1) = 2.5 ms.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <vector>

#include "reports/result/execution_record.h"
#include "sim/program/trace.h"

namespace interlock::cuda {

/// Events of a run; they live as long as this.
class Events {
 public:
  Events() = default;
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Returns an event that others wait for, not yet recorded.
  cudaEvent_t make();
  /// Returns an event with a time, recorded on `stream`; inside a graph it is recorded when that
  /// runs.
  cudaEvent_t mark(cudaStream_t stream, bool capturing);

 private:
  std::vector<cudaEvent_t> events_;
};

struct MarkedOp {
  int rank = 0, op = 0, micro_batch = 0;
  cudaEvent_t start = nullptr, end = nullptr;
  // The last transfer, or collective, that came before it and after the op before, if any did.
  int message = -1, collective = -1;
  Seconds issued;  // after the start of the run, when the host had issued all of it
};

struct MarkedTransfer {
  int channel = 0, micro_batch = 0, rank = 0;                  // the sender's
  cudaEvent_t sent = nullptr, start = nullptr, end = nullptr;  // nothing: it took no time
};

/// A collective, and when each of its members began and ended it.
struct MarkedCollective {
  struct Share {
    int rank = 0;
    cudaEvent_t joined = nullptr, start = nullptr, end = nullptr;
  };
  int collective = 0, micro_batch = 0;
  std::vector<Share> shares;
};

struct RunTimes {
  std::map<int, cudaEvent_t> begin;  // by GPU
  std::vector<int> gpu;              // by rank
  std::vector<MarkedOp> ops;
  std::vector<MarkedTransfer> transfers;
  std::vector<MarkedCollective> collectives;

  /// Returns spans, transfers and collectives, each in order of start. A collective is as long as
  /// the longest of its members says.
  TraceLog log() const;
  /// Returns how late the host was; nothing is late where it `issued` before the run.
  HostLateness lateness() const;

 private:
  Seconds time_of(int rank, cudaEvent_t event) const;
  CollectiveSpan span_of(const MarkedCollective& collective) const;
};

}  // namespace interlock::cuda
