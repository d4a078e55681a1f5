// StageCost: seconds and bytes of one stage for one micro-batch; where models meet hardware.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "hardware/device.h"
#include "models/model_graph.h"
#include "sim/plan/strategy.h"

namespace interlock {

/// Durations, flops and bytes of one stage, one micro-batch.
struct StageCost {
  Seconds forward, backward_input, backward_weight, recompute, head, update;
  Seconds first_input_gradient;  // the part of backward_input that only the stage's input needs
  Seconds gradient_addition;     // one addition of two output gradients (sum and mean modes)
  Flops forward_flops, backward_input_flops, backward_weight_flops, recompute_flops, head_flops;
  Flops first_input_gradient_flops;
  Bytes output, stash, head_memory, workspace;
  Footprint state;  // weights, gradients and optimiser states, the head's included if it runs one
  Bytes readout;    // weights of the head, sent when heads are stale copies
};

/// What prices a stage.
struct CostInputs {
  const ModelGraph* graph = nullptr;
  const Device* device = nullptr;
  Precision precision = Precision::Bf16;
  Optimizer optimizer = Optimizer::SgdMomentum;
};

/// The cost of modules [first, last) as one stage. `heads`: whether the stage runs its auxiliary
/// head (its last module's). REQUIRES: first < last <= modules.
StageCost stage_cost(const CostInputs& inputs, int first, int last, bool head);

}  // namespace interlock
