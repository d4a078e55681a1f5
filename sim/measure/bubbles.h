// Bubbles: what each device waits for while it is idle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/measure/causes.h"

namespace interlock {

enum class BubbleCause : std::uint8_t {
  Fill,        // until the first op of a flushed step reaches it
  Drain,       // from its last op of a flushed step until the next step begins
  Activation,  // until a stage before it is as far as to send one
  Gradient,    // until a stage behind it is
  Peers,       // until others join a collective, or come as far as it is
  Room,        // until a queue of messages has room
  Message,     // what it waits for is on its way: exposed communication, and no bubble
  Unknown,     // nothing that the trace knows: overheads of measured runs
};
inline constexpr int kBubbleCauses = 8;
/// "fill", "drain", ...: the keys of the result.
const char* name_of(BubbleCause cause);

/// Seconds by cause. With the ops of the device they fill the window.
using Bubbles = std::array<double, kBubbleCauses>;

/// Of each rank in [begin, end). `causes` are those of `log`. An idle stretch is put down to what
/// was waited for last. A step is flushed if the order of work repeats with steps, not sooner, and,
/// but for updates, nothing of earlier steps starts once it has begun anywhere.
/// REQUIRES: spans of a rank are in order of start.
std::vector<Bubbles> find_bubbles(const Program& program, const TraceLog& log, const Causes& causes,
                                  Seconds begin, Seconds end);

}  // namespace interlock
