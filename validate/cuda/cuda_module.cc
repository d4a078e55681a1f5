// The module's entry points, which validate/executors/cuda_executor.cc looks up by name.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/look.h"

extern "C" void interlock_look_at_cuda(interlock::CudaReport& report) {
  interlock::cuda::look(report);
}
