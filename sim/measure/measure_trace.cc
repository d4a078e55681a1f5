// Measuring a trace that is there already: of an executor, or of an engine.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/measure/collect.h"
#include "sim/measure/metrics.h"
#include "sim/measure/steady.h"

namespace interlock {

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
