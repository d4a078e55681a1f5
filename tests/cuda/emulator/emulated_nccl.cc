// NCCL on the emulated machine: a group of sends and receives, each pair a copy that both await.
// SPDX-License-Identifier: Apache-2.0
//
// A library of its own, which the module opens by name. CUDA's functions are those of the program.
#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

namespace {

struct Communicator {
  int member = 0, device = 0;
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
constexpr int kRefused = 5;

int note(std::vector<Half>& halves, const Half& half) {
  if (!open || half.stream == nullptr) return kRefused;
  halves.push_back(half);
  return 0;
}

/// An event of `half`'s device, recorded on its stream.
cudaEvent_t mark(const Half& half) {
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

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 20000;
  return 0;
}
const char* ncclGetErrorString(int) { return "the emulated NCCL refuses"; }
int ncclCommInitAll(void** communicators, int count, const int* devices) {
  for (int i = 0; i < count; ++i) communicators[i] = new Communicator{i, devices[i]};
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
/// Every send meets the first receive of its peer that is for it.
int ncclGroupEnd() {
  int device = 0;
  cudaGetDevice(&device);
  bool fine = sends.size() == receives.size();
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
