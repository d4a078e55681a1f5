// CpuWorkload: a job's numbers on the CPU, as executors run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "validate/executors/workload.h"
#include "validate/network/job.h"

namespace interlock {

/// Gives back the memory that an op held.
using EndOfOp = std::function<void()>;

struct CpuOptions {
  bool doubles = false;  // floats otherwise; doubles take twice the memory that the program says
  bool poison = false;   // see CpuMemory
  /// A sender keeps what it has sent until `sent` is called: for executors that know when a
  /// transfer ends. Otherwise it is copied, and given back, at once.
  bool keeps_sent = false;
  /// Where a weight begins, given where its job has it begin; empty: there.
  std::function<double(const std::string& parameter, std::int64_t index, double value)> first = {};
};

struct CpuRun {
  Workload workload;
  /// workload.compute in two parts: what this returns is to be called when the op ends.
  std::function<EndOfOp(int op, int micro_batch)> begin;
  /// The transfer of a message is over. On the sender's thread.
  std::function<void(int channel, int micro_batch)> sent;
  /// To be called when the run is over.
  std::function<Outcome()> outcome;
};

/// `job` and what it refers to must outlive the run. Throws: Error if it cannot be trained.
CpuRun make_cpu_run(const Job& job, const CpuOptions& options);

}  // namespace interlock
