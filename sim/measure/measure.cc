// Measuring: find the steady state, then read the metrics of a window of it.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: look for a repeat in three steps, then in five. If they show one, its window is known,
// and exactly fill + measured (+ drain) steps are run and collected. Else run a few more steps than
// wanted; while there is no repeat, more, up to a bound; then those of the window likewise. A short
// run keeps its log and is collected from it; a long one is run twice, first for the ends of its
// steps.
#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "sim/measure/collect.h"
#include "sim/measure/explained.h"
#include "sim/measure/metrics.h"
#include "sim/measure/periods.h"
#include "sim/measure/self_check.h"
#include "sim/measure/steady.h"

namespace interlock {

namespace {

constexpr std::int64_t kMostTasksLogged = 2'000'000;  // for a report
constexpr int kStepsMore = 4;                         // than wanted, to look for a repeat in
constexpr int kStepsAhead = 5;                        // that show most repeats
constexpr int kStepsAlike =
    3;  // that show the repeat of a run whose steps are alike from the first
constexpr std::int64_t kMostTasksInReport = 5'000'000;
constexpr std::int64_t kMostTasksSearched = 40'000'000;
constexpr std::int64_t kMostTasksSharing = 10'000'000;  // likewise, where links are shared
constexpr std::int64_t kLeastTasksSkipped = 500'000;    // shorter runs are simulated whole
constexpr int kLeastSaving = 6;  // times that the search for a rhythm must be shorter than the run

/// One run of a program, its step log, and its trace where asked for.
struct LoggedRun {
  Program program;
  StepLog steps;
  std::optional<BatchLog> batches;  // where whole periods may be left out
  TraceLog log;
  bool logged = false;
  RunSummary summary;

