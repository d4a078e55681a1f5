// Excerpt: the part of a trace that a picture shows, and the sentence that says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "sim/measure/metrics.h"

namespace interlock {

/// A stretch of time. Spans belong to it if they start in [begin, end). Example: eight measured
/// steps of 11 ms from 0 s on, with eight ops each, of which 30 may be shown: begin 0, end 33 ms,
/// spans 24, caption "measured steps 1 to 3 of 8".
struct Excerpt {
  Seconds begin, end;
  std::int64_t spans = 0;
  bool whole = true;  // the whole trace
  std::string caption;
};

/// Returns the whole trace if it has at most `most_spans`; else the first steps of the measured
/// window, as many as stay within `most_spans`; else the first `most_spans` or so of that window.
Excerpt choose_excerpt(const Measurement& measurement, std::int64_t most_spans);

/// Returns at most `most_steps` whole steps from the start of the measured window, fewer (or part
/// of one) if they hold more than `most_spans`.
Excerpt choose_steps(const Measurement& measurement, int most_steps, std::int64_t most_spans);

}  // namespace interlock
