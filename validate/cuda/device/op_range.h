// OpRange: names what the host issues, so that Nsight shows ops instead of kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

#include "sim/program/program.h"

namespace interlock::cuda {

/// Names kernels that are issued while it lives: "F stage 2, micro-batch 5". Costs next
/// to nothing where no tool is attached.
class OpRange {
 public:
  OpRange(const OpInfo& op, int micro_batch) {
    const std::string name = std::string(1, letter(op.kind)) + " stage " +
                             std::to_string(op.stage) + ", micro-batch " +
                             std::to_string(micro_batch);
    nvtxRangePushA(name.c_str());
  }
  ~OpRange() { nvtxRangePop(); }
  OpRange(const OpRange&) = delete;
  OpRange& operator=(const OpRange&) = delete;
};

}  // namespace interlock::cuda