  LoggedRun(Program made, const MeasureInputs& inputs, bool keep_log)
      : program(std::move(made)), steps(program) {
    logged = count_tasks(program) <= (keep_log ? kMostTasksLogged : kMostTasksExplained);
    if (inputs.long_step) batches.emplace(program);
    TraceSink step_sink{.span = [this](const Span& span) {
      steps.add(span);
      if (batches) batches->add(span);
    }};
    if (batches) {
      step_sink.transfer = [this](const Transfer& transfer) { batches->add(transfer); };
      step_sink.collective = [this](const CollectiveSpan& span) { batches->add(span); };
    }
    const TraceSink log_all = log_sink(log);
    const TraceSink sink = logged ? tee(step_sink, log_all) : step_sink;
    summary = run_program(program, inputs.engine, sink);
  }
  LoggedRun(const LoggedRun&) = delete;  // its sinks point into it
  LoggedRun& operator=(const LoggedRun&) = delete;
};

using RunPointer = std::unique_ptr<LoggedRun>;

/// Returns how many steps to run beyond those wanted before a repeat is given up. Ranks that never
/// meet have no common rhythm, and each repeats its own from its second step on.
std::int64_t patience_for(const Program& program) {
  const auto crosses = [](const Channel& channel) { return channel.from_rank != channel.to_rank; };
  const auto joins = [](const Communicator& group) { return group.ranks.size() > 1; };
  const bool meet = program.ranks.size() == 1 ||
                    std::any_of(program.channels.begin(), program.channels.end(), crosses) ||
                    std::any_of(program.communicators.begin(), program.communicators.end(), joins);
  return meet ? 64 + std::int64_t{8} * (program.stages + program.pattern) : 32;
}

/// Returns the times of `window`, whose steps repeat, from `begin` to `end`.
TimeWindow steady_times(const StepWindow& window, Seconds begin, Seconds end) {
  TimeWindow times = {begin, end};
  times.first_step = window.first_step;
  times.steps = window.steps;
  return times;
}

/// A window of steady state, and its times.
struct SteadyWindow {
  StepWindow window;
  TimeWindow times;
};

/// Searches few steps of `program`, which is lowered for more, for a repeat, and makes it one of
/// the steps that hold the window that is wanted. Returns nothing, and leaves `program` as it was,
/// if it is no loop over steps, if so few show no repeat, or if times are not whole ticks: then a
/// step may differ from the one before it by a tick now and then. Steps that are alike from the
/// first, and never meet, have the figures of one of them, but for rounding: it is the window if
/// the fewest steps are asked for.
std::optional<SteadyWindow> look_ahead(Program& program, const MeasureInputs& inputs) {
  const int given = program.steps;
  CHECK(given >= kStepsAhead, "a program of more steps than are looked at");
  const bool whole_ticks = !shares_links(program) && inputs.engine != EngineKind::SimGrid;
  if (!whole_ticks || !loops_over_steps(program)) return std::nullopt;
  std::optional<StepWindow> cycle;
  std::optional<StepLog> log;
  for (const int ahead : {kStepsAlike, kStepsAhead}) {
    set_steps(program, ahead);
    log.emplace(program);
    run_program(program, inputs.engine, {.span = [&](const Span& span) { log->add(span); }});
    cycle = find_window(program, *log, 1);
    if (cycle) break;
  }
  if (!cycle) {
    set_steps(program, given);
    return std::nullopt;
  }
  const StepLog& steps = *log;
  const bool one_tells_all = inputs.fewest_steps && cycle->first_step == 0 && steps.overlap() == 0;
  const int first = cycle->first_step;
  const int cycles = one_tells_all ? 1 : std::max(1, inputs.steps / cycle->steps);
  const StepWindow window = {.first_step = first, .steps = cycles * cycle->steps};
  const double begin = in_ticks(program, steps.end(first - 1));
  const double length = in_ticks(program, steps.end(first + cycle->steps - 1)) - begin;
  set_steps(program, first + window.steps + drain_steps(program, steps));
  return SteadyWindow{window, steady_times(window, in_seconds(program, begin),
                                           in_seconds(program, begin + cycles * length))};
}

/// Returns a run that holds a window of steady state as closely as can be, and the window.
/// `program`: of kStepsMore steps more than wanted.
std::pair<RunPointer, StepWindow> find_steady_run(const ProgramOfSteps& lower, Program program,
                                                  const MeasureInputs& inputs, bool keep_log) {
  const int wanted = inputs.steps;
  double ticks_per_second = program.ticks_per_second;
  for (int extra = kStepsMore;; extra *= 4) {
    if (extra > kStepsMore) program = lower(wanted + extra, ticks_per_second);
    auto run = std::make_unique<LoggedRun>(std::move(program), inputs, keep_log);
    ticks_per_second = run->program.ticks_per_second;
    const auto window = find_window(run->program, run->steps, wanted);
    if (window) {
      const int exact = window->first_step + window->steps + drain_steps(run->program, run->steps);
      if (exact == run->program.steps) return {std::move(run), *window};
      run = std::make_unique<LoggedRun>(lower(exact, ticks_per_second), inputs, keep_log);
      return {std::move(run), *window};
    }
    const std::int64_t next = run->summary.tasks * 4;
    const std::int64_t most = shares_links(run->program) ? kMostTasksSharing : kMostTasksSearched;
    if (extra > patience_for(run->program) || next > most) {
      const StepWindow unsteady = find_unsteady_window(run->program, run->steps, wanted);
      return {std::move(run), unsteady};
    }
  }
}

/// Returns a sink for the part of a long run that a report shows: from its start to the last of the
/// first steps of the window that make `kMostTasksLogged` tasks, at least one.
TraceSink excerpt_sink(const LoggedRun& run, const StepWindow& window, TraceLog& log) {
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
          },
          [=, &log](const CollectiveSpan& span) {
            if (shown(span.micro_batch)) log.collectives.push_back(span);
          }};
}

