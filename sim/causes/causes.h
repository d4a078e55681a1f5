// Causes: what each thing in a trace waited for last.
// SPDX-License-Identifier: Apache-2.0
//
// A trace says when; this says why. The streams of the program are walked once more beside a log of
// its run, whoever ran it, and of all that an op had to wait for the latest is kept: its device, a
// message, a collective, a sign of another stream, or room for a message. Going from cause to cause
// leads along the critical path to the begin of the run.
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

/// What an op or message stood for.
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
inline constexpr int kWaits = 8;

struct Cause {
  TraceNode node;  // that ended, or arrived, last
  Wait wait = Wait::Nothing;
  Seconds at;  // when it was there
};

struct Causes {
  std::vector<Cause> spans, transfers, collectives;  // in the order of the log
};

/// Nothing if `log` is not the whole run of `program`, or the program replays old inputs (see
/// Channel::replay).
std::optional<Causes> find_causes(const Program& program, const TraceLog& log);

}  // namespace interlock
