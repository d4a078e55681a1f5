// Adds up what devices, links and nodes draw in a step and what they cost.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/economics.h"

#include <algorithm>

namespace interlock {
namespace {

constexpr double kHour = 3600;  // seconds

/// Shares of a node's power that `devices` devices answer for.
double nodes_worth(const Cluster& cluster, double devices) {
  return devices / std::max(1, cluster.devices_per_node);
}

/// Returns the power of `devices` devices that wait, with their share of the nodes.
Watts waiting_power(const Cluster& cluster, double devices) {
  Watts power = cluster.device.power->idle * devices;
  if (cluster.power.node) power += *cluster.power.node * nodes_worth(cluster, devices);
  return power * cluster.power.pue;
}

/// Counts links, each by the share of the time in which it works.
double working_links(const Metrics& metrics) {
  double links = 0;
  for (const LinkMetrics& link : metrics.links) links += link.utilisation * link.stands_for;
  return links;
}

void add_energy(const Question& question, const Metrics& metrics, Economics& economics) {
  const Cluster& cluster = question.cluster;
  const Seconds step = metrics.step_time;
  if (cluster.power.link) {
    economics.covers_links = true;
    economics.link_energy = *cluster.power.link * step * working_links(metrics);
  }
  if (cluster.power.node) {
    economics.covers_nodes = true;
    economics.node_energy = *cluster.power.node * step * nodes_worth(cluster, economics.devices);
  }
  const std::optional<DevicePower>& device = cluster.device.power;
  if (!device) return;
  // Each simulated device stands for as many others, so that their mean is that of all.
  const Watts mean = device->busy * metrics.busy + device->idle * (1 - metrics.busy);
  economics.device_energy = mean * step * economics.devices;
  economics.energy =
      (economics.device_energy + economics.link_energy + economics.node_energy) * cluster.power.pue;
  if (step > Seconds(0)) economics.power = *economics.energy / step;
}

std::optional<Money> cost_of(const Cluster& cluster, double devices, Seconds time) {
  if (!cluster.price) return std::nullopt;
  return Money{devices * cluster.price->amount * time.value() / kHour, cluster.price->currency};
}

/// Returns the costs of `steps` steps if nothing fails.
TrainingCosts undisturbed(const Question& question, const Economics& economics, double steps,
                          Seconds step_time) {
  TrainingCosts costs{.steps = steps, .time = step_time * steps};
  costs.device_hours = economics.devices * costs.time.value() / kHour;
  if (economics.energy) costs.energy = *economics.energy * steps;
  costs.cost = cost_of(question.cluster, economics.devices, costs.time);
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
  costs.device_hours = (economics.devices + spares) * costs.time.value() / kHour;
  costs.cost = cost_of(question.cluster, economics.devices + spares, costs.time);
  if (!economics.power) return costs;
  costs.energy = *economics.power * stepping +
                 waiting_power(question.cluster, economics.devices) * still +
                 waiting_power(question.cluster, spares) * costs.time;
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

Economics economics_with(const Plan& plan, const Metrics& metrics, const RunResult* run) {
  const Question& question = plan.question;
  Economics economics{.devices = question.mesh.devices()};
  add_energy(question, metrics, economics);
  economics.cost = cost_of(question.cluster, economics.devices, metrics.step_time);
  if (const auto steps = steps_wanted(plan)) {
    economics.training = run != nullptr
                             ? disturbed(question, economics, *run, *steps)
                             : undisturbed(question, economics, *steps, metrics.step_time);
  }
  return economics;
}

}  // namespace

Economics economics_of(const Plan& plan, const Metrics& metrics) {
  return economics_with(plan, metrics, nullptr);
}

Economics economics_of(const ScenarioResult& result) {
  return economics_with(result.plan, result.measurement.metrics,
                        result.run ? &*result.run : nullptr);
}

}  // namespace interlock
