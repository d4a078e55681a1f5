// The yardstick of the benchmark: 1F1B by a hand-written event loop over a binary heap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace interlock {

/// 1F1B of one step: `stages` x `micro_batches`, forward and backward times, and a transfer (time
/// on the wire, then latency) after each op that has a neighbour. Seconds.
struct HeapLoopCase {
  int stages = 1, micro_batches = 1;
  double forward = 1e-3, backward = 2e-3, occupancy = 1e-5, latency = 5e-6;
};

struct HeapLoopResult {
  double makespan = 0;
  std::int64_t tasks = 0;  // computes and transfers
};

HeapLoopResult run_heap_loop(const HeapLoopCase& c);

}  // namespace interlock
