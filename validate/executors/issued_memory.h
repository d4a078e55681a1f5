// Issued memory: the times at which a run allocated and freed, found from its ops and messages.
// SPDX-License-Identifier: Apache-2.0
//
// Devices that are told everything ahead keep no time of their own between two ops. A memory change
// between two ops counts at the end of the op before it, or at the arrival of the message that was
// waited for, so that instants of the program are instants of the trace. For example: F0 ends at
// 2 ms, then its stash is allocated; the change has the time 2 ms.
#pragma once

#include <vector>

#include "sim/program/issue_order.h"
#include "sim/program/trace.h"

namespace interlock {

/// Returns the memory changes of a run of which `issued` was issued: issue_order(), or its first
/// part. `log` has its ops and messages, which give the instants; others are left out.
std::vector<MemoryChange> memory_of_issued(const Program& program, const std::vector<Issue>& issued,
                                           const TraceLog& log);

/// Hands `log` over in order of time; memory before the messages and ops of its instant.
void deliver_in_order(const TraceLog& log, const TraceSink& sink);

}  // namespace interlock
