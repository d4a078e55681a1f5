// ClockSampler: a thread that sleeps between readings.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/clock_sampler.h"

#include <utility>

#include "validate/cuda/device/nvml.h"

namespace interlock::cuda {

namespace {

constexpr std::size_t kMostReadings = 1200;  // of each GPU

}  // namespace

ClockSampler::ClockSampler(std::vector<SampledGpu> gpus)
    : gpus_(std::move(gpus)), begin_(std::chrono::steady_clock::now()) {
  read();
  if (!readings_.empty()) thread_ = std::thread([this] { sample(); });
}

ClockSampler::~ClockSampler() { finish(); }

void ClockSampler::sample() {
  std::unique_lock lock(mutex_);
  while (!change_.wait_for(lock, every_, [this] { return ended_; })) read();
}

void ClockSampler::read() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
  for (const SampledGpu& gpu : gpus_) {
    ClockReading reading{.time = Seconds(now.count()), .gpu = gpu.number};
    if (read_clocks(gpu.bus, reading)) readings_.push_back(reading);
  }
  if (readings_.size() < kMostReadings * gpus_.size()) return;
  std::vector<ClockReading> fewer;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (i / gpus_.size() % 2 == 0) fewer.push_back(readings_[i]);
  }
  readings_ = std::move(fewer);
  every_ *= 2;
}

std::vector<ClockReading> ClockSampler::finish() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    change_.notify_one();
    thread_.join();
    read();
  }
  return std::exchange(readings_, {});
}

}  // namespace interlock::cuda
