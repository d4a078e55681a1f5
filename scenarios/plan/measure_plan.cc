// Programs of a plan for several lengths, and what is measured of their runs.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/measure_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/outer_steps.h"
#include "scenarios/plan/packed_steps.h"
#include "scenarios/plan/reserve.h"
#include "sim/lower/links/known_flows.h"

namespace interlock {
namespace {

bool varies(const Plan& plan) {
  return plan.question.variation && plan.question.variation->varies();
}

/// Counts the samples of a step, all replicas together; nothing where those of a micro-batch are
/// unknown.
std::optional<double> samples_per_step(const Plan& plan) {
  const std::optional<double>& each = plan.question.training().graph.samples_per_micro_batch;
  if (!each) return std::nullopt;
  if (plan.sized_batches.empty()) return *each * all_micro_batches(plan);
  double samples = 0;
  for (const SizedBatch& batch : plan.sized_batches) samples += batch.samples;
  return samples * static_cast<double>(plan.question.layout.mesh.degree(Dimension::Data));
}

/// Returns what engines are told of jitter, and of stragglers that are slow in some steps.
Variation variation_of(const Plan& plan) {
  const Question& question = plan.question;
  const VariationConditions& conditions = *question.variation;
  Variation variation = {.seed = static_cast<std::uint64_t>(question.simulation.seed),
                         .compute = conditions.jitter,
                         .transfers = conditions.link_jitter};
  for (const Straggler& straggler : conditions.stragglers) {
    if (straggler.always()) continue;
    const auto by_rank = slowdowns({straggler.devices}, simulated_mesh(plan), plan.unfolded);
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      if (by_rank[rank] == 1) continue;
      variation.slow.push_back({static_cast<int>(rank), straggler.first_step.value_or(1) - 1,
                                straggler.last_step.value_or(question.training().steps),
                                by_rank[rank]});
    }
  }
  return variation;
}

/// Adds what the host keeps that is fullest, those of unknown memory behind all others, each device
/// at its peak, and whether it fits; devices that are folded count, too.
void add_host_memory(const Plan& plan, Metrics& metrics) {
  const Question& question = plan.question;
  const Cluster& cluster = question.cluster;
  const auto known = [](Bytes memory) {
    return memory > Bytes(0) ? std::optional(memory) : std::nullopt;
  };
  metrics.host_capacity = known(cluster.machines.front().host_memory);
  if (!question.training().offload.any()) return;
  const Mesh& mesh = simulated_mesh(plan);
  const Unfolded& unfolded = plan.unfolded;
  std::map<Coordinates, Bytes> simulated;
  const std::vector<Coordinates> ranks = simulated_ranks(mesh, unfolded);
  for (const DeviceMetrics& device : metrics.devices) {
    simulated[ranks.at(device.rank)] = device.host.total();
  }
  struct Host {
    Bytes kept, capacity;
  };
  std::map<int, Host> hosts;
  for (Coordinates at : simulated_ranks(mesh, {true, true, true, true})) {
    const int device = device_of(mesh, at);
    Host& host = hosts[node_of(cluster, device)];
    host.capacity = machine_of(cluster, device).host_memory;
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      if (!unfolded[i]) at[i] = 0;
    }
    host.kept += simulated.at(at);
  }
  const auto fuller = [](const auto& a, const auto& b) {
    const Host &one = a.second, &other = b.second;
    if (one.capacity == other.capacity) return one.kept < other.kept;
    if (one.capacity == Bytes(0) || other.capacity == Bytes(0)) return one.capacity == Bytes(0);
    return one.kept / one.capacity < other.kept / other.capacity;
  };
  const Host& fullest = std::max_element(hosts.begin(), hosts.end(), fuller)->second;
  metrics.host_memory = fullest.kept;
  metrics.host_capacity = known(fullest.capacity);
  if (metrics.host_is_full()) metrics.fits_in_memory = false;
}

/// Adds what each device's process holds in all, where it is known.
void add_used_memory(const Plan& plan, Metrics& metrics) {
  const std::vector<int> numbers = device_numbers(plan);
  for (DeviceMetrics& device : metrics.devices) {
    const int number = numbers.at(static_cast<std::size_t>(device.rank));
    const Device& kind = machine_of(plan.question.cluster, number).device;
    if (!is_gpu(kind)) continue;
    device.used_memory = used_memory(priced_reserve(plan.question, kind), device.peak_memory);
  }
}

/// Returns the peak rate of a device of the layout at its speed, a mean over all of them; 0 if one
/// has none.
FlopsPerSecond mean_peak(const Question& question, Precision precision) {
  const Layout& layout = question.layout;
  std::vector<double> speeds(static_cast<std::size_t>(layout.ranks()), 1);
  if (question.variation && !question.variation->speeds.empty()) {
    speeds = question.variation->speeds;
  }
  const auto peak_of = [&](const Machine& machine) {
    return machine.device.peak[static_cast<std::size_t>(precision)];
  };
  const Cluster& cluster = question.cluster;
  if (!is_mixed(cluster)) {
    const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    const FlopsPerSecond peak = peak_of(cluster.machines.front()).value_or(FlopsPerSecond(0));
    return peak * (sum / static_cast<double>(speeds.size()));
  }
  FlopsPerSecond sum(0);
  for (const Coordinates& at : simulated_ranks(layout.mesh, {true, true, true, true})) {
    const auto peak = peak_of(machine_of(cluster, device_of(layout.mesh, at)));
    if (!peak) return FlopsPerSecond(0);
    sum += *peak * speeds.at(static_cast<std::size_t>(at[static_cast<int>(Dimension::Pipeline)]));
  }
  return sum / layout.mesh.devices();
}

