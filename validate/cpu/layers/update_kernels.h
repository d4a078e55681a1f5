// Kernels of gradient descent on the CPU; instantiated for float and double.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "validate/network/job.h"

namespace interlock {

/// `count` numbers of each.
template <class T>
struct UpdatedNumbers {
  T* weight;
  T* gradient;
  T* first;   // momentum, or the mean of gradients; null without
  T* second;  // the mean of their squares; null without
  std::int64_t count = 0;
  bool decays = true;
};

/// Changes the weights and what the optimiser keeps, and clears the gradients.
template <class T>
void descend(const Descent& descent, const StepFactors& factors, const UpdatedNumbers<T>& numbers);

}  // namespace interlock
