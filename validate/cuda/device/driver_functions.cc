// Functions of the driver, each asked for by the version that its type is of.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/driver_functions.h"

#include <cuda_runtime.h>

namespace interlock::cuda {

namespace {

template <class Function>
void find(const char* name, unsigned version, Function& function, std::string& missing) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found);
  if (status == cudaSuccess && found == cudaDriverEntryPointSuccess && address != nullptr) {
    function = reinterpret_cast<Function>(address);
  } else if (missing.empty()) {
    missing = name;
  }
  cudaGetLastError();
}

}  // namespace

DriverFunctions find_driver_functions() {
  DriverFunctions f;
  find("cuGetErrorString", 6000, f.get_error_string, f.missing);
  find("cuDeviceGet", 2000, f.device_get, f.missing);
  find("cuDeviceGetDevResource", 12040, f.device_get_resource, f.missing);
  find("cuDevSmResourceSplitByCount", 12040, f.split_by_count, f.missing);
  find("cuDevResourceGenerateDesc", 12040, f.generate_descriptor, f.missing);
  find("cuGreenCtxCreate", 12040, f.green_create, f.missing);
  find("cuGreenCtxDestroy", 12040, f.green_destroy, f.missing);
  find("cuGreenCtxGetDevResource", 12040, f.green_get_resource, f.missing);
  find("cuGreenCtxStreamCreate", 12050, f.green_stream_create, f.missing);
  return f;
}

}  // namespace interlock::cuda
