// Costs of single ops.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/op_cost.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "sim/plan/schedules/stage_ops.h"

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

/// Returns `share` of a cost that exchanges nothing.
OpCost scaled(OpCost cost, double share) {
  cost.time = cost.time * share;
  cost.flops = cost.flops * share;
  cost.counted = cost.counted * share;
  cost.waiting = cost.waiting * share;
  for (Seconds& time : cost.at) time *= share;
  return cost;
}

}  // namespace

bool is_ring(const LowerInputs& inputs) { return inputs.policy.kind->layout == StageLayout::Ring; }

bool updates_one_copy(const LowerInputs& inputs) {
  return updates_one_copy(inputs.policy.kind->layout);
}

bool keeps_state(const LowerInputs& inputs, int stage) {
  if (!updates_one_copy(inputs)) return true;
  const Schedule& schedule = inputs.schedule;
  const int of_replica = schedule.stages / schedule.replicas;
  const int stages = of_replica / schedule.copies, copy = stage % of_replica / stages;
  return is_ring(inputs) ? stage % stages == chunk_of_rank(copy, stages) : copy == 0;
}

Bytes ring_buffers(const LowerInputs& inputs) {
  constexpr double kOfWeights = 2 * 2, kOfGradients = 2 + 1;
  const int ranks = inputs.schedule.copies;
  if (!is_ring(inputs) || ranks == 1) return Bytes(0);
  Bytes weights, gradients;
  for (int chunk = 0; chunk < ranks; ++chunk) {
    const Footprint& state = inputs.stages[chunk].state;
    weights = std::max(weights, state.weights);
    gradients = std::max(gradients, state.gradients);
  }
  return kOfWeights * weights + kOfGradients * gradients;
}

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

std::optional<Bytes> OpCosts::cast_output(int from, int to, int micro_batch) const {
  return apart(from, to) ? of_stage(from, micro_batch).sent_output : std::nullopt;
}

std::optional<Bytes> OpCosts::cast_gradient(int from, int to, int micro_batch) const {
  return apart(from, to) ? of_stage(to, micro_batch).sent_gradient : std::nullopt;
}

bool OpCosts::casts_output(const Op& op) const {
  if (inputs_.strategy.activation_format == SentFormat::Computed) return false;
  const std::vector<int> readers = after(op.stage);
  return !readers.empty() && cast_output(op.stage, readers.front(), op.micro_batch);
}

bool OpCosts::casts_input_gradient(const Op& op) const {
  return traversal(op).to_previous && cast_gradient(op.stage, before(op.stage), op.micro_batch);
}

Bytes OpCosts::sent_output(int from, int to, int micro_batch) const {
  return cast_output(from, to, micro_batch).value_or(of_stage(from, micro_batch).output);
}

Bytes OpCosts::sent_outputs(const Op& op) const {
  const std::vector<int> readers = after(op.stage);
  Bytes bytes;
  for (const int reader : readers) bytes += sent_output(op.stage, reader, op.micro_batch);
  return readers.empty() && role(op).head ? of_stage(op).output : bytes;
}

Bytes OpCosts::sent_input_gradient(const Op& op) const {
  const int to = before(op.stage);
  const auto cast = to < 0 ? std::nullopt : cast_gradient(op.stage, to, op.micro_batch);
  return cast.value_or(input_gradient(op));
}

Bytes OpCosts::input(const Op& op) const {
  const int from = before(op.stage);
  if (!inputs_.layouts.empty()) return inputs_.layouts.inputs[op.stage];
  return from < 0 ? Bytes(0) : sent_output(from, op.stage, op.micro_batch);
}

Bytes OpCosts::input_gradient(const Op& op) const {
  const int to = before(op.stage);
  if (!inputs_.layouts.empty()) return inputs_.layouts.inputs[op.stage];
  return to < 0 ? Bytes(0) : of_stage(to, op.micro_batch).output_gradient();
}

