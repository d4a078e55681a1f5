// Host memory: what all devices of a node keep with their host, and whether that fits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/plan/plan.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// Adds to `metrics` what the host of that node keeps which keeps most, each device at its peak.
/// REQUIRES: `plan` is the one that was measured.
void add_host_memory(const Plan& plan, Metrics& metrics);

}  // namespace interlock
