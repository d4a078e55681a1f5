// ModelGraph: sums over its modules.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/model_graph.h"

namespace interlock {

Flops model_flops(const ModelGraph& graph) {
  Flops total;
  for (const Module& module : graph.modules) {
    for (const auto* part : {&module.forward, &module.backward_input, &module.backward_weight}) {
      for (const Work& work : *part) total += counted_flops(work);
    }
  }
  return total;
}

}  // namespace interlock
