// Links: how bytes get from one member of a device group to another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "validate/executors/cuda_options.h"

namespace interlock::cuda {

/// One message on its way, in the order of `stream`.
struct Shipment {
  void* to = nullptr;
  const void* from = nullptr;
  std::int64_t bytes = 0;  // addresses are multiples of 16
  int to_gpu = 0, from_gpu = 0;
  double latency = 0, occupancy = 0;  // s; of paced links
  bool capturing = false;             // a graph is being captured
};

/// Ships by a peer copy between GPUs; on one GPU, by what `link` says. Zero copies nothing.
void ship(const Shipment& shipment, CudaLink link, cudaStream_t stream);

/// Takes `seconds` on `stream`: what stands for the time of a paced link beside other work.
void pace(double seconds, cudaStream_t stream);

/// Returns what ship() does here, for the record: "copy engine, ...".
const char* name_of_link(CudaLink link, bool capturing);

/// Returns true if this module has code for the current GPU.
bool has_kernels_here();
/// Returns the compute capabilities that this module has code for: "8.0, 9.0".
std::string kernel_architectures();

}  // namespace interlock::cuda
