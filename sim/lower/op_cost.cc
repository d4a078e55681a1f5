// Costs of single ops.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/op_cost.h"

#include "base/error.h"

namespace interlock {

namespace {

/// Returns the cost of the update of a stage and its head. Flops of optimisers count nowhere.
OpCost update(const StageCost& stage) {
  OpCost cost = stage.update;
  cost += stage.head_update;
  cost += {.time = stage.sweeps};
  cost.flops = cost.counted = Flops(0);
  return cost;
}

}  // namespace

int OpCosts::before(int stage) const {
  const int own = stage % stages_of_copy_, before = stage_before(inputs_.strategy, own);
  return before < 0 ? -1 : stage - own + before;
}

std::vector<int> OpCosts::after(int stage) const {
  const int own = stage % stages_of_copy_;
  std::vector<int> stages = stages_after(inputs_.strategy, own, stages_of_copy_);
  for (int& next : stages) next += stage - own;
  return stages;
}

Bytes OpCosts::input(const Op& op) const {
  const int from = before(op.stage);
  if (!inputs_.layouts.empty()) return inputs_.layouts.inputs[op.stage];
  return from < 0 ? Bytes(0) : of_stage(from, op.micro_batch).output;
}

Bytes OpCosts::input_gradient(const Op& op) const {
  const int to = before(op.stage);
  if (!inputs_.layouts.empty()) return inputs_.layouts.inputs[op.stage];
  return to < 0 ? Bytes(0) : of_stage(to, op.micro_batch).output_gradient();
}

const Traversal& OpCosts::traversal(const Op& op) const {
  for (const Traversal& traversal : inputs_.roles[op.stage].traversals) {
    if (traversal.loss == op.loss) return traversal;
  }
  CHECK(false, "an op for a loss that does not reach its stage");
}

OpCost OpCosts::weight_gradients(const Op& op) const {
  const StageCost& stage = of_stage(op);
  OpCost cost = traversal(op).partial ? stage.link.backward_weight : stage.backward_weight;
  if (op.defers) cost -= stage.deferrable;
  return cost;
}

OpCost OpCosts::turn(int stage, int micro_batch) const {
  const StageCost& cost = of_stage(stage, micro_batch);
  OpCost turn = cost.forward;
  if (inputs_.roles[stage].head) turn += cost.head;
  for (const Traversal& traversal : inputs_.roles[stage].traversals) {
    turn += traversal_cost(cost, inputs_.strategy, traversal);
  }
  turn += cost.recompute;
  turn += update(cost);
  return turn;
}

OpCost OpCosts::of(const Op& op) const {
  const StageCost& stage = of_stage(op);
  OpCost additions{.time = inputs_.roles[op.stage].summed_gradients * stage.gradient_addition,
                   .memory_bound = 1};
  switch (op.kind) {
    case OpKind::F:
      return stage.forward;
    case OpKind::H:
      return stage.head;
    case OpKind::R:
      return stage.next_forward;
    case OpKind::I: {
      Traversal input_only = traversal(op);
      input_only.weights = false;
      return traversal_cost(stage, inputs_.strategy, input_only);
    }
    case OpKind::B:
      additions += traversal_cost(stage, inputs_.strategy, traversal(op));
      return op.defers ? additions -= stage.deferrable : additions;
    case OpKind::W:
      return op.defers ? stage.deferrable : additions += stage.backward_weight;
    case OpKind::U:
      return update(stage);
    case OpKind::S:
      return stage.vocabulary.s;
    case OpKind::T:
      return stage.vocabulary.t;
    case OpKind::E:
      return stage.vocabulary.e;
    case OpKind::G:
      return stage.vocabulary.g;
  }
  return {};
}

}  // namespace interlock
