// Weights of a stage on the CPU: what its optimiser keeps, sums of gradients, old versions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "validate/cpu/cpu_memory.h"
#include "validate/network/network.h"

namespace interlock {

/// A weight, and what its optimiser keeps.
template <class T>
struct TrainedParameter {
  Parameter parameter;
  int number = 0;  // in the whole network
  bool of_head = false;
  T* weight = nullptr;
  T* first = nullptr;   // momentum, or the mean of gradients
  T* second = nullptr;  // the mean of their squares
};

/// What the micro-batches of one update add up.
template <class T>
struct GradientSum {
  std::vector<T*> of_stage, of_head;  // by parameter
  int batches = 0, head_batches = 0;  // in them
};

/// Old weights that some backward still needs.
template <class T>
struct WeightVersion {
  Block block;
  std::vector<T*> weights;
};

}  // namespace interlock
