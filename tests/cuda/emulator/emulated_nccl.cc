// NCCL on the emulated machine: sends and receives, each pair a copy that both await; collectives.
// SPDX-License-Identifier: Apache-2.0
//
// A library of its own, which the module opens by name. CUDA's functions are those of the program.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

struct Communicator {
  int member = 0, device = 0;
  std::size_t members = 1;
};

struct Half {
  Communicator* own = nullptr;
  int peer = 0;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Half> sends, receives;  // of the open group
bool open = false;
constexpr int kRefused = 5, kBf16 = 9;

/// A member's part of a collective. Numbers are those of one member's smaller side.
struct Part {
  enum class Kind { AllReduce, ReduceScatter, AllGather };
  Kind kind = Kind::AllReduce;
  Communicator* own = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t numbers = 0;
  cudaStream_t stream = nullptr;
};
std::vector<Part> parts;  // of the open group, by member

float widened(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// Returns bf16 cut off behind its 8 bits: sums of small whole numbers are exact.
std::uint16_t narrowed(float value) {
  std::uint32_t wide = 0;
  std::memcpy(&wide, &value, sizeof wide);
  return static_cast<std::uint16_t>(wide >> 16);
}

std::uint16_t sum_at(const std::vector<Part>& all, std::size_t at) {
  float sum = 0;
  for (const Part& part : all) sum += widened(static_cast<const std::uint16_t*>(part.from)[at]);
  return narrowed(sum);
}

/// Does all of a collective at once, into room of its own first: it may be in place.
void compute(const std::vector<Part>& all) {
  const std::size_t each = all.front().numbers;
  std::vector<std::vector<std::uint16_t>> made(all.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    switch (all[m].kind) {
      case Part::Kind::AllReduce:
        for (std::size_t i = 0; i < each; ++i) made[m].push_back(sum_at(all, i));
        break;
      case Part::Kind::ReduceScatter:
        for (std::size_t i = 0; i < each; ++i) made[m].push_back(sum_at(all, m * each + i));
        break;
      case Part::Kind::AllGather:
        for (const Part& part : all) {
          const auto* from = static_cast<const std::uint16_t*>(part.from);
          made[m].insert(made[m].end(), from, from + each);
        }
    }
  }
  for (std::size_t m = 0; m < all.size(); ++m) {
    std::memcpy(all[m].to, made[m].data(), made[m].size() * sizeof(std::uint16_t));
  }
}

void compute_and_forget(void* all) {
  auto* const own = static_cast<std::vector<Part>*>(all);
  compute(*own);
  delete own;
}

int note(const Part& part) {
  if (!open || part.stream == nullptr) return kRefused;
  parts.push_back(part);
  return 0;
}

int note(std::vector<Half>& halves, const Half& half) {
  if (!open || half.stream == nullptr) return kRefused;
  halves.push_back(half);
  return 0;
}

/// An event of the device of `half`, or of a part, recorded on its stream.
template <class Share>
cudaEvent_t mark(const Share& half) {
  cudaEvent_t event = nullptr;
  cudaSetDevice(half.own->device);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  return cudaEventRecord(event, half.stream) == cudaSuccess ? event : nullptr;
}

/// Begins when both streams have come so far; neither goes on before it is done.
bool pass(const Half& send, const Half& receive) {
  cudaEvent_t sent = mark(send);
  bool fine = sent != nullptr && cudaStreamWaitEvent(receive.stream, sent, 0) == cudaSuccess;
  cudaSetDevice(receive.own->device);
  fine = fine && cudaMemcpyPeerAsync(receive.to, receive.own->device, send.from, send.own->device,
                                     send.bytes, receive.stream) == cudaSuccess;
  cudaEvent_t done = mark(receive);
  fine = fine && done != nullptr && cudaStreamWaitEvent(send.stream, done, 0) == cudaSuccess;
  cudaEventDestroy(sent);
  cudaEventDestroy(done);
  return fine;
}

/// Begins when all streams have come so far; none goes on before it is done. Every member of the
/// communicator has to take part, and in the same collective.
bool run_collective() {
  const Part& first = parts.front();
  bool fine = parts.size() == first.own->members;
  std::vector<cudaEvent_t> marks;
  for (const Part& part : parts) {
    fine = fine && part.kind == first.kind && part.numbers == first.numbers;
    marks.push_back(mark(part));
  }
  cudaSetDevice(first.own->device);
  for (cudaEvent_t one : marks) {
    fine = fine && one != nullptr && cudaStreamWaitEvent(first.stream, one, 0) == cudaSuccess;
  }
  auto* const all = new std::vector<Part>(parts);
  fine = fine && cudaLaunchHostFunc(first.stream, compute_and_forget, all) == cudaSuccess;
  cudaEvent_t done = mark(first);
  for (const Part& part : parts) {
    cudaSetDevice(part.own->device);
    fine = fine && cudaStreamWaitEvent(part.stream, done, 0) == cudaSuccess;
  }
  for (cudaEvent_t one : marks) cudaEventDestroy(one);
  cudaEventDestroy(done);
  return fine;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 20000;
  return 0;
}
const char* ncclGetErrorString(int) { return "the emulated NCCL refuses"; }
int ncclCommInitAll(void** communicators, int count, const int* devices) {
  for (int i = 0; i < count; ++i) {
    communicators[i] = new Communicator{i, devices[i], static_cast<std::size_t>(count)};
  }
  return 0;
}
int ncclCommDestroy(void* communicator) {
  delete static_cast<Communicator*>(communicator);
  return 0;
}
int ncclGroupStart() {
  open = true;
  return 0;
}
int ncclSend(const void* from, std::size_t count, int, int peer, void* own, cudaStream_t stream) {
  return note(sends, {static_cast<Communicator*>(own), peer, from, nullptr, count, stream});
}
int ncclRecv(void* to, std::size_t count, int, int peer, void* own, cudaStream_t stream) {
  return note(receives, {static_cast<Communicator*>(own), peer, nullptr, to, count, stream});
}
int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int, void* own,
                  cudaStream_t stream) {
  if (type != kBf16) return kRefused;
  return note({Part::Kind::AllReduce, static_cast<Communicator*>(own), from, to, count, stream});
}
int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int, void* own,
                      cudaStream_t stream) {
  if (type != kBf16) return kRefused;
  return note(
      {Part::Kind::ReduceScatter, static_cast<Communicator*>(own), from, to, count, stream});
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type, void* own,
                  cudaStream_t stream) {
  if (type != kBf16) return kRefused;
  return note({Part::Kind::AllGather, static_cast<Communicator*>(own), from, to, count, stream});
}
/// Every send meets the first receive of its peer that is for it.
int ncclGroupEnd() {
  int device = 0;
  cudaGetDevice(&device);
  bool fine = sends.size() == receives.size();
  if (!parts.empty()) fine = run_collective() && fine;
  parts.clear();
  for (const Half& send : sends) {
    bool met = false;
    for (const Half& receive : receives) {
      const bool pair = receive.own->member == send.peer && receive.peer == send.own->member;
      if (met || !pair) continue;
      met = true;
      fine = fine && receive.bytes == send.bytes && pass(send, receive);
    }
    fine = fine && met;
  }
  sends.clear();
  receives.clear();
  open = false;
  cudaSetDevice(device);
  return fine ? 0 : kRefused;
}
}
