// TraceEvents: a run as trace-event JSON, for viewers of timelines and for trace analysis.
// SPDX-License-Identifier: Apache-2.0
//
// Perfetto and browsers of the Chrome family open the one, Holistic Trace Analysis the other.
// Times are in microseconds with three decimals, and whole nanoseconds before that. Process and
// thread numbers are never 0, which viewers take for a process' first thread, and no thread has the
// number of a process. Text is handed on as it is made. docs/figures.md describes both formats.
#pragma once

#include "base/file.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns a process for each device with a track for its ops, tracks for its copies, and counters
/// of its memory by class; processes for links, collectives and steps; an arrow for each message,
/// from the op that made it over its link to the op that used it. REQUIRES: the log was kept.
TextSource trace_events(const ScenarioResult& result);

/// Writes what the profiler of PyTorch would have written on the device that `rank` simulates:
/// kernels by stream with their launches, and steps. REQUIRES: the log was kept.
TextSource kineto_trace(const ScenarioResult& result, int rank);

}  // namespace interlock
