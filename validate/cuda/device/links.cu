// Links: peer copies, the copy engine, and a copy that takes as long as it is told.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "validate/cuda/device/links.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

constexpr int kPacedThreads = 512;
// The clock may tick once a microsecond only, so a chunk should take many of these.
constexpr std::int64_t kBlockBytes = 256 << 10;

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// One block copies chunk after chunk; each ends when it is due: `latency` and its share of
/// `occupancy` (ns) after the start.
__global__ void paced_copy(uint4* to, const uint4* from, std::int64_t bytes, double latency,
                           double occupancy) {
  __shared__ std::uint64_t start;
  if (threadIdx.x == 0) start = nanoseconds();
  __syncthreads();
  const std::int64_t chunk = kBlockBytes / sizeof(uint4), whole = bytes / sizeof(uint4);
  for (std::int64_t first = 0; first == 0 || first < whole; first += chunk) {
    const std::int64_t end = min(whole, first + chunk);
    for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x) to[i] = from[i];
    if (end == whole) {
      const auto* tail = reinterpret_cast<const unsigned char*>(from);
      auto* to_tail = reinterpret_cast<unsigned char*>(to);
      for (std::int64_t i = whole * sizeof(uint4) + threadIdx.x; i < bytes; i += blockDim.x) {
        to_tail[i] = tail[i];
      }
    }
    if (threadIdx.x == 0) {
      const double share = whole == 0 ? 1.0 : static_cast<double>(end) / whole;
      const auto due = start + static_cast<std::uint64_t>(latency + occupancy * share);
      while (nanoseconds() < due) {
      }
    }
    __syncthreads();
  }
}

/// Beside kernels where the toolkit has a way to ask for it.
void copy_beside(const Shipment& s, cudaStream_t stream) {
  const auto size = static_cast<std::size_t>(s.bytes);
#if CUDART_VERSION >= 12080
  // No documentation promises that batches can be captured.
  if (!s.capturing) {
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    std::size_t first = 0;
    void* to = s.to;
#if CUDART_VERSION >= 13000
    const void* from = s.from;
    require(cudaMemcpyBatchAsync(&to, &from, &size, 1, &attributes, &first, 1, stream), "copy");
#else
    void* from = const_cast<void*>(s.from);
    std::size_t sizes = size, failed = 0;
    require(cudaMemcpyBatchAsync(&to, &from, &sizes, 1, &attributes, &first, 1, &failed, stream),
            "copy");
#endif
    return;
  }
#endif
  require(cudaMemcpyAsync(s.to, s.from, size, cudaMemcpyDeviceToDevice, stream), "copy");
}

}  // namespace

void ship(const Shipment& s, CudaLink link, cudaStream_t stream) {
  if (s.bytes == 0) return;
  if (s.to_gpu != s.from_gpu) {
    // Without peer access the driver takes it through the host.
    return require(cudaMemcpyPeerAsync(s.to, s.to_gpu, s.from, s.from_gpu,
                                       static_cast<std::size_t>(s.bytes), stream),
                   "copy to another GPU");
  }
  switch (link) {
    case CudaLink::Zero:
      return;
    case CudaLink::CopyEngine:
      return copy_beside(s, stream);
    case CudaLink::Paced:
      paced_copy<<<1, kPacedThreads, 0, stream>>>(static_cast<uint4*>(s.to),
                                                  static_cast<const uint4*>(s.from), s.bytes,
                                                  s.latency * 1e9, s.occupancy * 1e9);
      return require(cudaGetLastError(), "paced copy");
  }
}

void pace(double seconds, cudaStream_t stream) {
  paced_copy<<<1, 1, 0, stream>>>(nullptr, nullptr, 0, seconds * 1e9, 0);
  require(cudaGetLastError(), "pace");
}

bool has_kernels_here() {
  cudaFuncAttributes attributes{};
  const cudaError_t status =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(paced_copy));
  cudaGetLastError();
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    return false;
  }
  require(status, "find kernels");
  return true;
}

std::string kernel_architectures() {
  std::string text;
#ifdef __CUDA_ARCH_LIST__
  for (const int one : {__CUDA_ARCH_LIST__}) {  // 900: capability 9.0
    text += (text.empty() ? "" : ", ") + std::to_string(one / 100) + "." +
            std::to_string(one / 10 % 10);
  }
#endif
  return text.empty() ? "others" : text;
}

const char* name_of_link(CudaLink link, bool capturing) {
  switch (link) {
    case CudaLink::Zero:
      return "zero: messages stay in the memory of their sender";
    case CudaLink::Paced:
      return "paced copies: latency and occupancy of each channel";
    case CudaLink::CopyEngine:
      break;
  }
#if CUDART_VERSION >= 12080
  if (!capturing) return "copy engine: batched copies that prefer to overlap with kernels";
#endif
  static_cast<void>(capturing);
  return "plain copies inside the GPU, which may take multiprocessors";
}

}  // namespace interlock::cuda
