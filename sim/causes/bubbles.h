// Bubbles: what each device waits for while it is idle.
// SPDX-License-Identifier: Apache-2.0
//
// Example: one step of 11 ms with two devices, forwards of 1 ms, backwards of 2 ms, messages of 1
// ms and two micro-batches under 1F1B. Device 0 has Gradient 3 ms and Message 2 ms. Device 1 has
// Fill 1 ms and Message 1 ms before its first op, and Drain 3 ms after its last. Both work for 6
// ms.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/causes/causes.h"
#include "sim/causes/idle_times.h"

namespace interlock {

enum class BubbleCause : std::uint8_t {
  Fill,        // until the first op of a flushed step reaches it
  Drain,       // from its last op of a flushed step until the next step begins
  Activation,  // until a stage before it has made the one that it reads
  Gradient,    // until a stage behind it has
  Peers,       // until others join a collective, or come as far as it is
  Room,        // until a queue of messages has room
  Message,     // what it waits for is on its way: exposed communication
  Unknown,     // not in the trace: overheads of measured runs
  Exchange,    // an exchange inside an op is on its way: exposed communication, too
};
inline constexpr int kBubbleCauses = 9;
/// Returns "fill", "drain", ...: the keys of the result.
const char* name_of(BubbleCause cause);

/// Seconds by cause. With the work of the device they fill the window.
using Bubbles = std::array<double, kBubbleCauses>;

/// Divides the idle time of each rank in `window`. `causes` are those of `log`. What the trace
/// calls exposed is put down to messages, the rest of an idle stretch to what was waited for last.
/// Steps are flushed if the order of work repeats with steps, not sooner, and, but for updates,
/// nothing of earlier steps starts once a step of the window, or the next, has begun anywhere.
/// REQUIRES: spans of a rank are in order of start.
std::vector<Bubbles> find_bubbles(const Program& program, const TraceLog& log, const Causes& causes,
                                  const TimeWindow& window);

}  // namespace interlock
