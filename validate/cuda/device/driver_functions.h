// Functions of the driver, found through the runtime, so that nothing links libcuda.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <string>

namespace interlock::cuda {

/// Driver functions that partitions of a GPU need (green contexts: since CUDA 12.4, their streams
/// since 12.5).
struct DriverFunctions {
  PFN_cuGetErrorString_v6000 get_error_string = nullptr;
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDeviceGetDevResource_v12040 device_get_resource = nullptr;
  PFN_cuDevSmResourceSplitByCount_v12040 split_by_count = nullptr;
  PFN_cuDevResourceGenerateDesc_v12040 generate_descriptor = nullptr;
  PFN_cuGreenCtxCreate_v12040 green_create = nullptr;
  PFN_cuGreenCtxDestroy_v12040 green_destroy = nullptr;
  PFN_cuGreenCtxGetDevResource_v12040 green_get_resource = nullptr;
  PFN_cuGreenCtxStreamCreate_v12050 green_stream_create = nullptr;
  std::string missing;  // the first that the driver does not have; empty: all are there
};

DriverFunctions find_driver_functions();

}  // namespace interlock::cuda