Metrics collect(LoggedRun& run, const StepWindow& window, const TimeWindow& times,
                const MeasureInputs& inputs, bool keep_log) {
  Collector collector(run.program, window, times);
  TraceAudit audit(run.program);
  const auto to_both = [&](const auto& entry) {
    collector.add(entry);
    audit.add(entry);
  };
  const TraceSink sink{.span = to_both,
                       .transfer = to_both,
                       .memory = to_both,
                       .collective = [&](const CollectiveSpan& span) { collector.add(span); }};
  if (run.logged) {
    // Changes of memory first: spans then only say how far each rank has come.
    for (const MemoryChange& change : run.log.memory) sink.memory(change);
    for (const Span& span : run.log.spans) sink.span(span);
    for (const Transfer& transfer : run.log.transfers) sink.transfer(transfer);
    for (const CollectiveSpan& span : run.log.collectives) sink.collective(span);
  } else if (keep_log) {
    const TraceSink excerpt = excerpt_sink(run, window, run.log);
    run_program(run.program, inputs.engine, tee(sink, excerpt));
  } else {
    run_program(run.program, inputs.engine, sink);
  }
  const std::string fault = audit.fault();
  CHECK(fault.empty(), "a trace that does what its program says: " + fault);
  return collector.finish(inputs);
}

/// Refuses a picture of millions of tasks: it would take gigabytes, and could not be read.
void require_drawable(const Program& program) {
  const std::int64_t tasks = count_tasks(program) / program.steps;
  if (tasks <= kMostTasksInReport) return;
  throw Error("a step has " + std::to_string(tasks) +
              " tasks, too many to draw; expected at most " + std::to_string(kMostTasksInReport) +
              ": fewer micro-batches, or no picture");
}

/// Returns the times of `window`. A run of one step is measured whole.
TimeWindow times_of(const LoggedRun& run, const StepWindow& window, bool repeats) {
  if (run.program.steps == 1) return {Seconds(0), run.summary.makespan};
  const int last = window.first_step + window.steps - 1;
  const Seconds begin = run.steps.end(window.first_step - 1), end = run.steps.end(last);
  return repeats ? steady_times(window, begin, end) : TimeWindow{begin, end};
}

/// Returns the measurement of a run without a log; the caller adds its program.
Measurement finish(Collector& collector, const TraceAudit& audit, const RunSummary& summary,
                   const MeasureInputs& inputs) {
  const std::string fault = audit.fault();
  CHECK(fault.empty(), "a trace that does what its program says: " + fault);
  Measurement result{.metrics = collector.finish(inputs)};
  result.metrics.engine = summary.engine;
  result.metrics.tasks = summary.tasks;
  result.metrics.makespan = summary.makespan;
  return result;
}

/// Measures `window`, whose times are `times`. The run is used up.
Measurement measurement_of(LoggedRun& run, const StepWindow& window, const TimeWindow& times,
                           const MeasureInputs& inputs, bool keep_log) {
  Measurement result{.metrics = collect(run, window, times, inputs, keep_log)};
  result.metrics.engine = run.summary.engine;
  result.metrics.tasks = run.summary.tasks;
  result.metrics.makespan = run.summary.makespan;
  if (inputs.explain && run.summary.tasks <= kMostTasksExplained) {
    result.metrics.explanation = explain(run.program, run.log, times, window.steps);
  }
  result.program = std::move(run.program);
  if (keep_log) result.log = std::move(run.log);
  return result;
}

/// A measurement, and the rhythm of its micro-batches, if that was asked for and found.
struct RhythmicMeasurement {
  Measurement measurement;
  int rhythm = 0;
};

/// The window of a run of one step, which is measured whole.
constexpr SteadyWindow kWholeRun = {.window = {}, .times = {Seconds(0), Seconds(kInfinity)}};

