// Adds up what devices, links and nodes draw in a step and what they cost.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/economics.h"

#include <algorithm>

namespace interlock {
namespace {

/// Returns the mean of `value` over the devices of the layout, by their machines.
template <class Value>
double mean_over_devices(const Question& question, const Value& value) {
  const Cluster& cluster = question.cluster;
  if (!is_mixed(cluster)) return value(cluster.machines.front());
  const int devices = question.layout.mesh.devices();
  double sum = 0;
  for (int device = 0; device < devices; ++device) sum += value(machine_of(cluster, device));
  return sum / devices;
}

/// Says that `known` holds for the machine of each device of the layout.
template <class Known>
bool all_known(const Question& question, const Known& known) {
  return mean_over_devices(question, [&](const Machine& m) { return known(m) ? 1.0 : 0.0; }) == 1;
}

bool powers_known(const Question& question) {
  return all_known(question, [](const Machine& m) { return m.device.power.has_value(); });
}

/// Returns the devices of a node, a mean by which each device answers for its share of one.
double devices_of_node(const Question& question) {
  if (!is_mixed(question.cluster)) {
    return std::max(1, question.cluster.machines.front().devices_per_node);
  }
  return 1 / mean_over_devices(question, [](const Machine& m) { return 1.0 / m.devices_per_node; });
}

/// Returns the power of a node, a mean over the nodes. REQUIRES: all are known.
Watts node_power(const Question& question) {
  if (!is_mixed(question.cluster)) return *question.cluster.machines.front().power.node;
  const auto share = [](const Machine& m) { return m.power.node->value() / m.devices_per_node; };
  return Watts(mean_over_devices(question, share) * devices_of_node(question));
}

bool nodes_known(const Question& question) {
  return all_known(question, [](const Machine& m) { return m.power.node.has_value(); });
}

/// Returns the power of `devices` devices that wait, with their share of the nodes.
Watts waiting_power(const Question& question, double devices) {
  const auto idle = [](const Machine& machine) { return machine.device.power->idle.value(); };
  Watts power = Watts(mean_over_devices(question, idle)) * devices;
  if (nodes_known(question)) power += node_power(question) * (devices / devices_of_node(question));
  return power * question.cluster.machines.front().power.pue;
}

/// Returns the power of a device, a mean over the step and over all devices, of which `working` is
/// what kernels add to idling.
Watts mean_power(const Question& question, const Metrics& metrics, Watts working) {
  if (!is_mixed(question.cluster)) {
    const DevicePower& power = *question.cluster.machines.front().device.power;
    return power.busy * metrics.busy + power.idle * (1 - metrics.busy);
  }
  const auto idle = [](const Machine& machine) { return machine.device.power->idle.value(); };
  return Watts(mean_over_devices(question, idle)) + working;
}

/// Counts links, each by the share of the time in which it works.
double working_links(const Metrics& metrics) {
  double links = 0;
  for (const LinkMetrics& link : metrics.links) links += link.utilisation * link.stands_for;
  return links;
}

void add_energy(const Question& question, const Metrics& metrics, Watts working,
                Economics& economics) {
  const MachinePower& around = question.cluster.machines.front().power;  // alike, but for nodes
  const Seconds step = metrics.step_time;
  if (around.link) {
    economics.covers_links = true;
    economics.link_energy = *around.link * step * working_links(metrics);
  }
  if (nodes_known(question)) {
    economics.covers_nodes = true;
    const double nodes = economics.devices / devices_of_node(question);
    economics.node_energy = node_power(question) * step * nodes;
  }
  if (!powers_known(question)) return;
  economics.device_energy = mean_power(question, metrics, working) * step * economics.devices;
  economics.energy =
      (economics.device_energy + economics.link_energy + economics.node_energy) * around.pue;
  if (step > Seconds(0)) economics.power = *economics.energy / step;
}

std::optional<Money> cost_of(const Question& question, double devices, Seconds time) {
  const std::optional<HourlyPrice> price = device_hour(question);
  if (!price) return std::nullopt;
  return Money{device_hours(devices, time) * price->amount, price->currency};
}

/// Returns the costs of `steps` steps if nothing fails.
TrainingCosts undisturbed(const Question& question, const Economics& economics, double steps,
                          Seconds step_time) {
  TrainingCosts costs{.steps = steps, .time = step_time * steps};
  costs.device_hours = device_hours(economics.devices, costs.time);
  if (economics.energy) costs.energy = *economics.energy * steps;
  costs.cost = cost_of(question, economics.devices, costs.time);
  return costs;
}

/// Returns the costs of `steps` steps of the run, on average over its seeds. Steps that were lost
/// drew what steps draw; while it stood still, devices waited, and spares always do.
TrainingCosts disturbed(const Question& question, const Economics& economics, const RunResult& run,
                        double steps) {
  const RunStatistics& took = run.statistics;
  const double scale = steps / static_cast<double>(run.plan.steps);
  const Seconds still((took.checkpoint.mean + took.restart.mean + took.idle.mean) * scale);
  const Seconds stepping((took.useful.mean + took.lost.mean) * scale);
  const double spares = run.plan.spares;
  TrainingCosts costs{
      .steps = steps, .time = Seconds(took.wall.mean * scale), .goodput = took.goodput.mean};
  costs.device_hours = device_hours(economics.devices + spares, costs.time);
  costs.cost = cost_of(question, economics.devices + spares, costs.time);
  if (!economics.power) return costs;
  costs.energy = *economics.power * stepping + waiting_power(question, economics.devices) * still +
                 waiting_power(question, spares) * costs.time;
  return costs;
}

/// Returns the steps of the goal, or of the run; nothing if there is neither.
std::optional<double> steps_wanted(const Plan& plan) {
  const Question& question = plan.question;
  if (!question.goal && !question.run) return std::nullopt;
  const MeasureInputs measured = measure_inputs(plan);
  return steps_of(question.goal ? question.goal->length : question.run->length,
                  {measured.samples_per_step, measured.tokens_per_step});
}

Economics economics_with(const Plan& plan, const Metrics& metrics, Watts working,
                         const RunResult* run) {
  const Question& question = plan.question;
  Economics economics{.devices = question.layout.mesh.devices()};
  add_energy(question, metrics, working, economics);
  economics.cost = cost_of(question, economics.devices, metrics.step_time);
  if (const auto steps = steps_wanted(plan)) {
    economics.training = run != nullptr
                             ? disturbed(question, economics, *run, *steps)
                             : undisturbed(question, economics, *steps, metrics.step_time);
  }
  return economics;
}

}  // namespace

std::optional<HourlyPrice> device_hour(const Question& question) {
  if (!all_known(question, [](const Machine& m) { return m.price.has_value(); })) {
    return std::nullopt;
  }
  const auto amount = [](const Machine& machine) { return machine.price->amount; };
  return HourlyPrice{mean_over_devices(question, amount),
                     question.cluster.machines.front().price->currency};
}

Watts working_power(const Plan& plan, const Metrics& metrics) {
  const Question& question = plan.question;
  if (!powers_known(question)) return Watts(0);
  const auto working = [&](int device) {
    const DevicePower& power = *machine_of(question.cluster, device).device.power;
    return power.busy - power.idle;
  };
  if (metrics.devices.empty()) {
    Watts least = working(0);
    for (int device = 1; device < question.layout.mesh.devices(); ++device) {
      least = std::min(least, working(device));
    }
    return least * metrics.busy;
  }
  const std::vector<int> numbers = device_numbers(plan);
  Watts sum(0);
  for (const DeviceMetrics& device : metrics.devices) {
    sum += working(numbers.at(device.rank)) * device.busy;
  }
  return sum / static_cast<double>(metrics.devices.size());
}

Economics economics_of(const Plan& plan, const Metrics& metrics, Watts working) {
  return economics_with(plan, metrics, working, nullptr);
}

Economics economics_of(const Plan& plan, const Metrics& metrics) {
  return economics_of(plan, metrics, working_power(plan, metrics));
}

Economics economics_of(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  return economics_with(result.plan, metrics, working_power(result.plan, metrics),
                        result.run ? &*result.run : nullptr);
}

}  // namespace interlock
