// Repeats the instructions of ops for other micro-batches.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/known_ops.h"

#include <algorithm>

#include "sim/lower/op_cost.h"

namespace interlock {

namespace {

/// Returns whether what an op is lowered to depends on its micro-batch, but for the numbers in it,
/// or on the ops around it: slices have costs of their own, micro-batches in flight channels, and
/// stash passes to hosts and back beside other ops.
bool depends_on_micro_batch(const LowerInputs& inputs) {
  const SchedulePolicy& policy = inputs.policy;
  const bool numbered = inputs.schedule.slices > 1 || policy.in_flight > 1 ||
                        inputs.strategy.readout_every > 0 || policy.trades_context ||
                        policy.vocabulary != VocabularySplit::Whole || is_ring(inputs);
  return numbered ||
         std::ranges::any_of(inputs.roles,
                             [](const StageRole& role) { return role.gradient_every > 1; }) ||
         std::ranges::any_of(inputs.stages,
                             [](const StageCost& stage) { return stage.host_stash > Bytes(0); });
}

Op for_micro_batch(Op op, int micro_batch) {
  op.micro_batch = micro_batch;
  return op;
}

std::optional<Op> as_pair(const Op& op, const Op* pair) {
  if (pair == nullptr) return std::nullopt;
  return for_micro_batch(*pair, pair->micro_batch - op.micro_batch);
}

}  // namespace

KnownOps::KnownOps(const LowerInputs& inputs, Program& program)
    : program_(program),
      repeats_(!depends_on_micro_batch(inputs)),
      lowered_(static_cast<std::size_t>(inputs.schedule.stages)) {}

const KnownOps::Lowered* KnownOps::find(const Op& op, const Op* pair) const {
  const std::vector<Lowered>& known = lowered_[static_cast<std::size_t>(op.stage)];
  const Op plain = for_micro_batch(op, 0);
  const std::optional<Op> other = as_pair(op, pair);
  const auto like = std::ranges::find_if(
      known, [&](const Lowered& one) { return one.op == plain && one.pair == other; });
  return like == known.end() ? nullptr : &*like;
}

void KnownOps::repeat(const Lowered& like, int micro_batch) {
  std::vector<Instruction>& all = program_.instructions;
  const auto first = static_cast<std::size_t>(like.first),
             count = static_cast<std::size_t>(like.count);
  const std::size_t end = all.size();
  all.resize(end + count);
  for (std::size_t i = 0; i < count; ++i) {
    Instruction& made = all[end + i];
    made = all[first + i];
    made.micro_batch += micro_batch - like.micro_batch;
  }
}

void KnownOps::note(const Op& op, const Op* pair, int first) {
  const int count = static_cast<int>(program_.instructions.size()) - first;
  lowered_[static_cast<std::size_t>(op.stage)].push_back(
      {for_micro_batch(op, 0), as_pair(op, pair), first, count, op.micro_batch});
}

}  // namespace interlock
