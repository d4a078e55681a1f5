// Handmade results: what reports are tested on, made without any engine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Two devices, one micro-batch, one step, six milliseconds:
///   device 0: F [0, 1)                  B [4, 6)
///   device 1:           F [1, 2) B [2, 4)
/// A message of 2 MiB each way occupies its wire for 0.25 ms and is there when it is needed.
ScenarioResult two_devices();

struct PipelineSize {
  int devices = 4, micro_batches = 8, steps = 8;
};
/// GPipe with F 1 ms, B 2 ms and U 0.5 ms, all steps measured, messages of 0.1 ms + 0.05 ms.
ScenarioResult pipeline_run(const PipelineSize& size);

/// Gives every device, and so the fullest, `capacity` bytes of memory.
void set_memory(Metrics& metrics, const std::optional<Bytes>& capacity);

}  // namespace interlock
