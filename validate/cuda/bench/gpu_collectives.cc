// GpuCollectives: one group call after the other, between events of every GPU.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/bench/gpu_collectives.h"

#include <algorithm>

#include "validate/cuda/bench/gpu_probe.h"
#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/stage/run_times.h"

namespace interlock::cuda {

namespace {

constexpr int kWarmUps = 3;

}  // namespace

GpuCollectives::GpuCollectives(int first, int most) : first_(first) {
  for (int gpu = first; gpu < first + most; ++gpu) {
    const CurrentDevice current(gpu);
    cudaStream_t stream = nullptr;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    streams_.push_back(stream);
    given_.push_back(std::make_unique<Scratch>());
    received_.push_back(std::make_unique<Scratch>());
  }
}

GpuCollectives::~GpuCollectives() {
  groups_.clear();
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    finish_device(first_ + static_cast<int>(i));
    cudaStreamDestroy(streams_[i]);
  }
}

NcclGroup& GpuCollectives::group_of(int members) {
  std::unique_ptr<NcclGroup>& group = groups_[members];
  if (group) return *group;
  std::vector<int> gpus;
  gpus.reserve(static_cast<std::size_t>(members));
  for (int i = 0; i < members; ++i) gpus.push_back(first_ + i);
  group = std::make_unique<NcclGroup>(gpus);
  return *group;
}

Readings GpuCollectives::time(CollectiveKind kind, int members, Bytes bytes, int count) {
  NcclGroup& group = group_of(members);
  const auto size = static_cast<std::int64_t>(bytes.value());
  std::vector<NcclGroup::Share> shares;
  for (int i = 0; i < members; ++i) {
    const CurrentDevice current(first_ + i);
    const auto at = static_cast<std::size_t>(i);
    char* from = given_[at]->take(size, streams_[at]);
    fill_with_noise({streams_[at], 1, Element::Bf16}, from, size);
    shares.push_back({from, received_[at]->take(size, streams_[at]), streams_[at]});
  }
  Readings readings;
  for (int i = -kWarmUps; i < count; ++i) {
    Events events;
    std::vector<std::pair<cudaEvent_t, cudaEvent_t>> marks(shares.size());
    group.collective(kind, shares, size);
    const auto mark_all = [&](cudaEvent_t std::pair<cudaEvent_t, cudaEvent_t>::*which) {
      for (std::size_t m = 0; m < shares.size(); ++m) {
        const CurrentDevice current(first_ + static_cast<int>(m));
        marks[m].*which = events.mark(streams_[m], false);
      }
    };
    mark_all(&std::pair<cudaEvent_t, cudaEvent_t>::first);
    group.collective(kind, shares, size);
    mark_all(&std::pair<cudaEvent_t, cudaEvent_t>::second);
    float longest = 0;
    for (std::size_t m = 0; m < shares.size(); ++m) {
      require(cudaStreamSynchronize(streams_[m]), "run a collective");
      float milliseconds = 0;
      require(cudaEventElapsedTime(&milliseconds, marks[m].first, marks[m].second), "read a time");
      longest = std::max(longest, milliseconds);
    }
    if (i >= 0) readings.busy.push_back(longest / 1e3);
  }
  readings.wall = readings.busy;
  return readings;
}

}  // namespace interlock::cuda
