// OuterCycle: how long steps take on average where outer steps come between them.
// SPDX-License-Identifier: Apache-2.0
//
// Simulations give the times of a step and of the exchange of one fragment; between exchanges lie
// hundreds of equal steps. Exchange e of E, of a fragment each, begins at the end of step
// H (e + 1) / E, rounded down, of each cycle of H. The network carries one after the other. After
// `overlap` more steps all devices wait until the exchange is done, and apply it; without overlap
// they wait at once.
//
// Example: H = 6, E = 2, steps of 10 ms, exchanges of 25 ms that take 1 ms to apply.
//   overlap 0   10 10 10 [25 1] 10 10 10 [25 1]              112 ms, 18.7 ms a step
//   overlap 2   10 10 10 | 10 10 [5 1] 10 | 10 10 [5 1] ...   72 ms, 12 ms a step
// Source: Streaming DiLoCo, arXiv 2501.18512, algorithm 2.
#pragma once

#include "sim/measure/metrics.h"

namespace interlock {

struct OuterCycle {
  int every = 1, exchanges = 1, overlap = 0;  // 1 <= exchanges <= every, 0 <= overlap <= every
  Seconds exchange;  // of one fragment between workers, if nothing else is on its links
  Seconds apply;     // its outer step, and what devices of a worker exchange for it
};

/// Returns the exchanges of a cycle that take `share` of the time of its steps, each of which takes
/// `step`: at least those of `cycle`, which are one of each fragment; at most one a step, and so
/// many that no fragment leaves again before it has come.
/// Source: CoCoDC, arXiv 2504.17672, adaptive transmission.
int exchanges_within(double share, const OuterCycle& cycle, Seconds step);

/// Returns the time of a cycle of `cycle.every` steps, each of which takes `step` by itself, in the
/// long run.
Seconds cycle_time(const OuterCycle& cycle, Seconds step);

/// Spreads the outer steps of a cycle over its steps, which `measured` is of. `outer` is of a run
/// of one outer step by the same devices, exchange and all. A cycle is no shorter than what it has
/// to send over any link takes there. Kernels lose nothing to exchanges beside them.
void add_outer_steps(const OuterCycle& cycle, const Measurement& outer, Measurement& measured);

}  // namespace interlock
