// CUDA's runtime on the emulated machine: the functions that the module calls.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "tests/cuda/emulator/emulated_driver.h"
#include "tests/cuda/emulator/emulated_gpu.h"

using emulated::EmulatedGpus;
using emulated::Graph;
using emulated::Stream;

namespace {

EmulatedGpus& gpus() { return EmulatedGpus::instance(); }

struct ReadyGraph {
  std::shared_ptr<Graph> graph;
};

/// A copy in the order of a stream. What the host may change behind the call's back is taken at
/// once, as CUDA does with memory that is not pinned.
cudaError_t copy(Stream* stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  const bool from_host = !gpus().on_device(from) && !gpus().pinned(from);
  const bool to_host = !gpus().on_device(to) && !gpus().pinned(to);
  if (from_host) {
    std::vector<char> staged(static_cast<const char*>(from),
                             static_cast<const char*>(from) + bytes);
    return gpus().enqueue(stream, [to, staged = std::move(staged)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  }
  const cudaError_t status =
      gpus().enqueue(stream, [to, from, bytes] { std::memcpy(to, from, bytes); });
  return to_host && status == cudaSuccess ? gpus().finish(stream) : status;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = gpus().devices();
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  const bool known = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize;
  return known && value <= 99 << 10 ? cudaSuccess : gpus().fail(cudaErrorInvalidValue);
}
cudaError_t cudaGetDevice(int* device) {
  *device = gpus().current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= gpus().devices()) return gpus().fail(cudaErrorInvalidDevice);
  gpus().current = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = EmulatedGpus::kSms;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = gpus().capability() / 10;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = gpus().capability() % 10;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = 1 << 20;
      return cudaSuccess;
    default:
      return gpus().fail(cudaErrorNotSupported);
  }
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated GPU");
  properties->major = gpus().capability() / 10;
  properties->minor = gpus().capability() % 10;
  properties->multiProcessorCount = EmulatedGpus::kSms;
  properties->totalGlobalMem = gpus().memory();
  return cudaSuccess;
}
/// There are kernels for 8.0 and later.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  return gpus().capability() >= 80 ? cudaSuccess : gpus().fail(cudaErrorNoKernelImageForDevice);
}
cudaError_t cudaDeviceGetPCIBusId(char* bus, int size, int device) {
  std::snprintf(bus, static_cast<std::size_t>(size), "0000:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* reaches, int, int) {
  *reaches = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = gpus().free_bytes();
  *all = gpus().memory();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(gpus().last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t) { return "the emulated GPU refuses"; }
const char* cudaGetErrorName(cudaError_t error) {
  static thread_local char name[32];
  std::snprintf(name, sizeof name, "error %d", static_cast<int>(error));
  return name;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** address, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  *address = emulated::driver_function(name);
  *found = *address == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** block, std::size_t bytes) {
  *block = bytes == 0 ? nullptr : gpus().allocate(bytes);
  return bytes > 0 && *block == nullptr ? gpus().fail(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* block) {
  if (block == nullptr) return cudaSuccess;
  cudaDeviceSynchronize();
  return gpus().release(block) ? cudaSuccess : gpus().fail(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** block, std::size_t bytes, unsigned) {
  *block = gpus().allocate_host(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) {
  gpus().release_host(block);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return copy(gpus().stream(stream), to, from, bytes);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return gpus().enqueue(gpus().stream(stream), [function, data] { function(data); });
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  Stream* const own = gpus().stream(nullptr);
  const cudaError_t status = copy(own, to, from, bytes);
  // From memory that is not pinned, it may return before all is there.
  if (gpus().on_device(to) && !gpus().on_device(from) && !gpus().pinned(from)) return status;
  return status == cudaSuccess ? gpus().finish(own) : status;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return copy(gpus().stream(stream), to, from, bytes);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind, cudaStream_t stream) {
  return gpus().enqueue(gpus().stream(stream), [=] {
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<char*>(to) + row * to_pitch,
                  static_cast<const char*>(from) + row * from_pitch, width);
    }
  });
}
cudaError_t cudaMemsetAsync(void* block, int value, std::size_t bytes, cudaStream_t stream) {
  return gpus().enqueue(gpus().stream(stream), [=] { std::memset(block, value, bytes); });
}
/// Returns before it is done, like the real one.
cudaError_t cudaMemset(void* block, int value, std::size_t bytes) {
  return cudaMemsetAsync(block, value, bytes, nullptr);
}
#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* sizes,
                                 std::size_t count, cudaMemcpyAttributes*, std::size_t*,
                                 std::size_t, cudaStream_t stream) {
#elif CUDART_VERSION >= 12080
cudaError_t cudaMemcpyBatchAsync(void** to, void** from, std::size_t* sizes, std::size_t count,
                                 cudaMemcpyAttributes*, std::size_t*, std::size_t, std::size_t*,
                                 cudaStream_t stream) {
#endif
#if CUDART_VERSION >= 12080
  if (stream == nullptr || gpus().stream(stream)->graph != nullptr) {
    return gpus().fail(cudaErrorStreamCaptureUnsupported);
  }
  for (std::size_t i = 0; i < count; ++i) copy(gpus().stream(stream), to[i], from[i], sizes[i]);
  return cudaSuccess;
}
#endif

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = gpus().make_stream(gpus().current, 0, EmulatedGpus::kSms);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  gpus().destroy(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return gpus().finish(gpus().stream(stream));
}
cudaError_t cudaDeviceSynchronize() { return gpus().finish_device(gpus().current); }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = gpus().make_event(true);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = gpus().make_event((flags & cudaEventDisableTiming) == 0);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  gpus().destroy(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return gpus().record(gpus().stream(stream), gpus().event(event), false);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return gpus().record(gpus().stream(stream), gpus().event(event),
                       (flags & cudaEventRecordExternal) != 0);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return gpus().wait(gpus().stream(stream), gpus().event(event));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const emulated::EventRef one = gpus().event(event);
  if (one == nullptr) return gpus().fail(cudaErrorInvalidResourceHandle);
  if (one->graph != nullptr) return gpus().fail(cudaErrorCapturedEvent);
  return gpus().run_until([&] { return one->done >= one->recorded; });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const emulated::EventRef one = gpus().event(event);
  if (one->graph != nullptr) return gpus().fail(cudaErrorCapturedEvent);
  return one->done >= one->recorded ? cudaSuccess : gpus().fail(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const emulated::EventRef from = gpus().event(begin), to = gpus().event(end);
  for (const emulated::EventRef& one : {from, to}) {
    if (one == nullptr || !one->tells_time || one->recorded == 0) {
      return gpus().fail(cudaErrorInvalidResourceHandle);
    }
    if (one->done < one->recorded) return gpus().fail(cudaErrorNotReady);
  }
  if (from->device != to->device) return gpus().fail(cudaErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>((to->time - from->time) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  Stream* const origin = gpus().stream(stream);
  if (stream == nullptr || origin->graph != nullptr) {
    return gpus().fail(cudaErrorStreamCaptureUnsupported);
  }
  gpus().finish(origin);
  origin->graph = new Graph;
  origin->graph->streams.insert(origin);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Stream* const origin = gpus().stream(stream);
  Graph* const made = origin->graph;
  if (made == nullptr) return gpus().fail(cudaErrorIllegalState);
  const cudaError_t status = gpus().end_capture(origin, made);
  if (status != cudaSuccess) {
    delete made;
    *graph = nullptr;
    return status;
  }
  *graph = reinterpret_cast<cudaGraph_t>(made);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* run, cudaGraph_t graph, unsigned long long) {
  auto copied = std::make_shared<Graph>(*reinterpret_cast<Graph*>(graph));
  *run = reinterpret_cast<cudaGraphExec_t>(new ReadyGraph{copied});
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t stream) {
  const auto graph = reinterpret_cast<ReadyGraph*>(run)->graph;
  for (const emulated::EventRef& mark : graph->marks) ++mark->recorded;
  return gpus().enqueue(gpus().stream(stream), [graph] { gpus().run_graph(*graph); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t run) {
  delete reinterpret_cast<ReadyGraph*>(run);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
}
