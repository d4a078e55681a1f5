// OpAttribution: which op of the model each kernel of a trace belongs to.
// SPDX-License-Identifier: Apache-2.0
//
// A kernel belongs to the innermost named range around its launch, or around the operator that
// launched it, on the same thread. Backward operators run on threads of their own: there it is the
// range of another thread of the process at that moment, and the part of the model is that of the
// forward operator with the same sequence number. So a loop that names its forwards alone has
// backwards by layer, too.
//
// Example: the range "forward stage 0" lasts from 0 to 10 us on a thread, which launches a kernel
// at 4 us that runs from 12 to 15 us. That is one occurrence, {Forward of "stage 0", start 12000,
// end 15000, busy 3000}, and occurrence_of is {0}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/kineto/kineto_events.h"
#include "reports/kineto/phase_names.h"

namespace interlock {

/// One op as it was executed once.
struct OpOccurrence {
  PhaseName name;
  std::int64_t start = 0, end = 0;  // of its first and its last kernel, nanoseconds
  std::int64_t busy = 0;            // covered by its kernels
};

struct OpAttribution {
  std::vector<OpOccurrence> occurrences;
  std::vector<std::int32_t> occurrence_of;  // (events.device); below 0: none
};

/// Attributes kernels; messages and copies have no occurrence.
OpAttribution attribute_ops(const KinetoEvents& events);

}  // namespace interlock
