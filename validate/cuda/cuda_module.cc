// The module's entry points, which are looked up by name (validate/executors/cuda_executor.h).
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "validate/cuda/bench/gpu_bench.h"
#include "validate/cuda/device/look.h"
#include "validate/cuda/stage/gpu_run.h"

namespace {

/// Before CUDA begins: streams of several partitions shall not wait in one hardware queue.
void ask_for_queues() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

}  // namespace

extern "C" {

void interlock_look_at_cuda(interlock::CudaReport& report) {
  ask_for_queues();
  interlock::cuda::look(report);
}

void interlock_run_cuda(const interlock::Job& job, const interlock::CudaOptions& options,
                        const interlock::TraceSink& sink, interlock::CudaRun& run) {
  ask_for_queues();
  interlock::cuda::run_job(job, options, sink, run);
}

void interlock_open_cuda_bench(int device, int partitions, interlock::Bench& bench) {
  ask_for_queues();
  interlock::cuda::open_bench(device, partitions, bench);
}
}
