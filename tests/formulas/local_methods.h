// Costs of the local methods of Laskin et al., worked out by hand, to judge the simulator by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/formulas/closed_form.h"

namespace interlock {

// Laskin's family: L equal layers, one a worker except in chunks, B = 2f, h a head, c = 0

enum class LocalMethod { Backprop, Greedy, OverlappingRecomputed, Chunked };

struct LocalCost {
  Seconds work;             // of all workers per example
  Seconds sequential_time;  // between two updates in the steady state
  double layers_held;       // activations on one worker
  int tensors_sent;         // boundary tensors per example
};
/// Costs of a method. `chunks` is for Chunked, where `layers` is a multiple of it.
///   Backprop               3Lf               3Lf            1    2(L - 1)
///   Greedy                 3Lf + (L - 1)h    3f + h         1    L - 1
///   OverlappingRecomputed  6(L - 1)f + (L - 2)h   6f + h    2    L - 2
///   Chunked, J chunks      3Lf + (J - 1)h    3(L/J)f + h    L/J  J - 1
/// Derived for the methods of Laskin et al. (arXiv 2012.03837), section 3.
LocalCost local_cost(LocalMethod method, int layers, int chunks, Seconds forward, Seconds head);

/// f + a + bi + max(f + 2c, bw) + q + o for K >= 3 equal BackLink stages, q = `down` the backward
/// of the modules that the error from above goes down. A stage's batch is a forward, the head, its
/// own input gradient, sent at once, then weight gradients while the stage above, c later, does its
/// forward, head and input gradient, of which the error comes c after; then q and the update. The
/// wait is f + a + bi + 2c less the stage's own a + bi + bw, if that is not negative. A gradient
/// goes no further than q, so there is no longer loop.
Seconds backlink_period(const EqualChain& chain, Seconds down);

}  // namespace interlock
