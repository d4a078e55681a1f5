// Tells memory that is known by what devices hold beside what passes through.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/known_memory.h"

#include <algorithm>

namespace interlock {

bool knows_memory(const Metrics& metrics) {
  return std::ranges::any_of(metrics.devices, [](const DeviceMetrics& device) {
    Bytes passing;
    for (const MemoryClass one : {MemoryClass::Boundary, MemoryClass::Head, MemoryClass::Workspace,
                                  MemoryClass::Communication}) {
      passing += device.memory[static_cast<std::size_t>(one)];
    }
    return device.peak_memory > passing;
  });
}

Headline unknown_memory(const ScenarioResult& result) {
  const bool recorded = result.plan.question.trace() != nullptr;
  return {"Peak memory", "unknown",
          recorded ? "execution traces have times only"
                   : "the model has times only: no \"parameters\" or \"stash\" of its modules"};
}

}  // namespace interlock
