// States and stash in the memory of hosts.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/offload.h"

namespace interlock {

void apply_offload(const Offload& offload, const DataParallel& policy, const Mesh& mesh,
                   StageCost& stage) {
  stage.host_stash = stage.stash * offload.activations;
  if (stage.state.optimizer <= Bytes(0)) return;
  // Under ZeRO each device updates its own part, whether it holds the rest or not.
  const auto own = [&](Bytes whole, Bytes of_experts) {
    return policy.zero_stage > 0 ? own_part(mesh, whole, of_experts) : whole;
  };
  stage.host_gradients =
      own(stage.whole_gradients, stage.expert_state.gradients) * offload.optimizer;
  stage.host_weights =
      own(stage.whole_weights - stage.frozen, stage.expert_state.weights - stage.frozen_experts) *
      offload.optimizer;
  stage.host_optimizer = stage.state.optimizer * offload.optimizer;
  const double here = 1 - offload.optimizer;
  stage.state.optimizer = stage.state.optimizer * here;
  stage.state.update_buffers = stage.state.update_buffers * here;
  stage.state.update_copies = stage.state.update_copies * here;
  stage.update.time = stage.update.time * here;
  stage.head_update.time = stage.head_update.time * here;
}

}  // namespace interlock
