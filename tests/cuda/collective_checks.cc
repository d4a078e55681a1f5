// Collectives of several GPUs by NCCL, against sums by hand; and that they can be timed.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <doctest/doctest.h>

#include "base/error_summary.h"
#include "validate/cuda/bench/gpu_collectives.h"
#include "validate/cuda/kernels/cuda_call.h"

using namespace interlock;
using namespace interlock::cuda;

namespace {

constexpr int kEach = 5;  // numbers of a member's part

/// Returns how many GPUs there are, if NCCL joins them; else 0.
int joined_gpus() {
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "count devices");
  return nccl_version().empty() || devices < 2 ? 0 : devices;
}

/// The number that `member` gives at place `at`: whole, so that sums are exact in bf16.
float given(int member, int at) { return static_cast<float>(member + 1 + at % 7); }

/// Returns the number that `member` of `members` has at place `at` after the collective.
float wanted(CollectiveKind kind, int members, int member, int at) {
  float sum = 0;
  switch (kind) {
    case CollectiveKind::AllGather:
      return given(at / kEach, at % kEach);
    case CollectiveKind::AllToAll:
      return given(at / kEach, member * kEach + at % kEach);
    case CollectiveKind::ReduceScatter:
      at += member * kEach;
      [[fallthrough]];
    default:
      for (int m = 0; m < members; ++m) sum += given(m, at);
      return sum;
  }
}

}  // namespace

TEST_CASE("collectives of several GPUs come to what sums by hand come to") {
  const int members = joined_gpus();
  if (members == 0) {
    MESSAGE("there is one GPU, or no NCCL: left out");
    return;
  }
  std::vector<int> devices;
  for (int i = 0; i < members; ++i) devices.push_back(i);
  NcclGroup group(devices);
  const int numbers = members * kEach;
  const auto bytes = static_cast<std::int64_t>(sizeof(__nv_bfloat16)) * numbers;
  for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                    CollectiveKind::ReduceScatter, CollectiveKind::AllToAll}) {
    std::vector<NcclGroup::Share> shares;
    for (int m = 0; m < members; ++m) {
      const CurrentDevice current(m);
      std::vector<__nv_bfloat16> host;
      for (int i = 0; i < numbers; ++i) host.push_back(__float2bfloat16_rn(given(m, i)));
      NcclGroup::Share share;
      void* from = allocate(bytes, "a share");
      require(
          cudaMemcpy(from, host.data(), static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice),
          "send");
      require(cudaDeviceSynchronize(), "wait");  // no stream waits for a copy that still runs
      share.from = from;
      share.to = allocate(bytes, "a share");
      require(cudaStreamCreateWithFlags(&share.stream, cudaStreamNonBlocking), "make a stream");
      shares.push_back(share);
    }
    group.collective(kind, shares, bytes);
    for (int m = 0; m < members; ++m) {
      const CurrentDevice current(m);
      const NcclGroup::Share& share = shares[static_cast<std::size_t>(m)];
      require(cudaStreamSynchronize(share.stream), "wait");
      std::vector<__nv_bfloat16> got(static_cast<std::size_t>(numbers));
      require(
          cudaMemcpy(got.data(), share.to, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost),
          "fetch");
      const int made = kind == CollectiveKind::ReduceScatter ? kEach : numbers;
      for (int i = 0; i < made; ++i) {
        INFO("collective ", static_cast<int>(kind), ", member ", m, ", number ", i);
        CHECK(__bfloat162float(got[static_cast<std::size_t>(i)]) == wanted(kind, members, m, i));
      }
      cudaStreamDestroy(share.stream);
      cudaFree(const_cast<void*>(share.from));
      cudaFree(share.to);
    }
  }
}

TEST_CASE("collectives of any number of GPUs are timed") {
  const int most = joined_gpus();
  if (most == 0) {
    MESSAGE("there is one GPU, or no NCCL: left out");
    return;
  }
  GpuCollectives collectives(0, most);
  for (int members = most; members >= 2; --members) {
    const Readings readings =
        collectives.time(CollectiveKind::AllReduce, members, Bytes(4.0 * members * 100), 5);
    REQUIRE(readings.busy.size() == 5);
    CHECK(median_of(readings.busy) > 0);
  }
}
