// Idle times of devices: circles and windows, worked by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/idle_times.h"

#include <doctest/doctest.h>

namespace interlock::idle_times_test {
namespace {

/// A program of one rank whose steps have one micro-batch.
Program one_rank(int steps) {
  Program program;
  program.steps = steps;
  program.ranks.resize(1);
  program.ops = {{.duration = Seconds(2)}};
  return program;
}

Span op_at(double start, double end, int step, double exposed = 0) {
  return {.start = Seconds(start),
          .end = Seconds(end),
          .exposed = Seconds(exposed),
          .micro_batch = step};
}

struct Sums {
  double idle = 0, exposed = 0;
};

/// Returns the sums over all stretches that `spans` leave in `window`.
Sums sums_of(const Program& program, const TimeWindow& window, const std::vector<Span>& spans) {
  IdleTimes times(program, window);
  Sums sums;
  const auto add = [&](const IdleStretch& idle) {
    sums.idle += times.length(idle);
    sums.exposed += times.exposed(idle);
  };
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (const auto idle = times.add(spans[i], static_cast<std::int64_t>(i))) add(*idle);
  }
  for (const IdleStretch& idle : times.finish()) add(idle);
  return sums;
}

}  // namespace

TEST_CASE("a device that is ahead idles as long as its steps leave, though it ends early") {
  // The window is 20 s to 30 s: two steps of 5 s. This device does them at 17 s and 22 s, and has
  // nothing left to do from 24 s on.
  const Program program = one_rank(4);
  const std::vector<Span> spans = {op_at(0, 2, 0), op_at(9, 11, 1), op_at(17, 19, 2),
                                   op_at(22, 24, 3)};
  const TimeWindow steps = {Seconds(20), Seconds(30), 2, 2};
  INFO("10 s less two ops of 2 s");
  CHECK(sums_of(program, steps, spans).idle == doctest::Approx(6));
  const TimeWindow clock = {Seconds(20), Seconds(30)};
  INFO("by the clock: 20 to 22 s, and 24 to 30 s");
  CHECK(sums_of(program, clock, spans).idle == doctest::Approx(8));
}

TEST_CASE("around a circle, ops of two steps take turns") {
  // Each step has an op of 4 s, and one of 3 s that begins 15 s after it, in the next step.
  const Program program = one_rank(7);
  std::vector<Span> spans;
  for (int step = 0; step < 7; ++step) {
    spans.push_back(op_at(10 * step, 10 * step + 4, step));
    if (step > 0) spans.push_back(op_at(10 * step + 5, 10 * step + 8, step - 1));
  }
  for (const int count : {1, 2, 3}) {
    INFO(count << " steps of 10 s less 7 s of work");
    const TimeWindow window = {Seconds(20), Seconds(20 + 10 * count), 2, count};
    CHECK(sums_of(program, window, spans).idle == doctest::Approx(3 * count));
  }
}

TEST_CASE("around a circle, what comes before an op may have been run several turns later") {
  // Each step has an op of 4 s, and one of 3 s that begins 25 s after it. In the first turn after
  // the window the op of a step before the window stands where the last of the window will be.
  const Program program = one_rank(9);
  std::vector<Span> spans;
  for (int step = 0; step < 9; ++step) {
    spans.push_back(op_at(10 * step, 10 * step + 4, step));
    if (step > 1) spans.push_back(op_at(10 * step + 5, 10 * step + 8, step - 2));
  }
  for (const int count : {1, 2}) {
    INFO(count << " steps of 10 s less 7 s of work");
    const TimeWindow window = {Seconds(40), Seconds(40 + 10 * count), 4, count};
    CHECK(sums_of(program, window, spans).idle == doctest::Approx(3 * count));
  }
}

