// Issued memory: what a run took and gave back when, found out from its ops and messages.
// SPDX-License-Identifier: Apache-2.0
//
// Devices that are told everything ahead keep no time of their own between two ops. A trace counts
// what a program does between them at the instant at which the op before ended, or that which was
// waited for came: so that instants of the program are instants of the trace.
#pragma once

#include <vector>

#include "sim/program/issue_order.h"
#include "sim/program/trace.h"

namespace interlock {

/// The memory changes of a run of which `issued` was issued: issue_order(), or its beginning. `log`
/// has its ops and its messages, by which instants are told; others are left out.
std::vector<MemoryChange> memory_of_issued(const Program& program, const std::vector<Issue>& issued,
                                           const TraceLog& log);

/// Hands `log` over in order of time; memory before the messages and ops of its instant.
void deliver_in_order(const TraceLog& log, const TraceSink& sink);

}  // namespace interlock
