// Causes: the last thing that each op and message of a trace waited for.
// SPDX-License-Identifier: Apache-2.0
//
// A trace says when; this says why. A second walk of the program's streams follows the log of a
// run, simulated or real, and keeps the latest of all things that an op had to wait for: its
// device, a message, a collective, a sign of another stream, or room for a message. Going from
// cause to cause leads along the critical path to the start of the run. For example: F0 of device 1
// starts at 3 ms; the device was free at 0, the message from device 0 came at 3 ms, so the cause is
// that message.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// A thing in a log.
struct TraceNode {
  enum class Kind : std::uint8_t { Begin, Span, Transfer, Collective };
  Kind kind = Kind::Begin;
  std::int32_t index = -1;  // in the list of its kind
  bool operator==(const TraceNode&) const = default;
};

/// The thing that an op or message waited for last.
enum class Wait : std::uint8_t {
  Nothing,     // it follows its cause at once
  Device,      // another op of its rank
  Activation,  // the message of another stage
  Gradient,
  Exchange,  // a collective, a copy of gradients, or what is read out
  Sign,      // a stream that had to come so far
  Room,      // in a queue of messages: the receiver had not taken the one before
  Wire,      // a message before it
};

struct Cause {
  TraceNode node;  // that ended, or arrived, last
  Wait wait = Wait::Nothing;
  Seconds at;  // when it was there
};

struct Causes {
  std::vector<Cause> spans, transfers, collectives;  // in the order of the log
};

/// Returns the causes in `log`; nothing if it is not the whole run of `program`, or the program
/// replays old inputs (see Channel::replay).
std::optional<Causes> find_causes(const Program& program, const TraceLog& log);

}  // namespace interlock
