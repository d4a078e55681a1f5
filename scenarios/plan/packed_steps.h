// Packed steps: programs whose micro-batches take the time of their own documents.
// SPDX-License-Identifier: Apache-2.0
//
// Attention is priced for seventeen drawn micro-batches, from the least to the most work of those
// that were drawn; one between two of them takes a time between theirs. Kernels that are limited by
// the memory's bandwidth for short documents so have their bend.
#pragma once

#include "scenarios/plan/plan.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// Returns `programs` of `plan` with the times of packed micro-batches, if samples are packed and
/// differ. Throws: Error if too many documents would be drawn.
ProgramOfSteps packed_programs(const Plan& plan, ProgramOfSteps programs);

}  // namespace interlock
