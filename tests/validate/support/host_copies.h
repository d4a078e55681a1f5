// One device that keeps stash with its host: its steps worked out op by op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// A GPipe step of one device: forwards 0 to k - 1, then backwards in the same order.
struct OffloadedStep {
  int micro_batches = 2;             // at least 2
  double forward = 2, backward = 4;  // any unit of time
  double out = 1, back = 1;          // of the part of a stash that leaves
  double share = 1;                  // of the stash that leaves
};

struct StepOutcome {
  double end = 0;        // of the step
  double peak = 0;       // of the device, in stashes
  double host_peak = 0;  // of the host, in stashes
};

/// Rules, each copy direction being first in, first out: a stash leaves after its forward, and the
/// device stands until the stashes before it have left; it is asked for when the op before its
/// backward begins, not before it has left, and the backward begins when it is back.
StepOutcome offloaded_step(const OffloadedStep& step);

}  // namespace interlock
