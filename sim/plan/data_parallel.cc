// States and exchanges under ZeRO.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/data_parallel.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace interlock {

namespace {

void add(std::vector<Exchange>& exchanges, const Mesh& mesh, const Exchange& exchange) {
  if (exchange.bytes > Bytes(0) && group_size(mesh, exchange.axis) > 1) {
    exchanges.push_back(exchange);
  }
}

std::vector<Exchange> of_layout(std::vector<Exchange> exchanges, int layout) {
  for (Exchange& exchange : exchanges) exchange.layout = layout;
  return exchanges;
}

}  // namespace

int OuterSteps::on_the_way(int exchanges) const {
  const std::int64_t begun = (std::int64_t{overlap} * exchanges + every - 1) / every;
  return static_cast<int>(std::min<std::int64_t>(begun, fragments));
}

Bytes own_part(const Mesh& mesh, Bytes whole, Bytes of_experts) {
  return (whole - of_experts) / mesh.shard + of_experts / group_size(mesh, MeshAxis::ExpertData);
}

double outer_parameters(const DataParallel& policy, const Mesh& mesh, const StageCost& stage) {
  return stage.whole_gradients / Bytes(policy.outer.gradient_element) / mesh.shard;
}

namespace {

/// Divides the states of `stage` and its update among the devices of a shard.
void divide_states(const DataParallel& policy, const Mesh& mesh, int backwards, StageCost& stage) {
  stage.whole_weights = stage.state.weights;
  stage.whole_gradients = stage.state.gradients;
  if (policy.outer.any()) {  // a worker holds experts as it holds all other weights
    stage.expert_state = {};
    stage.frozen_experts = stage.more_sent_experts = Bytes(0);
  }
  const bool once = policy.gradient_reduction == GradientReduction::Step;
  stage.reduces_each_backward = !once && backwards > 1;
  if (policy.zero_stage == 0) return;
  const int expert = group_size(mesh, MeshAxis::ExpertData);
  const Footprint& experts = stage.expert_state;
  Footprint& state = stage.state;
  state.optimizer = own_part(mesh, state.optimizer, experts.optimizer);
  state.update_buffers = own_part(mesh, state.update_buffers, experts.update_buffers);
  state.update_copies = own_part(mesh, state.update_copies, experts.update_copies);
  stage.adds_up_whole_gradients = policy.zero_stage < 2 || (once && backwards > 1);
  if (!stage.adds_up_whole_gradients) {
    state.gradients = own_part(mesh, state.gradients, experts.gradients);
    state.made_gradients = own_part(mesh, state.made_gradients, experts.made_gradients);
    if (stage.whole_gradients > Bytes(0)) {
      stage.sweeps *= state.gradients / stage.whole_gradients;
    }
  }
  if (policy.zero_stage >= 3) {
    state.weights = own_part(mesh, state.weights, experts.weights);
  }
  // An update streams over states, so that it takes time by their bytes.
  const double by_experts =
      stage.whole_gradients > Bytes(0) ? experts.gradients / stage.whole_gradients : 0;
  const double share = (1 - by_experts) / mesh.shard + by_experts / expert;
  stage.update.time *= share;
  stage.update.flops *= share;
  stage.head_update.time *= share;
}

/// Gives a stage the states and updates of all its parts.
void add_up_parts(StageCost& stage) {
  stage.state = stage.expert_state = {};
  stage.whole_weights = stage.whole_gradients = Bytes(0);
  stage.update = stage.head_update = {};
  stage.sweeps = Seconds(0);
  for (const StageCost& part : stage.parts) {
    stage.state += part.state;
    stage.expert_state += part.expert_state;
    stage.whole_weights += part.whole_weights;
    stage.whole_gradients += part.whole_gradients;
    stage.update += part.update;
    stage.head_update += part.head_update;
    stage.sweeps += part.sweeps;
  }
  stage.adds_up_whole_gradients = stage.parts.front().adds_up_whole_gradients;
  stage.reduces_each_backward = stage.parts.front().reduces_each_backward;
}

/// Bytes of outer states: the weights after the last exchange, and the momentum, both in fp32; and
/// those of a fragment as it was when its exchange began.
constexpr double kSynchronised = 4, kOuterMomentum = 4, kWhenSent = 4;

/// Adds what outer steps keep on a device. While exchanges go on beside training, the outer
/// gradients of each have room of their own; else they take that of gradients, which is free then.
/// How many more `network_share` has on their way follows from the time of a step, see
/// scenarios/plan/outer_steps.cc.
void add_outer_states(const DataParallel& policy, const Mesh& mesh, StageCost& stage) {
  const OuterSteps& outer = policy.outer;
  const double parameters = outer_parameters(policy, mesh, stage);
  stage.state.optimizer += Bytes(parameters * (kSynchronised + kOuterMomentum));
  if (outer.overlap == 0) return;
  const double held = outer.element + (outer.compensates ? kWhenSent : 0);
  const int buffers = outer.on_the_way(outer.fragments);
  stage.outer_buffer = Bytes(parameters * held / outer.fragments * buffers);
}

}  // namespace

