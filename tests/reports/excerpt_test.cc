// Excerpts: which part of a trace a picture shows.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/excerpt.h"

#include <doctest/doctest.h>

#include "tests/reports/support/handmade.h"

namespace interlock::excerpt_test {

// A step of the handmade pipeline holds devices * (2 * micro-batches + 1) spans.

TEST_CASE("a trace within the limit is shown whole") {
  const auto result = pipeline_run({.devices = 2, .micro_batches = 2, .steps = 3});
  const Excerpt excerpt = choose_excerpt(result.measurement, 40);
  CHECK(excerpt.whole);
  CHECK(excerpt.spans == 2 * 5 * 4);  // a step of fill and three measured ones
  CHECK(excerpt.end >= result.measurement.metrics.window_end);
}

TEST_CASE("a longer trace is cut to the first measured steps that fit") {
  const auto result = pipeline_run({.devices = 2, .micro_batches = 2, .steps = 3});
  const Excerpt excerpt = choose_excerpt(result.measurement, 2 * 5 * 2 + 3);
  CHECK_FALSE(excerpt.whole);
  CHECK(excerpt.spans == 2 * 5 * 2);
  CHECK(excerpt.begin == result.measurement.metrics.window_begin);
  CHECK(excerpt.caption == "measured steps 1 to 2 of 3");
}

TEST_CASE("a step that is too long by itself is cut at the span that is too much") {
  const auto result = pipeline_run({.devices = 2, .micro_batches = 8, .steps = 2});
  const Excerpt excerpt = choose_excerpt(result.measurement, 10);
  CHECK(excerpt.spans <= 10);
  CHECK(excerpt.spans >= 9);  // two devices may start at one instant
  CHECK(excerpt.caption == "the beginning of measured step 1");
}

TEST_CASE("a picture of few steps takes no more than it was asked for") {
  const auto result = pipeline_run({.devices = 2, .micro_batches = 2, .steps = 8});
  const Excerpt excerpt = choose_steps(result.measurement, 3, 1000);
  CHECK(excerpt.spans == 2 * 5 * 3);
  const Metrics& metrics = result.measurement.metrics;
  CHECK((excerpt.end - excerpt.begin) / metrics.step_time == doctest::Approx(3));
}

}  // namespace interlock::excerpt_test
