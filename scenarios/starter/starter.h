// Starter: a scenario made of nothing more than a model, a machine and a number of devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace interlock {

struct StarterQuestion {
  std::string model, machine;  // names, or paths from where the user stands
  int devices = 1;
};

/// What is chosen for the user.
struct StarterPlan {
  int tensor = 1, pipeline = 1, data = 1;
  int global_batch_size = 1, micro_batch_size = 1;
  std::string recompute = "none";  // "none", "selective", "full"
};

struct Starter {
  StarterQuestion question;
  StarterPlan plan;
  std::string precision, optimizer;
  std::optional<double> tokens_per_sample;
  int nodes = 0;          // 0: the machine says it
  std::size_t tried = 0;  // plans that were simulated
  Seconds step_time;
  Bytes peak_memory, memory;  // of the fullest device, and what it has
  bool fits = true;
};

/// The fastest of the plans that leave a tenth of the memory, or at least fit: degrees that are
/// powers of two or take all devices, tensors divided inside a node, 1F1B, three levels of
/// recomputation. If none fits, the one that lacks least. Throws: Error if model or machine are
/// wrong, or have too few devices.
Starter make_starter(const StarterQuestion& question, int processes);

/// The scenario as a file with comments, for the folder `folder` ("" for where the user stands).
std::string starter_text(const Starter& starter, const std::string& folder);

}  // namespace interlock
