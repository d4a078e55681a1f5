// States and stash in the memory of hosts.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/offload.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace interlock {
namespace {

constexpr std::size_t kMostOpsTimed = 20'000;  // of a rank: more say the same

Seconds time_of(const Op& op, const StageCost& stage) {
  switch (op.kind) {
    case OpKind::F:
      return stage.forward.time;
    case OpKind::H:
      return stage.head.time;
    case OpKind::R:
      return stage.recompute.time;
    case OpKind::I:
      return stage.backward_input.time;
    case OpKind::W:
      return stage.backward_weight.time;
    case OpKind::B:
      return stage.backward_input.time + stage.backward_weight.time;
    case OpKind::S:
      return stage.vocabulary.s.time;
    case OpKind::T:
      return stage.vocabulary.t.time;
    case OpKind::E:
      return stage.vocabulary.e.time;
    case OpKind::G:
      return stage.vocabulary.g.time;
    case OpKind::U:
      break;
  }
  return Seconds(0);
}

/// Returns the ops of one turn of `sequence`, the first kMostOpsTimed of them.
std::vector<Op> first_ops(const Sequence& sequence) {
  std::vector<Op> ops;
  for (const Run& run : sequence.runs) {
    for (int turn = 0; turn < run.repeats; ++turn) {
      if (ops.size() >= kMostOpsTimed) return ops;
      for (Op op : run.ops) {
        op.micro_batch += turn * run.stride;
        ops.push_back(op);
      }
    }
  }
  return ops;
}

/// Returns how long the stash of each stage of a rank lives on average, by stage.
std::map<int, double> lifetimes_of(const Sequence& sequence, const StageCost* stages) {
  struct Sum {
    double time = 0;
    int count = 0;
  };
  std::map<int, Sum> sums;
  std::map<std::pair<int, int>, Seconds> kept_from;  // by stage and micro-batch
  Seconds now(0);
  for (const Op& op : first_ops(sequence)) {
    const std::pair key{op.stage, op.micro_batch};
    const auto kept = kept_from.find(key);
    const bool goes_back = op.kind == OpKind::I || op.kind == OpKind::B;
    if (goes_back && kept != kept_from.end()) {
      Sum& sum = sums[op.stage];
      sum.time += (now - kept->second).value();
      ++sum.count;
      kept_from.erase(kept);
    }
    now += time_of(op, stages[op.stage]);
    if (op.kind == OpKind::F) kept_from[key] = now;
  }
  std::map<int, double> lifetimes;
  for (const auto& [stage, sum] : sums) lifetimes[stage] = sum.time / sum.count;
  return lifetimes;
}

}  // namespace

namespace {

/// Leaves on the device what it updates itself, and notes what its host has. `mesh`: of its layers.
void offload_states(double share, const DataParallel& policy, const Mesh& mesh, StageCost& stage) {
  // Under ZeRO each device updates its own part, whether it holds the rest or not.
  const auto own = [&](Bytes whole, Bytes of_experts) {
    return policy.zero_stage > 0 ? own_part(mesh, whole, of_experts) : whole;
  };
  stage.host_gradients = own(stage.whole_gradients, stage.expert_state.gradients) * share;
  stage.host_weights =
      own(stage.whole_weights - stage.frozen, stage.expert_state.weights - stage.frozen_experts) *
      share;
  stage.host_optimizer = stage.state.optimizer * share;
  const double here = 1 - share;
  stage.state.optimizer = stage.state.optimizer * here;
  stage.state.update_buffers = stage.state.update_buffers * here;
  stage.state.update_copies = stage.state.update_copies * here;
  stage.update.time = stage.update.time * here;
  stage.head_update.time = stage.head_update.time * here;
}

}  // namespace

void apply_offload(const Offload& offload, const DataParallel& policy,
                   const std::vector<Mesh>& layers, StageCost& stage) {
  stage.host_stash = stage.stash * offload.activations;
  if (stage.state.optimizer <= Bytes(0)) return;
  offload_states(offload.optimizer, policy, layers.at(stage.layout), stage);
  if (stage.parts.empty()) return;
  stage.host_gradients = stage.host_weights = Bytes(0);
  for (StageCost& part : stage.parts) {
    offload_states(offload.optimizer, policy, layers.at(part.layout), part);
    stage.host_gradients += part.host_gradients;
    stage.host_weights += part.host_weights;
  }
}

void offload_by_lifetime(double share, const Schedule& schedule, std::vector<StageCost>& stages) {
  const std::size_t count = schedule.rank_of_stage.size();
  CHECK(stages.size() % count == 0, "stages of each kind of machine");
  for (std::size_t first = 0; first < stages.size(); first += count) {
    StageCost* const own = &stages[first];
    for (const std::vector<Sequence>& sequences : schedule.ranks) {
      if (sequences.size() != 1) continue;
      std::vector<std::pair<double, int>> longest;  // negative lifetimes, and stages
      Bytes left(0);
      for (const auto& [stage, lifetime] : lifetimes_of(sequences.front(), own)) {
        longest.emplace_back(-lifetime, stage);
        left += own[stage].stash * share;
      }
      std::sort(longest.begin(), longest.end());
      for (const auto& [lifetime, stage] : longest) {
        own[stage].host_stash = std::min(own[stage].stash, left);
        left -= own[stage].host_stash;
      }
    }
  }
}

}  // namespace interlock
