// GpuCollectives: times collectives among the GPUs of this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "validate/calibration/bench.h"
#include "validate/cuda/device/nccl.h"
#include "validate/cuda/stage/gpu_steps.h"

namespace interlock::cuda {

class GpuCollectives {
 public:
  /// Among GPUs from number `first` on. REQUIRES: NCCL is there, and `most` >= 2 GPUs.
  GpuCollectives(int first, int most);
  ~GpuCollectives();
  GpuCollectives(const GpuCollectives&) = delete;
  GpuCollectives& operator=(const GpuCollectives&) = delete;

  /// Times `count` collectives of the first `members` GPUs, each behind another one, so that all
  /// begin together; a reading is that of the GPU that took longest.
  Readings time(CollectiveKind kind, int members, Bytes bytes, int count);

 private:
  NcclGroup& group_of(int members);

  int first_;
  std::vector<cudaStream_t> streams_;                       // by GPU
  std::vector<std::unique_ptr<Scratch>> given_, received_;  // likewise
  std::map<int, std::unique_ptr<NcclGroup>> groups_;        // by members
};

}  // namespace interlock::cuda
