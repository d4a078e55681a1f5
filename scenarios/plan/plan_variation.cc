// Devices that are slow always, and times that vary, as engines are told of them.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/plan_variation.h"

namespace interlock {

std::vector<SlowDevices> always_slow(const VariationConditions& variation) {
  std::vector<SlowDevices> slow;
  for (const Straggler& straggler : variation.stragglers) {
    if (straggler.always()) slow.push_back(straggler.devices);
  }
  for (std::size_t rank = 0; rank < variation.speeds.size(); ++rank) {
    if (variation.speeds[rank] == 1) continue;
    slow.push_back({SlowDevices::Of::Rank, static_cast<int>(rank), 1 / variation.speeds[rank]});
  }
  return slow;
}

std::string variation_folding_problem(const Plan& plan, const Unfolded& unfolded) {
  const Question& question = plan.question;
  if (!question.variation) return "";
  const VariationConditions& variation = *question.variation;
  if (variation.random() && folded_ranks(question.mesh, unfolded).size() > 1) {
    return "jitter makes equal devices differ";
  }
  std::string problem = slow_folding_problem(always_slow(variation), question.mesh, unfolded);
  for (const Straggler& straggler : variation.stragglers) {
    if (!problem.empty() || straggler.always()) continue;
    problem = slow_folding_problem({straggler.devices}, question.mesh, unfolded);
  }
  return problem;
}

Variation variation_of(const Plan& plan) {
  const Question& question = plan.question;
  const VariationConditions& conditions = *question.variation;
  Variation variation = {.seed = static_cast<std::uint64_t>(question.seed),
                         .compute = conditions.jitter,
                         .transfers = conditions.link_jitter};
  for (const Straggler& straggler : conditions.stragglers) {
    if (straggler.always()) continue;
    const auto by_rank = slowdowns({straggler.devices}, question.mesh, plan.unfolded);
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      if (by_rank[rank] == 1) continue;
      variation.slow.push_back({static_cast<int>(rank), straggler.first_step.value_or(1) - 1,
                                straggler.last_step.value_or(question.steps), by_rank[rank]});
    }
  }
  return variation;
}

}  // namespace interlock
