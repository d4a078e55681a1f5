// NCCL: messages and collectives of the GPUs of this process. Opened at run time; nothing needs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/exchange.h"
#include "validate/cuda/kernels/kernels.h"

namespace interlock::cuda {

/// Returns the version, "2.28.9"; empty if it cannot be opened.
std::string nccl_version();
/// Returns why it cannot be opened, in the loader's words; empty if it can.
std::string nccl_problem();

/// Communicators between GPUs, one for each. NCCL refuses a GPU that is listed twice.
class NcclGroup {
 public:
  /// Throws: Error if NCCL cannot be opened or refuses.
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

  /// A block that every member has, and the numbers of it that each updates: shards of equal size
  /// but for the last ones, which may have less. Example: {fp32, 10, 4} among three members are
  /// shards of 4, 4 and 2 numbers.
  struct Replicated {
    Element element = Element::Fp32;
    std::int64_t numbers = 0, shard = 0;
  };
  /// A member's block, on a stream of its GPU.
  struct Copy {
    void* block = nullptr;
    cudaStream_t stream = nullptr;
  };
  /// Starts one collective of all members, in order, in place: all get the sum of their blocks
  /// (all-reduce), or of their shard of them (reduce-scatter; the rest of a block is anything), or
  /// all shards (all-gather). NCCL's own mean of bf16 multiplies by 1/n in bf16: it is 0.2 % too
  /// large for three members.
  void exchange(CollectiveKind kind, const std::vector<Copy>& copies, const Replicated& what);

 private:
  std::vector<void*> communicators_;
};

}  // namespace interlock::cuda
