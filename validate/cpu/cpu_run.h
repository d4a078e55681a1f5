// CpuRun: a job's numbers on the CPU, as executors run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "validate/cpu/cpu_device.h"
#include "validate/executors/workload.h"
#include "validate/stage/stage.h"

namespace interlock {

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
