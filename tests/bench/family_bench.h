// Time of every schedule family, and of the search for schedules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// Prints, for every family at 512 devices x 1024 micro-batches, tasks, time to make and lower its
/// schedule, time to simulate it natively, and both together a task as a ratio to the heap loop's,
/// median of `rounds`.
void run_families(int rounds);

/// Prints how long `auto` takes for two pipelines, and its step time beside the best hand-made.
void run_searches();

}  // namespace interlock