TEST_CASE("around a circle, ops that take no time leave no gaps") {
  // Steps of 4 s without a pause: ops of 3 s and 1 s, and two of no time: one after both, the other
  // between those of the next step.
  const Program program = one_rank(4);
  std::vector<Span> spans;
  for (int step = 0; step < 4; ++step) {
    spans.push_back(op_at(4 * step, 4 * step + 3, step));
    if (step > 0) spans.push_back(op_at(4 * step + 3, 4 * step + 3, step - 1));
    spans.push_back(op_at(4 * step + 3, 4 * step + 4, step));
    spans.push_back(op_at(4 * step + 4, 4 * step + 4, step));
  }
  CHECK(sums_of(program, {Seconds(4), Seconds(8), 1, 1}, spans).idle == doctest::Approx(0));
  CHECK(sums_of(program, {Seconds(4), Seconds(12), 1, 2}, spans).idle == doctest::Approx(0));
}

TEST_CASE("a pause before an op of no time at the end of a turn counts once") {
  // Steps of 5 s: 3 s of work, 2 s of waiting, an update of no time.
  const Program program = one_rank(4);
  std::vector<Span> spans;
  for (int step = 0; step < 4; ++step) {
    spans.push_back(op_at(5 * step, 5 * step + 3, step));
    spans.push_back(op_at(5 * step + 5, 5 * step + 5, step));
  }
  CHECK(sums_of(program, {Seconds(5), Seconds(15), 1, 2}, spans).idle == doctest::Approx(4));
}

TEST_CASE("what an op of no time waited for at the end of a turn stays its own") {
  // Each step has an op of 4 s, a wait of 6 s for a collective, and an update that takes no time.
  const Program program = one_rank(3);
  std::vector<Span> spans;
  for (int step = 0; step < 3; ++step) {
    spans.push_back(op_at(10 * step, 10 * step + 4, step));
    spans.push_back(op_at(10 * step + 10, 10 * step + 10, step, 6));
  }
  const Sums sums = sums_of(program, {Seconds(0), Seconds(30), 0, 3}, spans);
  INFO("three steps, each with 6 s that are idle and exposed");
  CHECK(sums.idle == doctest::Approx(18));
  CHECK(sums.exposed == doctest::Approx(18));
}

TEST_CASE("the exposed part of a wait is its last, and no longer than the wait") {
  const Program program = one_rank(3);
  const std::vector<Span> spans = {op_at(0, 2, 0), op_at(10, 12, 1, 5), op_at(20, 22, 2, 5)};
  INFO("by the clock, from 8 s to 16 s: 8 to 10 s of the first wait, 12 to 16 s of the second");
  const Sums clock = sums_of(program, {Seconds(8), Seconds(16)}, spans);
  CHECK(clock.idle == doctest::Approx(6));
  CHECK(clock.exposed == doctest::Approx(2 + 1));
  INFO("one step of 6 s: 4 s of idle time, though the message was on its way for 5 s");
  const Sums circle = sums_of(program, {Seconds(12), Seconds(18), 1, 1}, spans);
  CHECK(circle.idle == doctest::Approx(4));
  CHECK(circle.exposed == doctest::Approx(4));
}

TEST_CASE("a device without an op in the window idles all of it") {
  Program program = one_rank(2);
  program.ranks.resize(2);
  const std::vector<Span> spans = {op_at(0, 5, 0), op_at(5, 10, 1)};
  CHECK(sums_of(program, {Seconds(5), Seconds(10), 1, 1}, spans).idle == doctest::Approx(5));
  CHECK(sums_of(program, {Seconds(5), Seconds(10)}, spans).idle == doctest::Approx(5));
}

TEST_CASE("an op that was measured shorter than its exchanges waits as long as it takes") {
  const OpInfo op = {.duration = Seconds(5), .communication = Seconds(3)};
  CHECK(waiting_inside(op, op_at(0, 5, 0)) == Seconds(3));
  CHECK(waiting_inside(op, op_at(0, 2, 0)) == Seconds(2));
}

}  // namespace interlock::idle_times_test
