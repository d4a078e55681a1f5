// GpuNeighbours: large products, or messages by the copy engine, one behind the other.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/bench/gpu_neighbours.h"

#include <algorithm>
#include <cmath>

#include "validate/cuda/device/links.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

constexpr std::int64_t kSide = 2048;         // of matrices
constexpr std::int64_t kMessage = 16 << 20;  // bytes
constexpr int kMostPieces = 4000;            // of work at once, for each neighbour

}  // namespace

GpuNeighbours::GpuNeighbours(DeviceGroup& group, Beside beside, Precision precision) {
  const std::vector<Member>& members = group.members();
  const int gpu = members.front().gpu;
  const Element element = precision == Precision::Bf16 ? Element::Bf16 : Element::Fp32;
  const CurrentDevice current(gpu);
  for (int i = 1; i < static_cast<int>(members.size()); ++i) {
    const Member& member = members[static_cast<std::size_t>(i)];
    if (member.gpu != gpu) continue;
    if (beside == Beside::Products) {
      add_products({member.compute, member.sms, element});
    } else {
      add_copies(group.make_way(i, 0, CudaLink::CopyEngine), gpu);
    }
  }
  if (neighbours_.empty()) {
    cudaStream_t stream = group.make_way(0, 0, CudaLink::CopyEngine);
    if (beside == Beside::Products) {
      add_products({stream, members.front().sms, element});
    } else {
      add_copies(stream, gpu);
    }
  }
  for (Neighbour& neighbour : neighbours_) {
    neighbour.started = events_.make();
    neighbour.ended = events_.make();
    each_.push_back(time_once(neighbour));
  }
}

void GpuNeighbours::add_products(const Stream& stream) {
  int gpu = 0;
  require(cudaGetDevice(&gpu), "which device is current");
  Neighbour& one = neighbours_.emplace_back();
  one.stream = stream.handle;
  one.products = std::make_unique<Products>(gpu);
  const std::int64_t bytes = kSide * kSide * bytes_of(stream.element);
  char* begin = one.memory->take(3 * bytes, stream.handle);
  fill_with_noise(stream, begin, 3 * bytes);
  const ProductShape shape = {.m = kSide,
                              .n = kSide,
                              .k = kSide,
                              .lead_a = kSide,
                              .lead_b = kSide,
                              .lead_c = kSide,
                              .element = stream.element,
                              .sms = stream.sms};
  one.work = [products = one.products.get(), stream, shape, begin, bytes] {
    products->run(stream, shape, {begin, begin + bytes, begin + 2 * bytes});
  };
}

void GpuNeighbours::add_copies(cudaStream_t way, int gpu) {
  Neighbour& one = neighbours_.emplace_back();
  one.stream = way;
  char* begin = one.memory->take(2 * kMessage, way);
  fill_with_noise({way, 1, Element::Fp32}, begin, 2 * kMessage);
  one.work = [way, begin, gpu] {
    ship({.to = begin + kMessage, .from = begin, .bytes = kMessage, .to_gpu = gpu, .from_gpu = gpu},
         CudaLink::CopyEngine, way);
  };
}

Seconds GpuNeighbours::time_once(const Neighbour& neighbour) {
  neighbour.work();
  cudaEvent_t begin = events_.mark(neighbour.stream, false);
  neighbour.work();
  neighbour.work();
  cudaEvent_t end = events_.mark(neighbour.stream, false);
  require(cudaStreamSynchronize(neighbour.stream), "run a neighbour");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "read a time");
  return Seconds(std::max(1e-6, milliseconds / 2e3));
}

void GpuNeighbours::begin(Seconds busy, cudaStream_t stream) {
  for (std::size_t i = 0; i < neighbours_.size(); ++i) {
    const Neighbour& one = neighbours_[i];
    one.work();
    require(cudaEventRecord(one.started, one.stream), "a neighbour's start");
    require(cudaStreamWaitEvent(stream, one.started), "wait for a neighbour");
    const int pieces = static_cast<int>(std::min<double>(kMostPieces, std::ceil(busy / each_[i])));
    for (int piece = 0; piece < pieces; ++piece) one.work();
    require(cudaEventRecord(one.ended, one.stream), "a neighbour's end");
  }
}

bool GpuNeighbours::busy() const {
  const bool all = std::all_of(neighbours_.begin(), neighbours_.end(), [](const Neighbour& one) {
    return cudaEventQuery(one.ended) == cudaErrorNotReady;
  });
  cudaGetLastError();  // "not ready" is no error here
  return all;
}

void GpuNeighbours::wait() const {
  for (const Neighbour& one : neighbours_) {
    require(cudaStreamSynchronize(one.stream), "run a neighbour");
  }
}

}  // namespace interlock::cuda
