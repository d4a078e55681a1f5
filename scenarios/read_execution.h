// Execution: whether ops start when their inputs are there, or phase by phase.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/contract.h"
#include "sim/plan/catalogue.h"

namespace interlock {

/// Reads "execution" of training.schedule into a policy that is complete but for it.
void read_execution(Section& section, SchedulePolicy& policy);

}  // namespace interlock