/// Measures a run of `program` whose window is known beforehand, without a log.
RhythmicMeasurement measure_known(Program program, const SteadyWindow& steady,
                                  const MeasureInputs& inputs) {
  const auto& [window, times] = steady;
  Collector collector(program, window, times);
  TraceAudit audit(program);
  std::optional<BatchLog> batches;
  if (inputs.long_step) batches.emplace(program);
  const int end_batch = (window.first_step + window.steps) * program.micro_batches;
  Seconds end(0);
  const auto to_all = [&](const auto& entry) {
    collector.add(entry);
    audit.add(entry);
    if (batches) batches->add(entry);
  };
  const RunSummary summary = run_program(program, inputs.engine,
                                         {.span =
                                              [&](const Span& span) {
                                                to_all(span);
                                                const bool updates =
                                                    program.ops[span.op].kind == OpKind::U;
                                                if (updates && span.micro_batch < end_batch)
                                                  end = std::max(end, span.end);
                                              },
                                          .transfer = to_all,
                                          .memory =
                                              [&](const MemoryChange& change) {
                                                collector.add(change);
                                                audit.add(change);
                                              },
                                          .collective =
                                              [&](const CollectiveSpan& span) {
                                                collector.add(span);
                                                if (batches) batches->add(span);
                                              }});
  if (times.by_clock()) {
    collector.end_window(summary.makespan);
  } else {
    CHECK(end == times.end, "steps that repeat as they began to");
  }
  RhythmicMeasurement made = {.measurement = finish(collector, audit, summary, inputs)};
  if (batches) {
    made.rhythm = batches->rhythm(window.first_step, window.steps, inputs.long_step->period);
  }
  made.measurement.program = std::move(program);
  return made;
}

RhythmicMeasurement measure_run(const ProgramOfSteps& lower, const MeasureInputs& inputs,
                                bool keep_log) {
  const bool whole = inputs.steps == 1;
  Program program = lower(whole ? 1 : inputs.steps + kStepsMore, kAnyTicks);
  const auto steady = whole ? std::optional(kWholeRun) : look_ahead(program, inputs);
  const bool explains = inputs.explain && count_tasks(program) <= kMostTasksExplained;
  if (steady && !keep_log && !explains) {
    return measure_known(std::move(program), *steady, inputs);
  }
  RunPointer run;
  StepWindow window;
  if (steady) {
    window = steady->window;
    run = std::make_unique<LoggedRun>(std::move(program), inputs, keep_log);
  } else {
    std::tie(run, window) = find_steady_run(lower, std::move(program), inputs, keep_log);
  }
  int rhythm = 0;
  if (run->batches) {
    rhythm = run->batches->rhythm(window.first_step, window.steps, inputs.long_step->period);
  }
  const TimeWindow times = times_of(*run, window, window.steady);
  return {measurement_of(*run, window, times, inputs, keep_log), rhythm};
}

/// Measures a long step by two shorter ones, if it has a rhythm.
std::optional<Measurement> measure_periods(const ProgramOfSteps& lower,
                                           const MeasureInputs& inputs) {
  const LongStep& step = *inputs.long_step;
  const std::int64_t all = step.micro_batches, period = step.period;
  const auto few_of = [&](int stages) {
    return all % period + std::int64_t{6} * stages / period * period;
  };
  if (kLeastSaving * few_of(step.stages) >= all) return std::nullopt;
  const Program whole = lower(inputs.steps, kAnyTicks);
  if (count_tasks(whole) < kLeastTasksSkipped) return std::nullopt;
  const double ticks = whole.ticks_per_second;
  auto measure_short = [&](std::int64_t micro_batches) {
    const ProgramOfSteps shorter = step.lower(static_cast<int>(micro_batches));
    return measure_run(
        [&](int steps, double most) { return shorter(steps, std::min(most, ticks)); }, inputs,
        false);
  };
  for (std::int64_t few = few_of(whole.stages); kLeastSaving * few < all;
       few *= 2, few += (all - few) % period) {
    RhythmicMeasurement shorter = measure_short(few);
    if (!shorter.measurement.metrics.steady) break;  // nor would a longer step be
    const std::int64_t rhythm = shorter.rhythm;
    if (rhythm == 0) continue;
    const std::int64_t fewer = few + (all - few) % rhythm;
    if (fewer > few) shorter = measure_short(fewer);
    const RhythmicMeasurement longer = measure_short(fewer + rhythm);
    if (shorter.rhythm != rhythm || longer.rhythm != rhythm) continue;
    const auto metrics = add_periods(shorter.measurement.metrics, longer.measurement.metrics,
                                     (all - fewer) / rhythm - 1);
    if (metrics) return Measurement{*metrics, whole, {}};
  }
  return std::nullopt;
}

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point began) {
  return Seconds(std::chrono::duration<double>(Clock::now() - began).count());
}

