// States and exchanges under ZeRO.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/data_parallel.h"

namespace interlock {

namespace {

void add(std::vector<Exchange>& exchanges, const Mesh& mesh, const Exchange& exchange) {
  if (exchange.bytes > Bytes(0) && group_size(mesh, exchange.axis) > 1) {
    exchanges.push_back(exchange);
  }
}

/// Bytes that `all` are on one device, if those of experts have `expert` holders, others `shard`.
Bytes divided(Bytes all, Bytes of_experts, int shard, int expert) {
  return (all - of_experts) / shard + of_experts / expert;
}

}  // namespace

void apply_zero(const DataParallel& policy, const Mesh& mesh, StageCost& stage) {
  stage.whole_weights = stage.state.weights;
  stage.whole_gradients = stage.state.gradients;
  if (policy.zero_stage == 0) return;
  const int expert = group_size(mesh, MeshAxis::ExpertData);
  const Footprint& experts = stage.expert_state;
  Footprint& state = stage.state;
  state.optimizer = divided(state.optimizer, experts.optimizer, mesh.shard, expert);
  if (policy.zero_stage >= 2) {
    state.gradients = divided(state.gradients, experts.gradients, mesh.shard, expert);
  }
  if (policy.zero_stage >= 3) {
    state.weights = divided(state.weights, experts.weights, mesh.shard, expert);
  }
  // An update streams over states, so that it takes time by their bytes.
  const double by_experts =
      stage.whole_gradients > Bytes(0) ? experts.gradients / stage.whole_gradients : 0;
  const double share = (1 - by_experts) / mesh.shard + by_experts / expert;
  stage.update.time *= share;
  stage.head_update.time *= share;
}

std::vector<Exchange> gradient_exchanges(const DataParallel& policy, const Mesh& mesh,
                                         const StageCost& stage) {
  const Bytes experts = stage.expert_state.gradients;
  const Bytes dense = stage.whole_gradients - experts;
  std::vector<Exchange> exchanges;
  if (policy.zero_stage == 0) {
    add(exchanges, mesh, {CollectiveKind::AllReduce, MeshAxis::Data, dense});
    add(exchanges, mesh, {CollectiveKind::AllReduce, MeshAxis::ExpertData, experts});
    return exchanges;
  }
  add(exchanges, mesh, {CollectiveKind::ReduceScatter, MeshAxis::Shard, dense});
  add(exchanges, mesh, {CollectiveKind::AllReduce, MeshAxis::Replica, dense / mesh.shard});
  add(exchanges, mesh, {CollectiveKind::ReduceScatter, MeshAxis::ExpertData, experts});
  return exchanges;
}

std::vector<Exchange> weight_exchanges(const DataParallel& policy, const Mesh& mesh,
                                       const StageCost& stage) {
  std::vector<Exchange> exchanges;
  if (policy.zero_stage == 0) return exchanges;
  const Bytes experts = stage.expert_state.weights;
  add(exchanges, mesh, {CollectiveKind::AllGather, MeshAxis::Shard, stage.whole_weights - experts});
  add(exchanges, mesh, {CollectiveKind::AllGather, MeshAxis::ExpertData, experts});
  return exchanges;
}

}  // namespace interlock