MeasuredPlan measure_recorded(const Plan& plan, const TraceWorkload& trace, Keep keep) {
  MeasureInputs inputs = measure_inputs(plan);
  inputs.explain = true;
  return {.measurement =
              measure_after(*trace.program, trace.steps.fill, inputs, keep == Keep::Log)};
}

MeasuredPlan measure_training(const Plan& plan, Keep keep) {
  const LowerInputs inputs = lower_inputs(plan);
  MeasuredPlan measured;
  if (!varies(plan)) {
    measured.measurement = measure_steady(plan, inputs, keep);
  } else {
    // The steady steps of those that vary are not what is shown.
    const Measurement steady = measure_steady(plan, inputs, Keep::Nothing);
    const VariationConditions& variation = *plan.question.variation;
    const VariedSteps steps = {variation_of(plan), variation.random() ? variation.seeds : 1};
    VariedMeasurement varied =
        measure_varied(packed_programs(plan, programs_of(plan, inputs)), steps,
                       measure_inputs(plan), steady, keep == Keep::Log);
    measured = {std::move(varied.measurement), varied.outcome};
  }
  add_memory(plan, measured.measurement.metrics);
  return measured;
}

}  // namespace

ProgramOfSteps programs_of(Plan plan, LowerInputs inputs) {
  inputs.known_links = std::make_shared<KnownLinks>();
  if (!inputs.known_flows) inputs.known_flows = std::make_shared<KnownFlows>();
  return [plan = std::move(plan), inputs = std::move(inputs)](int steps,
                                                              double most_ticks_per_second) {
    LowerInputs like = inputs;
    like.most_ticks_per_second = most_ticks_per_second;
    return lower_plan(plan, std::move(like), steps);
  };
}

void add_memory(const Plan& plan, Metrics& metrics) {
  add_host_memory(plan, metrics);
  add_used_memory(plan, metrics);
}

MeasuredPlan measure_plan(const Plan& plan, Keep keep) {
  try {
    const TraceWorkload* const trace = plan.question.trace();
    return trace != nullptr ? measure_recorded(plan, *trace, keep) : measure_training(plan, keep);
  } catch (const Error& error) {  // a deadlock, or links that the chosen engine does not know
    throw Error(plan.question.file + ": " + plan.question.name + ": " + error.what());
  }
}

MeasureInputs measure_inputs(const Plan& plan) {
  const Question& question = plan.question;
  MeasureInputs inputs = {.engine = question.simulation.engine,
                          .devices = question.layout.mesh.devices()};
  for (const int device : device_numbers(plan)) {
    inputs.memory_capacity.push_back(machine_of(question.cluster, device).device.memory);
  }
  if (const TraceWorkload* const trace = question.trace()) {  // it counts no samples
    inputs.steps = trace->steps.measured;
    if (trace->precision) inputs.peak = mean_peak(question, *trace->precision);
    return inputs;
  }
  const Training& training = question.training();
  inputs.steps = training.steps;
  inputs.micro_batches_per_step = all_micro_batches(plan);
  inputs.samples_per_step = samples_per_step(plan);
  inputs.attention_flops = training.graph.attention_flops;
  if (inputs.samples_per_step && training.graph.tokens_per_sample) {
    inputs.tokens_per_step = *inputs.samples_per_step * *training.graph.tokens_per_sample;
  }
  inputs.peak = mean_peak(question, training.precision);
  return inputs;
}

Measurement measure_steady(const Plan& plan, const LowerInputs& inputs, Keep keep) {
  MeasureInputs measured = measure_inputs(plan);
  measured.explain = keep == Keep::Explanation || keep == Keep::Log;
  measured.fewest_steps = keep == Keep::FewSteps;
  const ScheduleEntry& entry = *plan.schedule.kind;
  if (plan.question.simulation.skip_periods && !plan.schedule.bulk_synchronous && !varies(plan) &&
      plan.replica_micro_batches.empty() && entry.period != nullptr &&
      plan.schedule.deferred_readout == 0 &&  // whose first micro-batches are not as the others
      plan.schedule.vocabulary == VocabularySplit::Whole &&
      plan.schedule.messages.lines == MessageOrder::Lines::Free) {
    const int period =
        entry.period({.ranks = plan.question.layout.ranks(), .round = plan.schedule.round});
    measured.long_step = {.micro_batches = plan.micro_batches,
                          .period = period,
                          .stages = plan.question.layout.stages,
                          .lower = [&](int micro_batches) {
                            return programs_of(with_micro_batches(plan, micro_batches), inputs);
                          }};
  }
  Measurement measurement = measure(programs_of(plan, inputs), measured, keep == Keep::Log);
  if (plan.question.layout.data_parallel.outer.any()) {
    add_outer_steps(plan, inputs, measured, measurement);
  }
  return measurement;
}

Seconds micro_batch_time(const Plan& plan, Seconds step_time) {
  const double micro_batches = plan.micro_batches;
  if (plan.schedule.order || !plan.sized_batches.empty() || !plan.replica_micro_batches.empty()) {
    return step_time / micro_batches;
  }
  Plan longer = plan;
  longer.micro_batches *= 2;
  longer.schedule.update_every *= 2;
  const Measurement measured = measure_steady(longer, lower_inputs(plan), Keep::Nothing);
  return (measured.metrics.step_time - step_time) / micro_batches;
}

}  // namespace interlock
