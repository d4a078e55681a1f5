// ClockSampler: reads clocks, power and temperature of GPUs by NVML while they work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reports/result/execution_record.h"

namespace interlock::cuda {

/// A GPU as CUDA numbers it, and the bus by which NVML finds it.
struct SampledGpu {
  int number = 0;
  std::string bus;
};

/// Reads at once, then every 50 ms on a thread of its own, and once more at the end. A run of more
/// than a minute keeps fewer: whenever there are 1200 readings of each GPU, every second is dropped
/// and the time between them doubles. Example: after 100 s there are about 1,000 readings of each
/// GPU, 100 ms apart: 600 that are left of the first minute, and 400 since.
class ClockSampler {
 public:
  explicit ClockSampler(std::vector<SampledGpu> gpus);
  ~ClockSampler();
  ClockSampler(const ClockSampler&) = delete;
  ClockSampler& operator=(const ClockSampler&) = delete;

  /// Ends the sampling and returns what was read; empty without NVML.
  std::vector<ClockReading> finish();

 private:
  void read();
  void sample();

  std::vector<SampledGpu> gpus_;
  std::vector<ClockReading> readings_;
  std::chrono::milliseconds every_{50};
  std::chrono::steady_clock::time_point begin_;
  std::mutex mutex_;  // of `ended_`
  std::condition_variable change_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace interlock::cuda