void apply_zero(const DataParallel& policy, const std::vector<Mesh>& layers, int backwards,
                StageCost& stage) {
  if (!stage.parts.empty()) {
    for (StageCost& part : stage.parts) {
      divide_states(policy, layers.at(part.layout), backwards, part);
    }
    return add_up_parts(stage);
  }
  const Mesh& mesh = layers.at(stage.layout);
  divide_states(policy, mesh, backwards, stage);
  if (policy.outer.any()) add_outer_states(policy, mesh, stage);
}

std::vector<Exchange> gradient_exchanges(const DataParallel& policy, const Mesh& mesh,
                                         const StageCost& stage) {
  const Bytes experts = stage.expert_state.gradients * policy.gradient_density;
  const Bytes dense = stage.whole_gradients * policy.gradient_density - experts;
  std::vector<Exchange> exchanges;
  if (policy.outer.now) {
    add(exchanges, mesh, {CollectiveKind::AllReduce, MeshAxis::Replica, dense});
    return of_layout(std::move(exchanges), stage.layout);
  }
  if (policy.outer.any()) {
    const auto kind =
        policy.zero_stage == 0 ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
    add(exchanges, mesh, {kind, MeshAxis::Shard, dense});
    return of_layout(std::move(exchanges), stage.layout);
  }
  if (policy.zero_stage == 0) {
    add(exchanges, mesh, {CollectiveKind::AllReduce, MeshAxis::Data, dense});
    add(exchanges, mesh, {CollectiveKind::AllReduce, MeshAxis::ExpertData, experts});
    return of_layout(std::move(exchanges), stage.layout);
  }
  add(exchanges, mesh, {CollectiveKind::ReduceScatter, MeshAxis::Shard, dense});
  add(exchanges, mesh, {CollectiveKind::AllReduce, MeshAxis::Replica, dense / mesh.shard});
  add(exchanges, mesh, {CollectiveKind::ReduceScatter, MeshAxis::ExpertData, experts});
  return of_layout(std::move(exchanges), stage.layout);
}

std::vector<Exchange> weight_exchanges(const DataParallel& policy, const Mesh& mesh,
                                       const StageCost& stage) {
  std::vector<Exchange> exchanges;
  if (policy.zero_stage == 0) return exchanges;
  Bytes experts = stage.expert_state.weights + stage.more_sent_experts;
  Bytes all = stage.whole_weights + stage.more_sent;
  if (policy.zero_stage < 3) {  // the others are whole everywhere, and do not change
    experts -= stage.frozen_experts;
    all -= stage.frozen;
  }
  add(exchanges, mesh, {CollectiveKind::AllGather, MeshAxis::Shard, all - experts});
  add(exchanges, mesh, {CollectiveKind::AllGather, MeshAxis::ExpertData, experts});
  return of_layout(std::move(exchanges), stage.layout);
}

}  // namespace interlock
