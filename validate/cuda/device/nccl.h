// NCCL: messages and collectives of the GPUs of this process. Opened at run time; nothing needs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/exchange.h"

namespace interlock::cuda {

/// Returns the version, "2.28.9"; empty if it is not installed.
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

  /// The places that a member gives from and gets to, on a stream of its GPU.
  struct Share {
    const void* from = nullptr;
    void* to = nullptr;
    cudaStream_t stream = nullptr;
  };
  /// Starts one collective of all members, in order, of bf16; `bytes` as in base/exchange.h.
  /// REQUIRES: all-reduce, all-gather, reduce-scatter or all-to-all; bytes divide among them.
  void collective(CollectiveKind kind, const std::vector<Share>& shares, std::int64_t bytes);

 private:
  std::vector<void*> communicators_;
};

}  // namespace interlock::cuda
