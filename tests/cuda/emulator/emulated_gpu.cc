// The emulated machine: queues, their random order, captures, blocks of memory.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/emulator/emulated_gpu.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tests/cuda/emulator/refusals.h"

namespace emulated {

namespace {

constexpr int kGarbage = 0xcb;

double computed = 0;  // s, when the host or an event last asked
double looked = 0;    // s, by which kernels that looked at the clock have moved it

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

double now() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  computed = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  return computed + looked;
}

double look_at_clock() {
  looked += 5e-6;
  return computed + looked;
}

void pass(double seconds) { looked += seconds; }

int EmulatedGpus::capability() { return number_from("EMULATED_CAPABILITY", 90); }

EmulatedGpus& EmulatedGpus::instance() {
  static EmulatedGpus gpus;
  return gpus;
}

EmulatedGpus::EmulatedGpus()
    : devices_(number_from("EMULATED_GPUS", 1)),
      memory_(static_cast<std::size_t>(number_from("EMULATED_MIB", 256)) << 20),
      random_(static_cast<std::uint64_t>(number_from("EMULATED_SEED", 1))) {
#ifdef M_MMAP_THRESHOLD
  // Blocks come and go with every run: pages that go back to the system would be cleared again.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  taken_.resize(static_cast<std::size_t>(devices_));
  for (int device = 0; device < devices_; ++device) {
    defaults_.push_back(std::make_unique<Stream>());
    defaults_.back()->device = device;
    defaults_.back()->sms = kSms;
  }
}

cudaError_t EmulatedGpus::fail(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

Stream* EmulatedGpus::stream(cudaStream_t handle) {
  if (handle == nullptr) return defaults_[static_cast<std::size_t>(current)].get();
  const auto found = streams_.find(handle);
  return found == streams_.end() ? nullptr : found->second.get();
}

cudaStream_t EmulatedGpus::make_stream(int device, int first_sm, int sms) {
  auto stream = std::make_unique<Stream>();
  stream->device = device;
  stream->first_sm = first_sm;
  stream->sms = sms;
  auto* handle = reinterpret_cast<cudaStream_t>(stream.get());
  streams_[handle] = std::move(stream);
  return handle;
}

/// Runs the work that is still in a stream before it is destroyed, as CUDA does.
void EmulatedGpus::destroy(cudaStream_t handle) {
  finish(stream(handle));
  streams_.erase(handle);
}

EventRef EmulatedGpus::event(cudaEvent_t handle) {
  const auto found = events_.find(handle);
  return found == events_.end() ? nullptr : found->second;
}

cudaEvent_t EmulatedGpus::make_event(bool tells_time) {
  auto event = std::make_shared<Event>();
  event->device = current;
  event->tells_time = tells_time;
  auto* handle = reinterpret_cast<cudaEvent_t>(event.get());
  events_[handle] = event;
  return handle;
}

void EmulatedGpus::destroy(cudaEvent_t handle) { events_.erase(handle); }

cudaError_t EmulatedGpus::enqueue(Stream* stream, Work work) {
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (stream->graph != nullptr) {
    stream->graph->nodes.push_back({std::move(work), stream->last});
    stream->last = {static_cast<int>(stream->graph->nodes.size()) - 1};
    return cudaSuccess;
  }
  stream->tasks.push_back({std::move(work), nullptr, 0});
  go_on();
  return cudaSuccess;
}

cudaError_t EmulatedGpus::record(Stream* stream, const EventRef& event, bool external) {
  if (stream == nullptr || event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (stream->device != event->device) return fail(cudaErrorInvalidResourceHandle);
  if (external && stream->graph == nullptr) return fail(cudaErrorIllegalState);
  if (stream->graph != nullptr && !external) {
    event->graph = stream->graph;
    stream->graph->nodes.push_back({[] {}, stream->last});
    event->node = static_cast<int>(stream->graph->nodes.size()) - 1;
    stream->last = {event->node};
    return cudaSuccess;
  }
  event->graph = nullptr;
  if (external) {
    stream->graph->marks.push_back(event);
    return enqueue(stream, [event] {
      event->done = event->recorded;
      event->time = now();
    });
  }
  const std::int64_t recording = ++event->recorded;
  return enqueue(stream, [event, recording] {
    event->done = std::max(event->done, recording);
    event->time = now();
  });
}

cudaError_t EmulatedGpus::wait(Stream* stream, const EventRef& event) {
  if (stream == nullptr || event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (event->graph != nullptr) {
    if (stream->graph == nullptr && stream->head == stream->tasks.size()) {
      stream->graph = event->graph;
      event->graph->streams.insert(stream);
    }
    if (stream->graph != event->graph) return fail(cudaErrorStreamCaptureMerge);
    stream->last.push_back(event->node);
    return cudaSuccess;
  }
  if (stream->graph != nullptr) return fail(cudaErrorStreamCaptureIsolation);
  if (event->recorded == 0) return cudaSuccess;
  stream->tasks.push_back({[] {}, event, event->recorded});
  return cudaSuccess;
}

cudaError_t EmulatedGpus::end_capture(Stream* stream, Graph* graph) {
  // Everything must lie before the end of `stream`.
  std::set<int> before;
  std::vector<int> open = stream->last;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (!before.insert(node).second) continue;
    const auto& after = graph->nodes[static_cast<std::size_t>(node)].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  const bool joined = std::all_of(graph->streams.begin(), graph->streams.end(), [&](Stream* one) {
    return std::all_of(one->last.begin(), one->last.end(),
                       [&](int node) { return before.count(node) > 0; });
  });
  for (Stream* one : graph->streams) {
    one->graph = nullptr;
    one->last.clear();
  }
  graph->streams.clear();
  return joined ? cudaSuccess : fail(cudaErrorStreamCaptureUnjoined);
}

bool EmulatedGpus::is_ready(const Stream& stream) {
  if (stream.head == stream.tasks.size()) return false;
  const Task& task = stream.tasks[stream.head];
  return task.awaited == nullptr || task.awaited->done >= task.recording;
}

/// Runs the head of a stream; false: no stream has one that is ready.
bool EmulatedGpus::step() {
  std::vector<Stream*> ready;
  for (const auto& one : streams_) {
    if (is_ready(*one.second)) ready.push_back(one.second.get());
  }
  for (const auto& one : defaults_) {
    if (is_ready(*one)) ready.push_back(one.get());
  }
  if (ready.empty()) return false;
  Stream* const drawn = ready[random_() % ready.size()];
  const Work work = std::move(drawn->tasks[drawn->head++].work);
  if (drawn->head == drawn->tasks.size()) {
    drawn->tasks.clear();
    drawn->head = 0;
  }
  running = drawn;
  work();
  running = nullptr;
  return true;
}

cudaError_t EmulatedGpus::run_until(const std::function<bool()>& done) {
  while (!done()) {
    if (!step()) return fail(cudaErrorLaunchTimeout);  // all wait for each other
  }
  return cudaSuccess;
}

cudaError_t EmulatedGpus::finish(Stream* stream) {
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (stream->graph != nullptr) return fail(cudaErrorStreamCaptureUnsupported);
  return run_until([&] { return stream->head == stream->tasks.size(); });
}

cudaError_t EmulatedGpus::finish_device(int device) {
  const auto done = [&](const Stream& one) {
    return one.device != device || one.head == one.tasks.size();
  };
  return run_until([&] {
    return done(*defaults_[static_cast<std::size_t>(device)]) &&
           std::all_of(streams_.begin(), streams_.end(),
                       [&](const auto& one) { return done(*one.second); });
  });
}

void EmulatedGpus::go_on() {
  for (std::uint64_t works = random_() % 4; works > 1; --works) step();
}

void EmulatedGpus::run_graph(const Graph& graph) {
  std::vector<int> waits, ready;
  std::vector<std::vector<int>> next(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& after = graph.nodes[n].after;
    waits.push_back(static_cast<int>(after.size()));
    for (const int before : after)
      next[static_cast<std::size_t>(before)].push_back(static_cast<int>(n));
    if (after.empty()) ready.push_back(static_cast<int>(n));
  }
  while (!ready.empty()) {
    std::swap(ready[random_() % ready.size()], ready.back());
    const auto node = static_cast<std::size_t>(ready.back());
    ready.pop_back();
    graph.nodes[node].work();
    for (const int one : next[node]) {
      if (--waits[static_cast<std::size_t>(one)] == 0) ready.push_back(one);
    }
  }
}

void* EmulatedGpus::allocate(std::size_t bytes) {
  if (bytes > free_bytes() || refuses(Refusal::Allocation)) return nullptr;
  // Apart, and of any size, so that an address checker sees every end.
  void* begin = nullptr;
  if (posix_memalign(&begin, 256, bytes) != 0) return nullptr;
  auto* block = static_cast<char*>(begin);
  std::memset(block, kGarbage, bytes);
  device_blocks_[block] = {bytes, current};
  taken_[static_cast<std::size_t>(current)] += bytes;
  return block;
}

bool EmulatedGpus::release(void* block) {
  const auto found = device_blocks_.find(static_cast<char*>(block));
  if (found == device_blocks_.end()) return false;
  taken_[static_cast<std::size_t>(found->second.device)] -= found->second.bytes;
  device_blocks_.erase(found);
  std::free(block);
  return true;
}

void* EmulatedGpus::allocate_host(std::size_t bytes) {
  auto* block = static_cast<char*>(std::malloc(bytes));
  host_blocks_[block] = {bytes, 0};
  return block;
}

void EmulatedGpus::release_host(void* block) {
  host_blocks_.erase(static_cast<char*>(block));
  std::free(block);
}

bool EmulatedGpus::block_of(const Blocks& blocks, const void* address) {
  const auto* at = static_cast<const char*>(address);
  const auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return false;
  const auto& [begin, block] = *std::prev(next);
  return at < begin + block.bytes;
}

std::size_t EmulatedGpus::free_bytes() const {
  return memory_ - taken_[static_cast<std::size_t>(current)];
}

}  // namespace emulated
