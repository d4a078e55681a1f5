// NCCL: sends and receives between GPUs of this process. Opened at run time; nothing needs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace interlock::cuda {

/// "2.28.9"; empty if it is not installed.
std::string nccl_version();

/// Communicators between GPUs, one for each. NCCL refuses a GPU that is listed twice.
class NcclGroup {
 public:
  /// Throws: Error if NCCL is not installed or refuses.
  explicit NcclGroup(const std::vector<int>& devices);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  struct End {
    int member = 0;  // index into the devices
    void* bytes = nullptr;
    cudaStream_t stream = nullptr;
  };
  /// Issues both halves of one message in one group call, so that their order cannot deadlock.
  void transfer(const End& from, const End& to, std::int64_t bytes);

 private:
  std::vector<void*> communicators_;
};

}  // namespace interlock::cuda
