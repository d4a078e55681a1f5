// Checks that need a GPU: partitions are disjoint and run at once, links copy. Skipped without.
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "tests/cuda/device_numbers.h"
#include "tests/cuda/probes.h"
#include "validate/cuda/device/device_group.h"
#include "validate/cuda/device/links.h"
#include "validate/cuda/kernels/cuda_call.h"

using namespace interlock;
using namespace interlock::cuda;

namespace {

constexpr int kSkipped = 77;

/// Seconds from the first launch to the end of all streams of `group`.
double time_of(const DeviceGroup& group, const std::function<void()>& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  require(cudaDeviceSynchronize(), "wait");
  cudaStream_t first = group.members().front().compute;
  require(cudaEventRecord(begin, first), "begin");
  for (const Member& member : group.members()) {
    require(cudaStreamWaitEvent(member.compute, begin), "begin together");
  }
  launch();
  for (const Member& member : group.members()) {
    cudaEvent_t done = nullptr;
    require(cudaEventCreate(&done), "event");
    require(cudaEventRecord(done, member.compute), "end");
    require(cudaStreamWaitEvent(first, done), "end together");
    cudaEventDestroy(done);
  }
  require(cudaEventRecord(end, first), "end");
  require(cudaDeviceSynchronize(), "wait");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "time");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds / 1e3;
}

}  // namespace

TEST_CASE("partitions are as large as they say and share no multiprocessor") {
  for (const CudaSplit split : {CudaSplit::Green, CudaSplit::FineGreen}) {
    for (const int partitions : {2, 4, 8, 16}) {
      try {
        const DeviceGroup group(partitions, {.partitions = partitions, .split = split});
        std::set<int> taken;
        for (const std::string& note : group.notes()) MESSAGE(note);
        for (const Member& member : group.members()) {
          const std::set<int> own = multiprocessors_of(member.compute, 16 * member.sms);
          CHECK(static_cast<int>(own.size()) == member.sms);
          for (const int one : own) CHECK(taken.insert(one).second);
        }
      } catch (const Error& error) {
        MESSAGE(error.what());  // refused: a fact about this device
      }
    }
  }
}

TEST_CASE("kernels of two partitions run at the same time") {
  const DeviceGroup group(2, {.partitions = 2, .split = CudaSplit::Green});
  const auto both = [&] {
    for (const Member& member : group.members()) spin(member.compute, member.sms, 2'000'000);
  };
  both();
  const double seconds = time_of(group, both);
  INFO("two kernels of 2 ms took ", seconds * 1e3, " ms");
  CHECK(seconds < 3e-3);  // one after the other: 4 ms
}

TEST_CASE("a partition is refused that does not exist") {
  CHECK_THROWS_AS(DeviceGroup(2, {.partitions = 2, .sms = 4096}), Error);
  CHECK_THROWS_AS(DeviceGroup(1000, {}), Error);
}

TEST_CASE("every link carries every byte, of any size, and a paced one takes its time") {
  DeviceGroup group(2, {.partitions = 2});
  for (const CudaLink link : {CudaLink::CopyEngine, CudaLink::Paced}) {
    cudaStream_t stream = group.make_way(0, 1, link);
    for (const std::size_t count : {1, 3, 4, 1000, 300'001}) {
      OnDevice on(Element::Fp32, 1);
      Numbers sent = random_numbers(count, 1);
      float *from = on.put_fp32(sent), *to = on.room_fp32(count);
      const auto bytes = static_cast<std::int64_t>(count * sizeof(float));
      cudaEvent_t begin = nullptr, end = nullptr;
      require(cudaEventCreate(&begin), "event");
      require(cudaEventCreate(&end), "event");
      require(cudaEventRecord(begin, stream), "begin");
      ship({.to = to, .from = from, .bytes = bytes, .latency = 1e-4, .occupancy = 1e-3}, link,
           stream);
      require(cudaEventRecord(end, stream), "end");
      require(cudaStreamSynchronize(stream), "copy");
      float milliseconds = 0;
      require(cudaEventElapsedTime(&milliseconds, begin, end), "time");
      INFO(name_of_link(link, false), ", ", bytes, " bytes in ", milliseconds, " ms");
      CHECK(on.get_fp32(to, count) == sent);
      if (link == CudaLink::Paced) CHECK(milliseconds >= 1.09F);
      cudaEventDestroy(begin);
      cudaEventDestroy(end);
    }
  }
}

int main(int argc, char** argv) {
  // Before CUDA begins: streams of many partitions shall not share a queue.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  std::string why;
  if (!has_gpu(why)) {
    std::printf("skipped: kernels, partitions and links on a GPU; needs one (%s)\n", why.c_str());
    return kSkipped;
  }
  doctest::Context context(argc, argv);
  return context.run();
}
