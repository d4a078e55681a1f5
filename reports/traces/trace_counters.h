// TraceCounters: memory over time as counter events, by device and class.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reports/result/event_text.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// Writes an event of process rank + 1 for each instant at which a rank's memory changes, with the
/// bytes of every class that it ever holds; what a host keeps for it is a counter of its own.
void write_memory_counters(EventText& text, const Measurement& measurement);

}  // namespace interlock
