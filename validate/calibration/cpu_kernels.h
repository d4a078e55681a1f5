// CPU kernels: what a probe runs on one thread, on Eigen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "validate/calibration/bench.h"

namespace interlock {

/// A kernel and its data, of random normal numbers, ready to run again and again.
struct CpuKernel {
  std::string name;
  std::function<void()> run;
};

/// REQUIRES: probe.precision is Fp32.
CpuKernel cpu_kernel(const Probe& probe);

}  // namespace interlock
