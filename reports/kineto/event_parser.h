// EventParser: trace events one at a time, out of a text that is read but never held.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {"ph": "X", "cat": "kernel", "name": "gemm", "tid": 7, "ts": 1.5, "dur": 2, "args":
// {"stream": 7, "correlation": 3}} is {phase "X", category "kernel", name "gemm", thread "7",
// stream "7", start 1500, duration 2000, correlation 3}.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/file.h"

namespace interlock {

/// The fields of one event that durations need; what is missing is empty, 0, or as it says.
struct ParsedEvent {
  std::string phase, category, name;
  std::string process, thread, device, stream;  // numbers or names, as text
  std::optional<std::int64_t> start, duration;  // nanoseconds, from decimal microseconds
  std::int64_t correlation = 0, external = 0, forward_thread = 0;
  std::int64_t sequence = -1;
  std::string type;                                 // of the elements of a message
  std::optional<double> elements_in, elements_out;  // of a message
  std::optional<double> bytes;                      // as our own traces say
};

/// Hands every element of "traceEvents" that is an object to `take`, and returns the rank that
/// "distributedInfo" names. Throws: Error naming `file` if it is cut off, malformed, or no trace.
std::optional<int> parse_events(const TextPieces& text, const std::string& file,
                                const std::function<void(const ParsedEvent&)>& take);

}  // namespace interlock
