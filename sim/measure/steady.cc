// Signatures of steps and the search for a repeat.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/steady.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "sim/program/ticks.h"

namespace interlock {

namespace {

constexpr int kMostCycles = 64;  // longest cycle looked for, in units of the program's own pattern
constexpr int kMostCompared = 16;  // steps before a window of a run that shows no repeat
constexpr double kAlike = 1e-6;  // of a step: differences of lengths that are no worse than others

/// Steps after which the written order of work repeats.
std::int64_t pattern_steps(const Program& program) {
  return std::lcm<std::int64_t>(program.pattern, program.micro_batches) / program.micro_batches;
}

/// Steps back that anything in a step can depend on: as many as are under way at once, and a whole
/// pattern of work, for what is handed over once in a pattern.
std::int64_t reach_steps(const Program& program, const StepLog& log) {
  return std::max<std::int64_t>(log.overlap() + 2, pattern_steps(program) + 1);
}

Seconds length_of(const StepLog& log, int step) { return log.end(step) - log.end(step - 1); }

/// Returns by how much the lengths of the `compared` steps before `step` differ most from those
/// before `other`.
Seconds difference_before(const StepLog& log, int step, int other, int compared) {
  Seconds most;
  for (int back = 1; back <= compared; ++back) {
    const Seconds apart = length_of(log, step - back) - length_of(log, other - back);
    most = std::max({most, apart, -apart});
  }
  return most;
}

}  // namespace

StepLog::StepLog(const Program& program) : program_(program), steps_(program.steps) {}

void StepLog::add(const Span& span) {
  Step& step = steps_[span.micro_batch / program_.micro_batches];
  const auto start = static_cast<std::uint64_t>(in_ticks(program_, span.start));
  const std::uint64_t weight =
      mix64((static_cast<std::uint64_t>(span.op) << 32) +
            static_cast<std::uint64_t>(span.micro_batch % program_.micro_batches)) |
      1;
  step.weighted_starts += weight * start;
  step.weighted_squares += weight * start * start;
  step.weights += weight;
  step.begin = step.begin < Seconds(0) ? span.start : std::min(step.begin, span.start);
  if (program_.ops[span.op].kind == OpKind::U) step.end = std::max(step.end, span.end);
}

std::uint64_t StepLog::signature(int index) const {
  const Step& step = steps_[index];
  const auto end = static_cast<std::uint64_t>(in_ticks(program_, step.end));
  const auto length = end - static_cast<std::uint64_t>(in_ticks(program_, this->end(index - 1)));
  // Ops that stand several times in a step, as pieces of a forward do, may shift against each other
  // so that their sum stays: squares tell.
  const std::uint64_t sum = step.weighted_starts - step.weights * end;
  const std::uint64_t squares =
      step.weighted_squares - 2 * end * step.weighted_starts + end * end * step.weights;
  return mix64(sum + mix64(squares)) + length;
}

int StepLog::begun_before(Seconds time) const {
  return static_cast<int>(std::count_if(steps_.begin(), steps_.end(),
                                        [&](const Step& step) { return step.begin < time; }));
}

int StepLog::overlap() const {
  int most = 0;
  for (int step = 0, ahead = 0; step < steps(); ++step) {
    ahead = std::max(ahead, step);
    while (ahead + 1 < steps() && steps_[ahead + 1].begin < steps_[step].end) ++ahead;
    most = std::max(most, ahead - step);
  }
  return most;
}

bool loops_over_steps(const Program& program) {
  return std::ranges::all_of(program.streams, [&](const Stream& stream) {
    return stream.lead == 0 && stream.tail == 0 && stream.repeats == program.steps &&
           (stream.stride == program.micro_batches || program.steps == 1);
  });
}

void set_steps(Program& program, int steps) {
  CHECK(loops_over_steps(program), "streams that are loops over steps");
  program.steps = steps;
  for (Stream& stream : program.streams) stream.repeats = steps;
}

int drain_steps(const Program& program, const StepLog& log) {
  const bool rivals = chooses_order(program) || shares_links(program);
  const int dry = (program.ahead + program.micro_batches - 1) / program.micro_batches;
  return rivals ? std::max(dry, static_cast<int>(reach_steps(program, log))) : dry;
}

std::optional<StepWindow> find_window(const Program& program, const StepLog& log, int wanted) {
  const int usable = log.steps() - drain_steps(program, log);
  const std::int64_t unit = pattern_steps(program), reach = reach_steps(program, log);
  for (std::int64_t cycle = unit; cycle <= kMostCycles * unit; cycle += unit) {
    if (cycle + reach > usable) break;
    const int step = static_cast<int>(cycle);
    int first = usable - step;  // the first step that equals the one a cycle later
    while (first > 0 && log.signature(first - 1) == log.signature(first - 1 + step)) --first;
    if (usable - step - first < reach) continue;
    const StepWindow window{.first_step = first, .steps = step * std::max(1, wanted / step)};
    if (window.first_step + window.steps > usable) return std::nullopt;
    return window;
  }
  return std::nullopt;
}

StepWindow find_unsteady_window(const Program& program, const StepLog& log, int wanted) {
  const int dry = std::max(log.overlap() + 1, drain_steps(program, log));
  const int usable = std::max(1, log.steps() - dry);
  const int fewest = std::max({1, usable / 4, std::min(wanted, usable / 2)});
  const int last = usable - fewest, first = std::clamp(usable / 2, last - fewest, last);
  const int compared = std::min(kMostCompared, first);
  const auto difference = [&](int start) {
    return difference_before(log, start, usable, compared);
  };
  Seconds least = difference(last);
  for (int start = first; start < last; ++start) least = std::min(least, difference(start));
  const Seconds mean = (log.end(usable - 1) - log.end(last - 1)) / fewest;
  int start = compared > 0 ? first : last;
  while (start < last && difference(start) > least + mean * kAlike) ++start;
  return {.first_step = start, .steps = usable - start, .steady = false};
}

}  // namespace interlock
