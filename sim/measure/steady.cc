// Signatures of steps and the search for a repeat.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/steady.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace interlock {

namespace {

constexpr int kMostCycles = 64;  // longest cycle looked for, in units of the program's own pattern

/// Steps after which the written order of work repeats.
int pattern_steps(const Program& program) {
  int micro_batches = program.micro_batches;
  for (const Stream& stream : program.streams) {
    if (stream.repeats > 1) continue;  // a stream that is one step, repeated
    for (int s = stream.first; s < stream.first + stream.count; ++s) {
      const Segment& segment = program.segments[s];
      if (segment.repeats > 1) micro_batches = std::lcm(micro_batches, segment.stride);
    }
  }
  return micro_batches / program.micro_batches;
}

/// Steps back that anything in a step can depend on: the depth of the queues, in patterns of work.
int reach_steps(const Program& program) {
  int depth = 0;
  for (const Channel& channel : program.channels) depth = std::max(depth, channel.depth);
  return 1 + (depth + 1) * pattern_steps(program);
}

}  // namespace

StepLog::StepLog(const Program& program) : program_(program), steps_(program.steps) {}

void StepLog::add(const Span& span) {
  const int index = span.micro_batch / program_.micro_batches;
  Step& step = steps_[index];
  const auto start = static_cast<std::uint64_t>(std::llround(span.start.value() / program_.tick));
  const std::uint64_t weight =
      mix64((static_cast<std::uint64_t>(span.op) << 32) +
            static_cast<std::uint64_t>(span.micro_batch % program_.micro_batches)) |
      1;
  step.weighted_starts += weight * start;
  step.weights += weight;
  if (program_.ops[span.op].kind == OpKind::U) step.end = std::max(step.end, span.end);
}

std::uint64_t StepLog::signature(int index) const {
  const Step& step = steps_[index];
  const auto end = static_cast<std::uint64_t>(std::llround(step.end.value() / program_.tick));
  return step.weighted_starts - step.weights * end;
}

int drain_steps(const Program& program) {
  return chooses_order(program) ? reach_steps(program) : 0;
}

std::optional<Window> find_window(const Program& program, const StepLog& log, int wanted) {
  const int usable = log.steps() - drain_steps(program);
  const int unit = pattern_steps(program);
  for (int cycle = unit; cycle <= kMostCycles * unit; cycle += unit) {
    int first = usable - cycle;  // the first step that equals the one a cycle later
    while (first > 0 && log.signature(first - 1) == log.signature(first - 1 + cycle)) --first;
    if (usable - cycle - first < reach_steps(program)) continue;
    // Ends of steps repeat from `first` on, so differences of ends do from the next step. The first
    // step of all has no end before it, unless it starts as every other one does.
    const Seconds once = log.end(cycle - 1);
    const bool no_fill = first == 0 && log.end(2 * cycle - 1) == 2 * once;
    const Window window{.first_step = no_fill ? 0 : first + 1,
                        .steps = cycle * std::max(1, wanted / cycle)};
    if (window.first_step + window.steps > usable) return std::nullopt;
    return window;
  }
  return std::nullopt;
}

}  // namespace interlock
