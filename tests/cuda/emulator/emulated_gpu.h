// Emulated GPUs: streams whose work runs on this processor, as late as it may.
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA module is compiled as it is against this in place of CUDA's libraries, its kernels as
// plain C++. Whatever is sent to a stream waits there. When the host waits for something, heads of
// streams are drawn at random until it is done, so that work runs in any order that events and
// streams allow: work without a waiter is late. Memory is not zero at first. Rules that CUDA
// enforces (a stream belongs to its device, a capture takes in only what joined it) are enforced.
// EMULATED_GPUS, EMULATED_MIB and EMULATED_SEED say how many there are, how much memory each has
// and which order is drawn; EMULATED_CAPABILITY (90) what they can, EMULATED_OLD_DRIVER that the
// driver knows no green contexts; EMULATED_REFUSALS what is refused, see refusals.h. What this does
// not show: speed, caches, threads of a warp that run apart.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace emulated {

using Work = std::function<void()>;

struct Graph;

/// The object that cudaEvent_t points to.
struct Event {
  int device = 0;
  bool tells_time = true;
  std::int64_t recorded = 0, done = 0;  // recordings asked for, and run
  double time = 0;                      // s; of the last that ran
  Graph* graph = nullptr;               // in which it was recorded last, being captured
  int node = -1;
};
using EventRef = std::shared_ptr<Event>;

struct Task {
  Work work;
  EventRef awaited;  // runs once `recording` recordings of it have run
  std::int64_t recording = 0;
};

/// A captured graph: works, each after some earlier ones.
struct Graph {
  struct Node {
    Work work;
    std::vector<int> after;
  };
  std::vector<Node> nodes;
  std::vector<EventRef> marks;       // events that are recorded each time it runs
  std::set<struct Stream*> streams;  // captured into it, while that lasts
};

/// The object that cudaStream_t points to.
struct Stream {
  int device = 0;
  int first_sm = 0, sms = 0;
  std::vector<Task> tasks;  // a queue
  std::size_t head = 0;
  Graph* graph = nullptr;  // being captured
  std::vector<int> last;   // nodes that its next node comes after
};

class EmulatedGpus {
 public:
  static EmulatedGpus& instance();

  static constexpr int kSms = 132;
  int devices() const { return devices_; }
  /// Returns the compute capability, 90 of 9.0: EMULATED_CAPABILITY.
  static int capability();
  int current = 0;
  cudaError_t last_error = cudaSuccess;

  /// Remembers an error, as cudaGetLastError() tells it.
  cudaError_t fail(cudaError_t error);

  Stream* stream(cudaStream_t handle);
  cudaStream_t make_stream(int device, int first_sm, int sms);
  void destroy(cudaStream_t handle);
  EventRef event(cudaEvent_t handle);
  cudaEvent_t make_event(bool tells_time);
  void destroy(cudaEvent_t handle);

  cudaError_t enqueue(Stream* stream, Work work);
  cudaError_t record(Stream* stream, const EventRef& event, bool external);
  cudaError_t wait(Stream* stream, const EventRef& event);
  cudaError_t end_capture(Stream* stream, Graph* graph);
  /// Runs works in random order until `done`; an error if nothing can run any more.
  cudaError_t run_until(const std::function<bool()>& done);
  cudaError_t finish(Stream* stream);
  cudaError_t finish_device(int device);
  void run_graph(const Graph& graph);
  /// Runs a few works, or none: the device goes on while the host does.
  void go_on();

  void* allocate(std::size_t bytes);
  bool release(void* block);
  void* allocate_host(std::size_t bytes);
  void release_host(void* block);
  bool on_device(const void* address) const { return block_of(device_blocks_, address); }
  bool pinned(const void* address) const { return block_of(host_blocks_, address); }
  std::size_t memory() const { return memory_; }  // bytes of each device
  std::size_t free_bytes() const;                 // of the current device

  /// The stream whose work runs; kernels ask it for their multiprocessors.
  const Stream* running = nullptr;

 private:
  struct Block {
    std::size_t bytes = 0;
    int device = 0;
  };
  using Blocks = std::map<const char*, Block>;
  EmulatedGpus();
  static bool block_of(const Blocks& blocks, const void* address);
  static bool is_ready(const Stream& stream);
  bool step();

  int devices_ = 1;
  std::size_t memory_ = 0;  // bytes of each device
  std::mt19937_64 random_;
  std::map<cudaStream_t, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> defaults_;  // by device
  std::map<cudaEvent_t, EventRef> events_;
  Blocks device_blocks_, host_blocks_;
  std::vector<std::size_t> taken_;  // bytes, by device
};

/// Returns the emulated time in seconds: what this process has computed so far, whatever else the
/// machine was busy with.
double now();
/// Returns the time to kernels that wait for it: every look moves it on by some microseconds.
double look_at_clock();
/// Lets time pass in which nothing is computed.
void pass(double seconds);

}  // namespace emulated
