// Measuring: find the steady state, then read the metrics of a window of it.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: run a few more steps than wanted and look for a repeat; while there is none, run more,
// up to a bound. Then run exactly fill + measured (+ drain) steps and collect. A short run keeps
// its log and is collected from it; a long one is run twice, first for the ends of its steps.
#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>

#include "base/error.h"
#include "sim/measure/collect.h"
#include "sim/measure/metrics.h"
#include "sim/measure/steady.h"

namespace interlock {

namespace {

constexpr std::int64_t kMostTasksLogged = 2'000'000;
constexpr double kAnyTicks = 1e18;  // a second, at most
constexpr std::int64_t kMostTasksInReport = 5'000'000;
constexpr std::int64_t kMostTasksSearched = 40'000'000;

/// One run of a program, its step log, and its trace where asked for.
struct LoggedRun {
  Program program;
  StepLog steps;
  TraceLog log;
  bool logged = false;
  RunSummary summary;

  LoggedRun(Program made, const MeasureInputs& inputs) : program(std::move(made)), steps(program) {
    logged = count_tasks(program) <= kMostTasksLogged;
    TraceSink step_sink{.span = [this](const Span& span) { steps.add(span); }};
    const TraceSink log_all = log_sink(log);
    const TraceSink sink = logged ? tee(step_sink, log_all) : step_sink;
    summary = run_program(program, inputs.engine, sink);
  }
  LoggedRun(const LoggedRun&) = delete;  // its sinks point into it
  LoggedRun& operator=(const LoggedRun&) = delete;
};

using RunPointer = std::unique_ptr<LoggedRun>;

/// The window of a run that shows no repeat: its last steps before the first ranks run dry.
Window last_steps(const LoggedRun& run, int wanted) {
  const int dry = std::max(run.steps.overlap() + 1, drain_steps(run.program, run.steps));
  const int usable = std::max(1, run.steps.steps() - dry);
  const int steps = std::min(wanted, usable);
  return {.first_step = usable - steps, .steps = steps, .steady = false};
}

/// A run that holds a window of steady state as closely as can be, and the window.
std::pair<RunPointer, Window> find_steady_run(const ProgramOfSteps& lower,
                                              const MeasureInputs& inputs) {
  const int wanted = inputs.steps;
  double ticks_per_second = kAnyTicks;
  for (int extra = 4;; extra *= 4) {
    auto run = std::make_unique<LoggedRun>(lower(wanted + extra, ticks_per_second), inputs);
    ticks_per_second = run->program.ticks_per_second;
    const auto window = find_window(run->program, run->steps, wanted);
    if (window) {
      const int exact = window->first_step + window->steps + drain_steps(run->program, run->steps);
      if (exact == run->program.steps) return {std::move(run), *window};
      run = std::make_unique<LoggedRun>(lower(exact, ticks_per_second), inputs);
      return {std::move(run), *window};
    }
    const std::int64_t next = run->summary.tasks * 4;
    const std::int64_t patience =
        64 + std::int64_t{8} * (run->program.stages + run->program.pattern);
    if (extra > patience || next > kMostTasksSearched) {
      const Window unsteady = last_steps(*run, wanted);
      return {std::move(run), unsteady};
    }
  }
}

/// A sink for what a report shows of a long run: from its begin to the last of the first steps of
/// the window that make `kMostTasksLogged` tasks, at least one.
TraceSink excerpt_sink(const LoggedRun& run, const Window& window, TraceLog& log) {
  const std::int64_t tasks_a_step = run.summary.tasks / run.program.steps;
  const std::int64_t limit = std::max<std::int64_t>(1, kMostTasksLogged / (tasks_a_step + 1));
  const int last =
      window.first_step + static_cast<int>(std::min<std::int64_t>(limit, window.steps));
  const std::int64_t first_batch = std::int64_t{window.first_step} * run.program.micro_batches;
  const std::int64_t end_batch = std::int64_t{last} * run.program.micro_batches;
  const Seconds end = run.steps.end(last - 1);
  auto shown = [=](int micro_batch) {
    return first_batch <= micro_batch && micro_batch < end_batch;
  };
  return {[=, &log](const Span& span) {
            if (shown(span.micro_batch)) log.spans.push_back(span);
          },
          [=, &log](const Transfer& transfer) {
            if (shown(transfer.micro_batch)) log.transfers.push_back(transfer);
          },
          [=, &log](const MemoryChange& change) {
            if (change.time <= end) log.memory.push_back(change);
          }};
}

Metrics collect(LoggedRun& run, const Window& window, Seconds end, const MeasureInputs& inputs,
                bool keep_log) {
  Collector collector(run.program, window, run.steps.end(window.first_step - 1), end);
  const TraceSink sink{.span = [&](const Span& span) { collector.add(span); },
                       .transfer = [&](const Transfer& transfer) { collector.add(transfer); },
                       .memory = [&](const MemoryChange& change) { collector.add(change); }};
  if (run.logged) {
    // Changes of memory first: spans then only say how far each rank has come.
    for (const MemoryChange& change : run.log.memory) sink.memory(change);
    for (const Span& span : run.log.spans) sink.span(span);
    for (const Transfer& transfer : run.log.transfers) sink.transfer(transfer);
  } else if (keep_log) {
    const TraceSink excerpt = excerpt_sink(run, window, run.log);
    run_program(run.program, inputs.engine, tee(sink, excerpt));
  } else {
    run_program(run.program, inputs.engine, sink);
  }
  return collector.finish(inputs);
}

/// A picture of so many tasks would take gigabytes, and nobody could look at it.
void require_drawable(const Program& program) {
  const std::int64_t tasks = count_tasks(program) / program.steps;
  if (tasks <= kMostTasksInReport) return;
  throw Error("a step has " + std::to_string(tasks) +
              " tasks, too many to draw; expected at most " + std::to_string(kMostTasksInReport) +
              ", or no --report and no --svg");
}

}  // namespace

Measurement measure(const ProgramOfSteps& lower, const MeasureInputs& inputs, bool keep_log) {
  const auto began = std::chrono::steady_clock::now();
  if (keep_log) require_drawable(lower(1, kAnyTicks));
  RunPointer run;
  Window window;
  if (inputs.steps == 1) {
    run = std::make_unique<LoggedRun>(lower(1, kAnyTicks), inputs);
  } else {
    std::tie(run, window) = find_steady_run(lower, inputs);
  }
  const Seconds end = inputs.steps == 1 ? run->summary.makespan
                                        : run->steps.end(window.first_step + window.steps - 1);
  Measurement result{.metrics = collect(*run, window, end, inputs, keep_log)};
  Metrics& metrics = result.metrics;
  metrics.engine = run->summary.engine;
  metrics.tasks = run->summary.tasks;
  metrics.makespan = run->summary.makespan;
  metrics.wall_time =
      Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  result.program = std::move(run->program);
  if (keep_log) result.log = std::move(run->log);
  return result;
}

}  // namespace interlock
