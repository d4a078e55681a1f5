// Issue order: the instructions of a program, each after all that it depends on.
// SPDX-License-Identifier: Apache-2.0
//
// This is the one place that knows what instructions wait for: room in queues, rendezvous, events,
// turns of frozen orders. It knows no clock. Readers that ask what a finished run depended on walk
// the issues, and carry along what they want to know: causes, nodes of execution traces, memory.
//
// Example: two stages and one micro-batch, with stage 0 on stream 0 and stage 1 on stream 1, are
// issued as
//   stream 0  Compute 0F0
//   stream 0  Send    to stage 1     slot 0
//   stream 1  Receive from stage 0   slot 0: the message that was sent there
//   stream 1  Compute 1F0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/program/cursor.h"
#include "sim/program/program.h"

namespace interlock {

/// One turn of an instruction, which has the micro-batch of the turn.
struct Issue {
  int stream = 0;
  Instruction instruction;
  /// Send, Receive: their message. Record, Wait: the generation of their event. Each are counted
  /// through the run, from 0. -1: a Wait for nothing, or another instruction.
  std::int32_t slot = -1;
  /// A Send: the message whose Receive made room in the queue. A Record that no stream holds, see
  /// Event::next: the generation that records it by being complete. -1: nothing.
  std::int32_t after = -1;
  bool completes = false;  // a Record: its generation
};

/// Calls `visit` with every issue of `program` and where its stream stands then, ranks by turns,
/// until it returns false. A sender whose message must be waited for (rendezvous, synchronous) goes
/// on behind its Receive. A rank that chooses its order gets any that its streams allow.
/// `code` is that of the program, with or without Allocate and Free. Throws: Error on deadlock.
void visit_issues(const Program& program, const Code& code,
                  const std::function<bool(const Issue&, const Cursor&)>& visit);

/// Returns all issues in the order in which one host thread may issue them. Throws: Error on
/// deadlock. REQUIRES: ranks have one stream, or the program is frozen.
std::vector<Issue> issue_order(const Program& program);

/// Returns the rank of each stream.
std::vector<int> ranks_of_streams(const Program& program);

}  // namespace interlock
