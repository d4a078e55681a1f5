// GpuNeighbours: what the rest of a GPU does while a kernel is timed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/units.h"
#include "validate/calibration/bench.h"
#include "validate/cuda/bench/gpu_probe.h"
#include "validate/cuda/device/device_group.h"
#include "validate/cuda/stage/run_times.h"

namespace interlock::cuda {

/// Products on every other partition, or copies from partition to partition; beside a whole GPU,
/// either on another stream.
class GpuNeighbours {
 public:
  /// Times the first member of `group`. REQUIRES: beside is not Nothing.
  GpuNeighbours(DeviceGroup& group, Beside beside, Precision precision);
  GpuNeighbours(const GpuNeighbours&) = delete;
  GpuNeighbours& operator=(const GpuNeighbours&) = delete;

  /// Gives every neighbour work for `busy`; `stream` begins when all of them have.
  void begin(Seconds busy, cudaStream_t stream);
  /// Returns true if all of them still run.
  bool busy() const;
  void wait() const;

 private:
  struct Neighbour {
    cudaStream_t stream = nullptr;
    std::unique_ptr<Products> products;
    std::unique_ptr<Scratch> memory = std::make_unique<Scratch>();
    std::function<void()> work;
    cudaEvent_t started = nullptr, ended = nullptr;
  };
  void add_products(const Stream& stream);
  void add_copies(cudaStream_t way, int gpu);
  Seconds time_once(const Neighbour& neighbour);

  Events events_;
  std::vector<Neighbour> neighbours_;
  std::vector<Seconds> each_;  // how long a piece of work takes
};

}  // namespace interlock::cuda
