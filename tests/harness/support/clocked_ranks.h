// ClockedRanks: trainings by the native engine's clock.
// SPDX-License-Identifier: Apache-2.0
//
// Ops begin and end, and messages leave and arrive, in the order of a simulated run, one at a time,
// so that memory is what it was simulated to be.
#pragma once

#include "validate/cpu/cpu_run.h"

namespace interlock {

Outcome train_by_the_clock(const Job& job, CpuOptions options);

}  // namespace interlock
