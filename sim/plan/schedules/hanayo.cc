// Hanayo: micro-batches run through the ranks in waves, of which a rank takes the backwards first.
// SPDX-License-Identifier: Apache-2.0
//
// One copy of the model is laid as a V of 2w chunks a rank, so that a micro-batch comes and goes in
// w waves and the bubbles of fill and drain are as short as one chunk. The order is that of a unit-
// time simulation with F = 1 and B = 2, in which a free rank takes a ready backward before a
// forward, the older micro-batch first and then the later chunk, and no more than p micro-batches
// are under way: the activations of 1F1B's first rank.
// Source of the waves: Liu et al., arXiv 2308.15762; the paper's own order is given by its action
// lists, which this reading of it need not equal.
#include <memory>
#include <string>

#include "base/error.h"
#include "sim/plan/list_order.h"
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

Schedule make_hanayo(const ScheduleInputs& inputs) {
  const ListInputs list = {.micro_batches = inputs.micro_batches,
                           .update_every = inputs.micro_batches,
                           .rank_of_stage = inputs.rank_of_stage,
                           .roles = inputs.roles,
                           .ops = unit_ops(inputs.roles, {.split = inputs.policy.split_backward})};
  const ListRules rules = {.ahead = std::vector<int>(inputs.stages, rank_count(inputs))};
  auto order = list_order(list, rules);
  CHECK(order, "micro-batches in flight can always finish");
  for (std::vector<Op>& ops : *order) {
    std::erase_if(ops, [](const Op& op) { return op.kind == OpKind::U; });
  }
  ScheduleInputs explicit_inputs = inputs;
  explicit_inputs.policy.order =
      std::make_shared<const std::vector<std::vector<Op>>>(std::move(*order));
  return make_explicit_order(explicit_inputs);
}

std::string hanayo_problem(const ScheduleShape& shape) {
  const int chunks = shape.stages / shape.ranks;
  if (chunks % 2 == 0) return "";
  return "goes down and up again in each wave; expected an even number of chunks, such as " +
         std::to_string(chunks + 1) + ", got " + std::to_string(chunks);
}

}  // namespace interlock
