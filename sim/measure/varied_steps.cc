// One run for each seed, and their means.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/varied_steps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "sim/measure/metric_table.h"

namespace interlock {

namespace {

constexpr double kMostTasks = 1e9;  // of all seeds
constexpr int kMostRunAhead = 4;    // times as many steps as are measured, fill included
/// Ticks must count runs that take longer than their program says. A factor of mean 1 and spread 1
/// is larger than this once in a hundred million.
constexpr double kHeadroom = 100;

/// Returns the program of the fill of `steady` and `steps` more.
Program varied_program(const ProgramOfSteps& lower, const VariedSteps& varied, int steps,
                       const Measurement& steady) {
  const Metrics& metrics = steady.metrics;
  double headroom = kHeadroom;  // ticks stay decimal
  for (const SlowSteps& slow : varied.variation.slow) {
    headroom *= std::pow(10, std::ceil(std::log10(std::max(1.0, slow.slowdown))));
  }
  Program program = lower(metrics.fill_steps + steps, steady.program.ticks_per_second / headroom);
  program.variation = varied.variation;
  for (SlowSteps& slow : program.variation.slow) {
    slow.first += metrics.fill_steps;
    slow.end += metrics.fill_steps;
  }
  return program;
}

/// The quantities that are averaged over seeds: a value for each seed, in order.
struct Samples {
  std::vector<double> step_time, steps_per_s, busy;
  std::vector<double> sums = std::vector<double>(step_metrics().size());  // of all metrics

  void add(const Metrics& metrics) {
    step_time.push_back(metrics.step_time.value());
    steps_per_s.push_back(metrics.step_time > Seconds(0) ? Seconds(1) / metrics.step_time : 0);
    busy.push_back(metrics.busy);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += number_of(step_metrics()[i], metrics).value_or(0);
    }
  }
};

void set_means(const Samples& samples, const VariedOutcome& outcome, const MeasureInputs& inputs,
               Metrics& metrics) {
  for (std::size_t i = 0; i < samples.sums.size(); ++i) {
    const MetricRow& row = step_metrics()[i];
    const bool averaged = (row.traits & kMeanOverSeeds) != 0 && number_of(row, metrics);
    if (averaged) set_number(row, samples.sums[i] / outcome.seeds, metrics);
  }
  // To the last bit as their spreads, which stand beside them.
  metrics.step_time = Seconds(outcome.step_time.mean);
  metrics.busy = outcome.busy.mean;
  const double rate = outcome.steps_per_s.mean;
  if (inputs.samples_per_step) metrics.samples_per_s = *inputs.samples_per_step * rate;
  if (inputs.tokens_per_step) metrics.tokens_per_s = *inputs.tokens_per_step * rate;
}

struct Seeds {
  int count = 1, fill = 0;  // steps of the fill
};

double tasks_of(const Program& program, const VariedSteps& varied) {
  return static_cast<double>(count_tasks(program)) * varied.seeds;
}

/// Runs `program` under each seed. Nothing if `more` steps may follow and, in some run, all that
/// there are had begun by the end of the window.
std::optional<VariedMeasurement> measure_seeds(const Program& program, const Seeds& asked,
                                               const MeasureInputs& inputs, bool more,
                                               bool keep_log) {
  VariedMeasurement result;
  Samples samples;
  for (int seed = 0; seed < asked.count; ++seed) {
    Program seeded = program;
    seeded.variation.seed += static_cast<std::uint64_t>(seed);
    Measurement one = measure_after(std::move(seeded), asked.fill, inputs, keep_log && seed == 0);
    if (one.all_begun && more) return std::nullopt;
    samples.add(one.metrics);
    if (seed == 0) result.measurement = std::move(one);
  }
  result.outcome = {.seeds = asked.count,
                    .step_time = spread_of(samples.step_time),
                    .steps_per_s = spread_of(samples.steps_per_s),
                    .busy = spread_of(samples.busy)};
  set_means(samples, result.outcome, inputs, result.measurement.metrics);
  return result;
}

}  // namespace

VariedMeasurement measure_varied(const ProgramOfSteps& lower, const VariedSteps& varied,
                                 const MeasureInputs& asked, const Measurement& steady,
                                 bool keep_log) {
  CHECK(varied.seeds > 0, "at least one seed");
  MeasureInputs inputs = asked;  // of the same steps, where those differ
  if (!steady.metrics.steady) inputs.steps = steady.metrics.measured_steps;
  const int fill = steady.metrics.fill_steps, measured = fill + inputs.steps;
  const bool whole = asked.steps == 1;  // one step is measured with all that ends it
  int after = whole ? 0 : std::max(1, steady.program.steps - steady.metrics.measured_steps - fill);
  Program program = varied_program(lower, varied, inputs.steps + after, steady);
  const double tasks = tasks_of(program, varied);
  if (tasks > kMostTasks) {
    throw Error("a run has " + format_number(tasks / varied.seeds) + " tasks under each of " +
                std::to_string(varied.seeds) + " seeds; expected at most " +
                format_number(kMostTasks) + " in all, by fewer steps or seeds");
  }
  std::optional<VariedMeasurement> result;
  while (true) {
    const int further = 2 * after + 1;
    const double growth = (measured + further) / static_cast<double>(measured + after);
    const bool more = !whole && further <= kMostRunAhead * measured &&
                      growth * tasks_of(program, varied) <= kMostTasks;
    result = measure_seeds(program, {varied.seeds, fill}, inputs, more, keep_log);
    if (result) break;
    after = further;
    program = varied_program(lower, varied, inputs.steps + after, steady);
  }
  result->outcome.undisturbed_step_time = steady.metrics.step_time;
  result->measurement.metrics.steady = steady.metrics.steady;
  return *std::move(result);
}

}  // namespace interlock
