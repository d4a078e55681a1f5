// Message streams: sends and receives that stand in line beside the ops of their rank.
// SPDX-License-Identifier: Apache-2.0
//
// A line is one stream that makes transfers whose two ends have come to them, one after the other;
// or as many as there are ways that messages take together, of which none goes on before all of a
// batch are done. An op waits for the event that its message has been taken; a send for the event
// that its op is done, a receive for that of the op before it.
//
// Example: F0 and F1 of the first of two ranks, then B0, whose gradient the line asks for between
// the two sends. In the line, "receive B0" holds "send F1" up until the gradient has come.
//   ops   F0  Record made (0)  F1  Record made (1)  Wait taken (0)  B0
//   line  Wait made (0)  Send (0)  Receive (0)  Record taken (0)  Wait made (1)  Send (1)
#pragma once

#include "sim/plan/orders/schedule_check.h"
#include "sim/plan/schedules/schedule.h"
#include "sim/program/program.h"

namespace interlock {

/// Gives messages between ranks to lines of their own. `order`: one step of the program.
/// REQUIRES: every rank has one stream, a loop over steps; messages.lines is not Free.
void add_message_streams(Program& program, const StepOrder& order, const MessageOrder& messages);

}  // namespace interlock
