// GpuBench: times kernels, launches and messages of a GPU, or of one partition of it.
// SPDX-License-Identifier: Apache-2.0
//
// A reading is a graph of some executions between two events, on operands that take turns so that
// each execution finds its own in memory, not in the cache: so do kernels of a step that others
// come before. Readings during which the clock changed are taken again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "validate/calibration/bench.h"
#include "validate/cuda/bench/gpu_neighbours.h"
#include "validate/executors/cuda_executor.h"

namespace interlock::cuda {

class GpuBench {
 public:
  /// GPU number `device`, or one of `partitions` of it. Throws: Error if it cannot be divided so.
  GpuBench(int device, int partitions);
  ~GpuBench();
  GpuBench(const GpuBench&) = delete;
  GpuBench& operator=(const GpuBench&) = delete;

  BenchFacts facts() const;
  const CudaReport& report() const { return report_; }
  /// Returns the bytes of memory of the part of the device that is timed.
  std::int64_t memory() const { return device_.memory / partitions_; }
  std::int64_t cache() const { return cache_; }
  /// Returns those of the part that is timed.
  int multiprocessors() const { return member().sms; }
  Readings time(const Probe& probe, int count, Beside beside);
  Readings launch(int count);
  Readings copy(Bytes bytes, int count);

 private:
  struct Timed;
  KernelContext context();
  const Member& member() const { return group_.members().front(); }
  /// Executions of a reading; cold: with nothing of theirs in the cache.
  struct Executions {
    int repeats = 1;
    bool cold = true;
  };
  Readings read(const Executions& executions, const std::function<void(int)>& issue, int count,
                GpuNeighbours* beside);
  void flush();
  GpuNeighbours* neighbours(Beside beside, Precision precision);
  int clock();

  int partitions_;
  DeviceGroup group_;
  CudaDevice device_;
  CudaReport report_;
  std::int64_t cache_ = 0;
  Products products_;
  Scratch scratch_, arena_, flushed_, here_, there_;
  cudaStream_t way_ = nullptr;  // made when messages are first timed
  std::map<std::pair<Beside, Precision>, std::unique_ptr<GpuNeighbours>> neighbours_;
};

/// Fills `bench`, which then owns the device. Throws: Error.
void open_bench(int device, int partitions, Bench& bench);

}  // namespace interlock::cuda
