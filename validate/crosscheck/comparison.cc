// Takes a run apart: what its ops took, alone and together, and what the engine makes of that.
// SPDX-License-Identifier: Apache-2.0
#include "validate/crosscheck/comparison.h"

#include <map>
#include <memory>

namespace interlock {

namespace {

double time_of(const OpSample& sample, OpClock clock) {
  return (clock == OpClock::Wall ? sample.wall : sample.cpu).value();
}

using OpTimes = std::map<int, std::vector<double>>;  // by op

/// Collects the times of each op, over the micro-batches from `first` on.
OpTimes times_by_op(const std::vector<OpSample>& samples, OpClock clock, int first) {
  OpTimes times;
  for (const OpSample& sample : samples) {
    if (sample.micro_batch >= first) times[sample.op].push_back(time_of(sample, clock));
  }
  return times;
}

std::vector<OpComparison> compare_ops(const Program& program, const MeasuredRun& run, int first,
                                      OpClock clock) {
  const OpTimes together = times_by_op(run.samples, clock, first);
  const OpTimes alone = times_by_op(run.alone, clock, first);
  std::vector<OpComparison> ops;
  for (const auto& [op, times] : together) {
    const OpInfo& info = program.ops[op];
    OpComparison one{.kind = info.kind,
                     .stage = info.stage,
                     .loss = info.loss,
                     .predicted = info.duration,
                     .measured = Seconds(median_of(times))};
    if (const auto found = alone.find(op); found != alone.end()) {
      one.alone = Seconds(median_of(found->second));
    }
    ops.push_back(one);
  }
  return ops;
}

std::vector<CollectiveComparison> compare_collectives(const Program& program, const TraceLog& log,
                                                      int first) {
  OpTimes times;  // by collective
  for (const CollectiveSpan& span : log.collectives) {
    if (span.micro_batch < first) continue;
    times[span.collective].push_back((span.end - span.start).value());
  }
  std::vector<CollectiveComparison> collectives;
  for (const auto& [number, measured] : times) {
    const Collective& one = program.collectives[static_cast<std::size_t>(number)];
    const auto& ranks = program.communicators[static_cast<std::size_t>(one.communicator)].ranks;
    collectives.push_back({one.kind, one.stage, static_cast<int>(ranks.size()), one.bytes,
                           one.latency + one.occupancy, Seconds(median_of(measured))});
  }
  return collectives;
}

void fill_errors(Comparison& comparison) {
  std::vector<double> model, interference, collectives;
  for (const OpComparison& op : comparison.ops) {
    const Seconds truth = op.alone.value_or(op.measured);
    if (truth > Seconds(0)) model.push_back(op.predicted / truth - 1);
    if (op.alone && *op.alone > Seconds(0)) interference.push_back(op.measured / *op.alone - 1);
  }
  for (const CollectiveComparison& one : comparison.collectives) {
    if (one.measured > Seconds(0)) collectives.push_back(one.predicted / one.measured - 1);
  }
  comparison.collective_model = error_summary(collectives);
  comparison.op_model = error_summary(model);
  comparison.interference = error_summary(interference);
}

std::vector<DeviceComparison> compare_devices(const Metrics& predicted, const Metrics& measured,
                                              const std::vector<Bytes>& held) {
  std::vector<DeviceComparison> devices;
  for (std::size_t r = 0; r < predicted.devices.size(); ++r) {
    const DeviceMetrics &foreseen = predicted.devices[r], &seen = measured.devices[r];
    devices.push_back({.predicted_busy = foreseen.busy,
                       .measured_busy = seen.busy,
                       .predicted_peak = foreseen.peak_memory,
                       .measured_peak = seen.peak_memory});
    if (r < held.size()) devices.back().held_peak = held[r];
  }
  return devices;
}

double spread_of(const std::vector<Seconds>& steps, int fill) {
  std::vector<double> times;
  for (std::size_t step = static_cast<std::size_t>(fill); step < steps.size(); ++step) {
    times.push_back(steps[step].value());
  }
  const double median = median_of(times);
  return median > 0 ? (quantile_of(times, 0.95) - median) / median : 0;
}

/// Returns the times of `samples`, by op and micro-batch.
std::shared_ptr<const MeasuredTimes> measured_times(const Program& program,
                                                    const std::vector<OpSample>& samples,
                                                    OpClock clock) {
  auto measured = std::make_shared<MeasuredTimes>();
  measured->ops.resize(program.ops.size());
  const auto batches = static_cast<std::size_t>(program.micro_batches) * program.steps;
  for (const OpSample& sample : samples) {
    std::vector<double>& times = measured->ops[static_cast<std::size_t>(sample.op)];
    times.resize(batches, -1);
    times[static_cast<std::size_t>(sample.micro_batch)] = time_of(sample, clock);
  }
  return measured;
}

/// Returns the step of an engine that has only seen ops alone, one after the other.
std::optional<Seconds> step_from_alone(const Program& program, const MeasuredRun& run,
                                       const ComparisonInputs& inputs) {
  if (run.alone.empty()) return std::nullopt;
  Program simulated = program;
  simulated.variation = {.measured = measured_times(program, run.alone, inputs.clock)};
  TraceLog log;
  run_native(simulated, log_sink(log));
  return measure_trace(std::move(simulated), std::move(log), inputs.fill, inputs.measure)
      .metrics.step_time;
}

}  // namespace

std::optional<double> Comparison::from_alone_error() const {
  if (!from_alone) return std::nullopt;
  return *from_alone / measured - 1;
}

const char* name_of(OpClock clock) { return clock == OpClock::Wall ? "wall" : "processor"; }

Program replay_of(const Program& program, const TraceLog& log, const std::vector<OpSample>& samples,
                  OpClock clock) {
  Program replayed = freeze(program, log);
  replayed.variation = {.measured = measured_times(program, samples, clock)};
  return replayed;
}

Comparison compare_runs(const Measurement& predicted, const MeasuredRun& run,
                        const ComparisonInputs& inputs) {
  const Program& program = predicted.program;
  const OpClock clock = inputs.clock;
  const int fill = inputs.fill;
  const Program again = replay_of(program, run.log, run.samples, clock);
  TraceLog replayed_log;
  run_native(again, log_sink(replayed_log));
  // A frozen program tells memory out of order; its times are all that is asked for.
  replayed_log.memory.clear();
  Program in_order = program;
  in_order.variation = again.variation;
  const Measurement replayed =
      measure_trace(std::move(in_order), std::move(replayed_log), fill, inputs.measure);
  const Measurement seen = measure_trace(program, run.log, fill, inputs.measure);
  const bool wall = clock == OpClock::Wall;
  const Metrics& measured = wall ? seen.metrics : replayed.metrics;
  Comparison comparison{
      .name = inputs.name,
      .clock = clock,
      .steps = inputs.measure.steps,
      .predicted = predicted.metrics.step_time,
      .measured = measured.step_time,
      .replayed = replayed.metrics.step_time,
      .from_alone = step_from_alone(program, run, inputs),
      .wall = seen.metrics.step_time,
      .spread = spread_of(step_times(program, wall ? run.log : replayed.log), fill),
      .ops = compare_ops(program, run, fill * program.micro_batches, clock),
      .collectives = compare_collectives(program, run.log, fill * program.micro_batches),
      .devices = compare_devices(predicted.metrics, measured, run.peaks)};
  // Memory is that of the run, whatever the clock.
  for (std::size_t r = 0; r < comparison.devices.size(); ++r) {
    comparison.devices[r].measured_peak = seen.metrics.devices[r].peak_memory;
  }
  fill_errors(comparison);
  return comparison;
}

}  // namespace interlock
