// Speed of writing timelines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// Prints events a second of trace-event JSON, plain and compressed, of runs of 1F1B that were
/// simulated before; median of `rounds`.
void run_traces(int rounds);

}  // namespace interlock
