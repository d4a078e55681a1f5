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
  /// Does the first part of workload.compute; its result is to be called when the op ends.
  std::function<EndOfOp(int op, int micro_batch)> begin;
  /// Ends the transfer of a message, on the sender's thread.
  std::function<void(int channel, int micro_batch)> sent;
  /// Returns the outcome; to be called when the run is over.
  std::function<Outcome()> outcome;
};

/// Makes the run of `job`, which must outlive it with what it refers to. Throws: Error if it cannot
/// be trained.
CpuRun make_cpu_run(const Job& job, const CpuOptions& options);

}  // namespace interlock
