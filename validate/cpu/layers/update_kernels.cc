// Descent, number by number.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/layers/update_kernels.h"

#include <cmath>

namespace interlock {

template <class T>
void descend(const Descent& d, const StepFactors& factors, const UpdatedNumbers<T>& p) {
  const T mean = static_cast<T>(factors.mean), rate = static_cast<T>(d.rate);
  const T decay = static_cast<T>(p.decays ? d.decay : 0);
  for (std::int64_t i = 0; i < p.count; ++i) {
    T g = p.gradient[i] * mean;
    p.gradient[i] = 0;
    if (d.optimizer == Optimizer::Adam) {
      const T b1 = static_cast<T>(d.beta1), b2 = static_cast<T>(d.beta2);
      p.first[i] = b1 * p.first[i] + (1 - b1) * g;
      p.second[i] = b2 * p.second[i] + (1 - b2) * g * g;
      const T first = p.first[i] / static_cast<T>(factors.correction1);
      const T second = p.second[i] / static_cast<T>(factors.correction2);
      g = first / (std::sqrt(second) + static_cast<T>(d.epsilon)) + decay * p.weight[i];
    } else {
      g += decay * p.weight[i];
      if (d.optimizer == Optimizer::SgdMomentum) {
        g = p.first[i] = static_cast<T>(d.momentum) * p.first[i] + g;
      }
    }
    p.weight[i] -= rate * g;
  }
}

template void descend<float>(const Descent&, const StepFactors&, const UpdatedNumbers<float>&);
template void descend<double>(const Descent&, const StepFactors&, const UpdatedNumbers<double>&);

}  // namespace interlock