const Traversal& OpCosts::traversal(const Op& op) const {
  for (const Traversal& traversal : role(op).traversals) {
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
  const int from = before(stage);
  if (from >= 0 && cast_output(from, stage, micro_batch)) turn += cost.casts.output_read;
  if (inputs_.roles[stage].head) turn += cost.head;
  for (const Traversal& traversal : inputs_.roles[stage].traversals) {
    turn += traversal_cost(cost, inputs_.strategy, traversal);
  }
  turn += cost.recompute;
  turn += update(cost);
  return turn;
}

std::optional<Trade> OpCosts::trade(const Op& op) const {
  const int slices = op.trade.slices;
  if (slices == 0) return std::nullopt;
  Op other = op;
  other.stage += op.trade.stage;
  other.micro_batch += op.trade.micro_batch;
  Trade trade{.giver = slices < 0 ? op : other,
              .maker = slices < 0 ? other : op,
              .slices = std::abs(slices)};
  const SliceContext& bytes = of_stage(trade.giver).context.bytes;
  trade.layers = std::min(bytes.layers, of_stage(trade.maker).context.bytes.layers);
  if (trade.layers == 0) return std::nullopt;
  const double share = 1.0 * trade.layers / bytes.layers;
  const Bytes queries = bytes.queries * share, keys = bytes.keys * (share * trade.slices),
              outputs = bytes.outputs * share, merged = outputs + bytes.statistics * share;
  const bool back = op.kind != OpKind::F;
  const bool again = back && attends_again(trade);
  const Bytes asked = queries + keys, returned = queries + keys + merged + outputs;
  if (!back || again) {
    trade.request += asked;
    trade.answer += merged;
  }
  if (back) {
    trade.request += returned;
    trade.answer += asked;
  }
  trade.request_held = (back ? returned : asked) / trade.layers;
  trade.answer_held = (back ? again ? std::max(asked, merged) : asked : merged) / trade.layers;
  return trade;
}

/// Returns whether the backward of a trade first makes its attention again.
bool OpCosts::attends_again(const Trade& trade) const {
  return attention(trade, trade.giver.stage, &ContextCost::recompute).flops > Flops(0);
}

/// Returns what the traded attention costs the rank of `stage`: slices are equally long, so that
/// nothing else differs between two of them.
OpCost OpCosts::attention(const Trade& trade, int stage, OpCost ContextCost::*pass) const {
  const auto context = [&](int slices) -> const ContextCost& {
    return of_stage(stage, trade.giver.micro_batch - slices).context;
  };
  OpCost part = context(0).*pass;
  part -= context(trade.slices).*pass;
  return scaled(part, 1.0 * trade.layers / context(0).bytes.layers);
}

/// Moves the attention that `op` trades between `cost` and that of the other op.
void OpCosts::move_attention(const Op& op, OpCost ContextCost::*pass, OpCost& cost) const {
  const std::optional<Trade> traded = trade(op);
  if (!traded) return;
  const OpCost part = attention(*traded, op.stage, pass);
  op.trade.slices < 0 ? cost -= part : cost += part;
  cost.waiting = std::max(Seconds(0), cost.waiting);
}

OpCost OpCosts::recompute(const Op& op) const {
  OpCost cost = recompute_cost(of_stage(op), traversal(op));
  if (cost.time > Seconds(0)) move_attention(op, &ContextCost::recompute, cost);
  return cost;
}

OpCost OpCosts::of(const Op& op) const {
  OpCost cost = before_trade(op);
  const bool forward = op.kind == OpKind::F;
  move_attention(op, forward ? &ContextCost::forward : &ContextCost::backward_input, cost);
  return cost;
}

int OpCosts::gradients_read(const Op& op) const {
  return (op.loss > op.stage ? 1 : 0) +
         static_cast<int>(added_before(role(op), op.stage, op.loss).size());
}

/// Returns the cost of casting what `op` reads of other ranks, and what they read of it.
OpCost OpCosts::casts(const Op& op) const {
  OpCost cost;
  const int below = before(op.stage);
  const MessageCasts& own = of_stage(op).casts;
  const auto add = [&](const std::optional<Bytes>& sent, const OpCost& cast) {
    if (sent) cost += cast;
  };
  if (op.kind == OpKind::F) {
    if (below >= 0) add(cast_output(below, op.stage, op.micro_batch), own.output_read);
    for (const int next : after(op.stage)) {
      add(cast_output(op.stage, next, op.micro_batch), own.output);
    }
    return cost;
  }
  for (int left = gradients_read(op); left > 0; --left) {
    add(cast_gradient(op.stage + 1, op.stage, op.micro_batch), own.gradient_read);
  }
  if (traversal(op).to_previous) {
    add(cast_gradient(op.stage, below, op.micro_batch), own.gradient);
  }
  return cost;
}

/// Returns the cost of `op` as if it traded nothing.
OpCost OpCosts::before_trade(const Op& op) const {
  OpCost cost = computing(op);
  const bool forward = op.kind == OpKind::F;
  const bool passes = forward || op.kind == OpKind::I || op.kind == OpKind::B;
  const Strategy& strategy = inputs_.strategy;
  const SentFormat format = forward ? strategy.activation_format : strategy.gradient_format;
  if (!passes || format == SentFormat::Computed) return cost;
  cost += casts(op);
  return cost;
}

OpCost OpCosts::computing(const Op& op) const {
  const StageCost& stage = of_stage(op);
  OpCost additions{.time = role(op).summed_gradients * stage.gradient_addition, .memory_bound = 1};
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
