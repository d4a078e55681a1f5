// Excerpt: the part of a trace that a picture shows, and the sentence that says so.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/excerpt.h"

#include <algorithm>
#include <vector>

namespace interlock {
namespace {

/// Sorted starts of the spans that start at or after `begin` and before `end`.
std::vector<Seconds> starts_between(const TraceLog& log, Seconds begin, Seconds end) {
  std::vector<Seconds> starts;
  for (const Span& span : log.spans) {
    if (span.start >= begin && span.start < end) starts.push_back(span.start);
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

std::string caption_of_steps(int shown, int measured) {
  if (measured == 1) return "the whole run of 1 step";
  const std::string last = std::to_string(shown);
  const std::string steps = shown == 1 ? "step 1" : "steps 1 to " + last;
  return "measured " + steps + " of " + std::to_string(measured);
}

}  // namespace

Excerpt choose_excerpt(const Measurement& measurement, std::int64_t most_spans) {
  const TraceLog& log = measurement.log;
  if (static_cast<std::int64_t>(log.spans.size()) > most_spans) {
    return choose_steps(measurement, measurement.metrics.measured_steps, most_spans);
  }
  Excerpt all{.spans = static_cast<std::int64_t>(log.spans.size()), .caption = "the whole run"};
  for (const Span& span : log.spans) all.end = std::max(all.end, span.end);
  for (const Transfer& transfer : log.transfers) all.end = std::max(all.end, transfer.arrival);
  return all;
}

Excerpt choose_steps(const Measurement& measurement, int most_steps, std::int64_t most_spans) {
  const Metrics& metrics = measurement.metrics;
  const Seconds step = (metrics.window_end - metrics.window_begin) / metrics.measured_steps;
  // A billionth of a step less, so that rounding does not let in what starts with the next step.
  const auto end_of = [&](int steps) { return metrics.window_begin + step * (steps - 1e-9); };
  int steps = std::min(most_steps, metrics.measured_steps);
  const auto starts = starts_between(measurement.log, metrics.window_begin, end_of(steps));
  const auto count_before = [&](Seconds end) {
    return std::lower_bound(starts.begin(), starts.end(), end) - starts.begin();
  };
  while (steps > 1 && count_before(end_of(steps)) > most_spans) --steps;

  Excerpt excerpt{.begin = metrics.window_begin, .end = end_of(steps), .whole = false};
  excerpt.caption = caption_of_steps(steps, metrics.measured_steps);
  if (count_before(excerpt.end) > most_spans) {
    excerpt.end = starts[static_cast<std::size_t>(most_spans)];
    excerpt.caption = "the beginning of measured step 1";
  }
  excerpt.spans = count_before(excerpt.end);
  return excerpt;
}

}  // namespace interlock