/// Fills in rates and wall time; figures that do not add up end the program.
void complete(const MeasureInputs& inputs, Clock::time_point began, Metrics& metrics) {
  set_rates(inputs, metrics);
  metrics.wall_time = since(began);
  const std::string fault = sum_fault(metrics);
  CHECK(fault.empty(), "figures that add up: " + fault);
}

}  // namespace

void set_rates(const MeasureInputs& inputs, Metrics& metrics) {
  if (metrics.step_time <= Seconds(0)) return;
  const double step_time = metrics.step_time.value();
  if (inputs.samples_per_step) metrics.samples_per_s = *inputs.samples_per_step / step_time;
  if (inputs.tokens_per_step) metrics.tokens_per_s = *inputs.tokens_per_step / step_time;
}

Measurement measure(const ProgramOfSteps& lower, const MeasureInputs& inputs, bool keep_log) {
  const auto began = Clock::now();
  if (keep_log) require_drawable(lower(1, kAnyTicks));
  std::optional<Measurement> result;
  if (inputs.long_step && !keep_log) result = measure_periods(lower, inputs);
  if (!result) {
    MeasureInputs all = inputs;
    all.long_step.reset();
    result = measure_run(lower, all, keep_log).measurement;
  }
  complete(inputs, began, result->metrics);
  return *std::move(result);
}

Measurement measure_after(Program program, int fill, const MeasureInputs& inputs, bool keep_log) {
  const auto began = Clock::now();
  if (keep_log) require_drawable(program);
  MeasureInputs all = inputs;
  all.long_step.reset();
  LoggedRun run(std::move(program), all, keep_log);
  const StepWindow window{fill, inputs.steps};
  const TimeWindow times = times_of(run, window, false);
  const bool all_begun = run.steps.begun_before(times.end) == run.program.steps;
  Measurement result = measurement_of(run, window, times, all, keep_log);
  result.all_begun = all_begun;
  complete(all, began, result.metrics);
  return result;
}

std::vector<Seconds> step_times(const Program& program, const TraceLog& log) {
  StepLog steps(program);
  for (const Span& span : log.spans) steps.add(span);
  std::vector<Seconds> times;
  times.reserve(static_cast<std::size_t>(steps.steps()));
  for (int step = 0; step < steps.steps(); ++step) {
    times.push_back(steps.end(step) - steps.end(step - 1));
  }
  return times;
}

Measurement measure_trace(Program program, TraceLog log, int fill, const MeasureInputs& inputs) {
  CHECK(fill + inputs.steps <= program.steps, "steps that were run");
  StepLog steps(program);
  for (const Span& span : log.spans) steps.add(span);
  const TimeWindow times = {steps.end(fill - 1), steps.end(fill + inputs.steps - 1)};
  Collector collector(program, {.first_step = fill, .steps = inputs.steps}, times);
  // Changes of memory first: spans then only say how far each rank has come.
  for (const MemoryChange& change : log.memory) collector.add(change);
  for (const Span& span : log.spans) collector.add(span);
  for (const Transfer& transfer : log.transfers) collector.add(transfer);
  for (const CollectiveSpan& span : log.collectives) collector.add(span);
  Measurement result{.metrics = collector.finish(inputs)};
  for (const Span& span : log.spans) {
    result.metrics.makespan = std::max(result.metrics.makespan, span.end);
  }
  result.metrics.tasks = count_tasks(program);
  if (inputs.explain) result.metrics.explanation = explain(program, log, times, inputs.steps);
  set_rates(inputs, result.metrics);
  result.program = std::move(program);
  result.log = std::move(log);
  return result;
}

}  // namespace interlock
