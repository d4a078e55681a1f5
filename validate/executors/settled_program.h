// A program with nothing left to choose: what threads do when must not change a number.
// SPDX-License-Identifier: Apache-2.0
//
// Where several micro-batches are in flight on a stage, which weights a forward reads and in which
// order gradients are added up follow from the order in which its device runs their ops; where a
// stage learns from old inputs while it waits, the number of turns follows from times. Both are
// taken from a simulated run and become part of the program.
//
//   stage 1 by dgl, as lowered            as settled, if the simulated wait for input 1 has room
//   Receive 0, F0, U0, Receive 1, ...     for two turns: Receive 0, F0, U0, R, R, Receive 1, ...
#pragma once

#include "sim/engines/engines.h"

namespace interlock {

/// Returns whether numbers of a training depend on what an engine or an executor chooses.
bool leaves_numbers_open(const Program& program);

/// Returns `program` in the order of a run by `engine`, turns on old inputs written out as ops;
/// `program` itself unless leaves_numbers_open(program). Throws: Error where the engine does.
Program settled(const Program& program, EngineKind engine);

}  // namespace interlock
