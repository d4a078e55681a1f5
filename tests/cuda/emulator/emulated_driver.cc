// Green contexts: consecutive multiprocessors, in groups of eight, or of two if asked for.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/emulator/emulated_driver.h"

#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/cuda/emulator/emulated_gpu.h"
#include "tests/cuda/emulator/refusals.h"

namespace emulated {

namespace {

/// Returns the start of a resource, which is kept in its opaque bytes.
int& first_of(CUdevResource& resource) {
  return *reinterpret_cast<int*>(resource._internal_padding);
}

struct Green {
  int device = 0;
  CUdevResource sms{};
};

CUdevResource resource_of(int first, int count) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = static_cast<unsigned>(count);
#if CUDA_VERSION >= 13000
  resource.sm.minSmPartitionSize = resource.sm.smCoscheduledAlignment = 8;
#endif
  first_of(resource) = first;
  return resource;
}

CUresult get_error_string(CUresult, const char** words) {
  *words = "the emulated driver refuses";
  return CUDA_SUCCESS;
}
CUresult device_get(CUdevice* device, int number) {
  *device = number;
  return CUDA_SUCCESS;
}
CUresult device_get_resource(CUdevice, CUdevResource* resource, CUdevResourceType) {
  *resource = resource_of(0, EmulatedGpus::kSms);
  return CUDA_SUCCESS;
}
CUresult split(CUdevResource* groups, unsigned* count, const CUdevResource* whole,
               CUdevResource* rest, unsigned flags, unsigned least) {
  const bool refused = refuses(Refusal::Split);
  if (refused && groups != nullptr) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned step = flags == 0 ? 8 : 2;
  const unsigned size = (least + step - 1) / step * step, most = whole->sm.smCount / size;
  if (groups == nullptr) {
    *count = refused && most > 0 ? most - 1 : most;  // clusters of unequal size
    return CUDA_SUCCESS;
  }
  *count = std::min(*count, most);
  CUdevResource from = *whole;
  const int first = first_of(from), each = static_cast<int>(size);
  for (unsigned i = 0; i < *count; ++i) {
    groups[i] = resource_of(first + static_cast<int>(i) * each, each);
  }
  const int taken = static_cast<int>(*count) * each;
  if (rest != nullptr)
    *rest = resource_of(first + taken, static_cast<int>(whole->sm.smCount) - taken);
  return CUDA_SUCCESS;
}
CUresult generate(CUdevResourceDesc* descriptor, CUdevResource* resources, unsigned) {
  *descriptor = reinterpret_cast<CUdevResourceDesc>(new CUdevResource(*resources));
  return CUDA_SUCCESS;
}
CUresult green_create(CUgreenCtx* green, CUdevResourceDesc descriptor, CUdevice device, unsigned) {
  auto* resource = reinterpret_cast<CUdevResource*>(descriptor);
  *green = reinterpret_cast<CUgreenCtx>(new Green{device, *resource});
  delete resource;
  return CUDA_SUCCESS;
}
CUresult green_destroy(CUgreenCtx green) {
  delete reinterpret_cast<Green*>(green);
  return CUDA_SUCCESS;
}
CUresult green_resource(CUgreenCtx green, CUdevResource* resource, CUdevResourceType) {
  *resource = reinterpret_cast<Green*>(green)->sms;
  return CUDA_SUCCESS;
}
CUresult green_stream(CUstream* stream, CUgreenCtx green, unsigned, int) {
  auto* own = reinterpret_cast<Green*>(green);
  *stream = EmulatedGpus::instance().make_stream(own->device, first_of(own->sms),
                                                 static_cast<int>(own->sms.sm.smCount));
  return CUDA_SUCCESS;
}

}  // namespace

void* driver_function(const char* name) {
  const std::string wanted = name;
  const bool old = std::getenv("EMULATED_OLD_DRIVER") != nullptr;
  if (old && wanted.find("Green") != std::string::npos) return nullptr;
  if (wanted == "cuGetErrorString") return reinterpret_cast<void*>(get_error_string);
  if (wanted == "cuDeviceGet") return reinterpret_cast<void*>(device_get);
  if (wanted == "cuDeviceGetDevResource") return reinterpret_cast<void*>(device_get_resource);
  if (wanted == "cuDevSmResourceSplitByCount") return reinterpret_cast<void*>(split);
  if (wanted == "cuDevResourceGenerateDesc") return reinterpret_cast<void*>(generate);
  if (wanted == "cuGreenCtxCreate") return reinterpret_cast<void*>(green_create);
  if (wanted == "cuGreenCtxDestroy") return reinterpret_cast<void*>(green_destroy);
  if (wanted == "cuGreenCtxGetDevResource") return reinterpret_cast<void*>(green_resource);
  if (wanted == "cuGreenCtxStreamCreate") return reinterpret_cast<void*>(green_stream);
  return nullptr;
}

}  // namespace emulated
