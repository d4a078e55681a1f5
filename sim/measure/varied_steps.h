// Varied steps: what steps take whose ops and transfers vary, under several seeds.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing repeats, so there is no steady state to look for. The program first runs without
// variation, which says how many steps are the fill, and how many at the end lack what later steps
// would do meanwhile; then, under each seed, as many steps are measured as were asked for, by the
// clock. More steps follow, until none of the runs has begun its last one when its window ends: no
// device that is ahead has run out of work by then. Where one is ahead ever further, as queues have
// no end, the run ends some time.
//
// Example: global training in scenarios/examples/stragglers.json has an undisturbed_step_time of
// 1.456 s. With a spread of 0.3 of ops and of 0.5 of messages, step_time over 20 seeds has a mean
// of 1.724 s and a p95 of 1.751 s.
#pragma once

#include <cstdint>

#include "base/spread.h"
#include "sim/measure/metrics.h"

namespace interlock {

struct VariedSteps {
  Variation variation;  // its seed is the first; steps of `slow` begin with the first measured one
  int seeds = 20;
};

struct VariedOutcome {
  int seeds = 1;
  Seconds undisturbed_step_time;  // without variation
  Spread step_time;               // seconds; of each seed its mean
  Spread steps_per_s;
  Spread busy;
};

/// A measurement whose step time, rates and shares are means over the seeds; the rest, the program
/// and the log are those of the first one.
struct VariedMeasurement {
  Measurement measurement;
  VariedOutcome outcome;
};

/// Measures steps that vary. `steady`: the measurement without variation. Throws: Error if that
/// would take minutes.
VariedMeasurement measure_varied(const ProgramOfSteps& lower, const VariedSteps& varied,
                                 const MeasureInputs& inputs, const Measurement& steady,
                                 bool keep_log);

}  // namespace interlock
