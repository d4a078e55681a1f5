// Prices every kernel of a model once more, and keeps how that was done.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/pricing_levels.h"

namespace interlock {

std::vector<PricingLevels> pricing_levels(const Question& question) {
  if (question.trace() || !is_calibrated(question.cluster)) return {};
  const Training& training = question.training();
  const Device& device = front_device(question.cluster);
  std::array<std::array<Seconds, kPricedBy>, kOpClasses> times{};
  for (const Module& module : training.graph.modules) {
    for (const auto* works : {&module.forward, &module.backward_input, &module.backward_weight,
                              &module.recompute, &module.update}) {
      for (const Work& work : *works) {
        if (work.op_class == OpClass::Measured) continue;
        const KernelTime time = kernel_time(work, device, training.precision);
        times[static_cast<std::size_t>(work.op_class)][static_cast<std::size_t>(time.priced_by)] +=
            time.whole();
      }
    }
  }
  std::vector<PricingLevels> levels;
  for (std::size_t op_class = 0; op_class < times.size(); ++op_class) {
    PricingLevels found = {.op_class = static_cast<OpClass>(op_class)};
    for (const Seconds time : times[op_class]) found.time += time;
    if (found.time <= Seconds(0)) continue;
    for (std::size_t i = 0; i < found.shares.size(); ++i) {
      found.shares[i] = times[op_class][i] / found.time;
    }
    levels.push_back(found);
  }
  return levels;
}

}  // namespace interlock
