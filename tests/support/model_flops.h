// Flops of a whole model, beside which tests set what they count by hand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/layers/model_graph.h"

namespace interlock {

/// Returns the flops of forward, backward_input and backward_weight of all modules, without heads
/// or recompute, as MFU counts them. Units: flops per micro-batch.
inline Flops model_flops(const ModelGraph& graph) {
  Flops total;
  for (const Module& module : graph.modules) {
    for (const auto* part : {&module.forward, &module.backward_input, &module.backward_weight}) {
      for (const Work& work : *part) total += counted_flops(work);
    }
  }
  return total;
}

}  // namespace interlock
