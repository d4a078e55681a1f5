// StageNetwork: runs the steps of a StagePlan on the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "validate/network/stage_plan.h"

namespace interlock {

/// What steps work on: the begin of every block that the plan names, and one pointer for each
/// parameter. Input is tokens (64 bits each) for a stage that begins with an Embedding.
template <class T>
struct StageTensors {
  std::array<T*, kPlaces> places{};
  const std::vector<T*>* weights = nullptr;
  const std::vector<T*>* gradients = nullptr;  // only for weight gradients; added to
  const std::int32_t* targets = nullptr;       // of the rows of a loss
  int samples = 1;
  int rows_per_sample = 1;  // of the network's input
};

enum class StepPart : std::uint8_t { All, ButLate, Late };

/// Runs `steps`. Returns the loss, if one of them makes it.
template <class T>
double run_steps(const std::vector<Step>& steps, const StageTensors<T>& tensors,
                 StepPart part = StepPart::All);

}  // namespace interlock
