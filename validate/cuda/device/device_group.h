// Device group: the devices of a program, each a GPU or a partition of one.
// SPDX-License-Identifier: Apache-2.0
//
// Partitions are green contexts: streams that run on disjoint sets of multiprocessors. They are
// split off in one call, as two calls may overlap, and their sizes are read back. No thread makes
// such a context current: a stream alone decides where its kernels run. What no partition gets has
// streams of its own, on which paced links run.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "validate/cuda/device/driver_functions.h"
#include "validate/executors/cuda_options.h"
#include "validate/executors/partition_plan.h"

namespace interlock::cuda {

/// A device of the program. Example: four ranks on partitions of one GPU of 132 multiprocessors are
/// {gpu 0, sms 32} each, and 4 multiprocessors are left for paced links.
struct Member {
  int gpu = 0;  // of CUDA
  int sms = 0;
  cudaStream_t compute = nullptr;
};

class DeviceGroup {
 public:
  /// Throws: Error if there are too few GPUs or multiprocessors, or if they are divided in another
  /// way than was asked for, with what would do.
  DeviceGroup(int members, const CudaOptions& options);
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  const std::vector<Member>& members() const { return members_; }
  /// Returns true if all members are on one GPU, so that a run can be one graph.
  bool one_gpu() const { return one_gpu_; }
  /// Returns a stream for what leaves `from` for `to`; of paced links, on what no partition has.
  cudaStream_t make_way(int from, int to, CudaLink link);
  /// Returns a further stream on the multiprocessors of a member.
  cudaStream_t make_stream_beside(int member);
  /// Multiprocessors behind paced links; 0: they run wherever there is room.
  int link_sms() const { return link_sms_; }
  /// Returns what the members are: "GPUs", "green contexts" or "plain streams".
  const std::string& divided() const { return divided_; }
  /// Returns how each request was met, a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void take_gpus(int members, const CudaOptions& options);
  void take_partitions(int members, const CudaOptions& options);
  void take_streams(int members, int gpu);
  /// Tries to split the GPU under `flags` into partitions of the size asked for, or of the largest
  /// size. Returns false, and the reason in `refusal`, if it cannot.
  bool split(int members, const CudaOptions& options, unsigned flags, std::string& refusal);
  void make_partitions(std::vector<CUdevResource>& groups, CUdevResource& rest, int gpu);
  CUgreenCtx make_green(CUdevResource& resource, int gpu);
  cudaStream_t make_green_stream(CUgreenCtx green);
  cudaStream_t make_stream(int gpu);
  void require_driver(CUresult status, const char* what) const;
  void release() noexcept;

  DriverFunctions driver_;
  std::vector<Member> members_;
  std::vector<CUgreenCtx> greens_;
  std::vector<cudaStream_t> streams_;
  CUgreenCtx link_green_ = nullptr;
  int link_sms_ = 0;
  bool one_gpu_ = false;
  std::string divided_;
  std::vector<std::string> notes_;
};

/// Returns the limits that a GPU sets to partitions. `fine`: without regard to clusters of blocks.
PartitionLimits limits_of(const CUdevResource& whole, int major, bool fine);

}  // namespace interlock::cuda
