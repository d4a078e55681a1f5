// Probes: kernels that say where they ran, and kernels that take a given time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <set>

namespace interlock::cuda {

/// The multiprocessors that blocks of `stream` run on.
std::set<int> multiprocessors_of(cudaStream_t stream, int blocks);

/// Occupies every multiprocessor behind `stream` for `nanoseconds` each, with `blocks` blocks.
void spin(cudaStream_t stream, int blocks, long long nanoseconds);

}  // namespace interlock::cuda
