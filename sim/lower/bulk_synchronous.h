// Bulk-synchronous execution: a barrier after every phase, where futures would start what is ready.
// SPDX-License-Identifier: Apache-2.0
//
// A phase is a row of the schedule: the ops whose longest chain of ops before them, on their rank
// and by messages, is equally long. In a phase every rank runs its op, sends what it made and
// takes what was sent to it; then all wait for each other. A run takes the sum over its phases of
// the slowest rank and the slowest message. Compared with futures as in Phylanx, arXiv 2010.03012.
#pragma once

#include <string>

#include "sim/program/program.h"

namespace interlock {

/// Returns why `program` cannot be run so; empty if it can.
std::string bulk_synchronous_problem(const Program& program);
/// Returns `program` with a barrier after every phase, its loops written out.
/// REQUIRES: bulk_synchronous_problem(program) is empty.
Program bulk_synchronous(const Program& program);

}  // namespace interlock
