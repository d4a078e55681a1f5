// Economics: power, energy and money of a step, and of reaching a goal.
// SPDX-License-Identifier: Apache-2.0
//
// A device draws one power while it executes anything and another while it waits; a link draws its
// power for the share of the time in which it carries bytes; a node draws the same always, and each
// of its devices answers for its share of that. All devices of the layout count, those that others
// stand for in the simulation too, and no device that the layout leaves idle. What the building
// adds is a factor (PUE). What is not known is left out: see `covers_links` and `covers_nodes`.
//
// Example: 8 devices at 2.50 USD an hour and a step of 0.9 s. The step costs 8 x 2.50 x 0.9 / 3,600
// = 0.005 USD; 1,000 such steps take 2 device-hours and cost 5 USD.
#pragma once

#include <optional>

#include "hardware/devices/money.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Costs of a length of training.
struct TrainingCosts {
  double steps = 1;
  Seconds time;
  double goodput = 1;            // of the time, the share of steps without any failure
  double device_hours = 0;       // of all devices, spares of a run included
  std::optional<Joules> energy;  // as Economics::energy
  std::optional<Money> cost;     // spares of a run included
};

/// Costs of one step, but for `training`.
struct Economics {
  int devices = 1;                                  // of the layout
  Joules device_energy, link_energy, node_energy;   // drawn by the machine, PUE left out
  bool covers_links = false, covers_nodes = false;  // whether their powers are known
  std::optional<Joules> energy;                     // of all, PUE included; none: unknown devices
  std::optional<Watts> power;                       // mean over the step
  std::optional<Money> cost;                        // none: no price
  std::optional<TrainingCosts> training;            // for the goal, or else the length of the run
};

/// Returns the hours of `devices` devices that each work for `time`.
inline double device_hours(double devices, Seconds time) { return devices * time.value() / 3600; }

/// Returns the price of a device of the layout and hour, a mean over its devices; nothing if that
/// of one is unknown.
std::optional<HourlyPrice> device_hour(const Question& question);

/// Returns what kernels add to the power of a device that waits, a mean over the step and over all
/// devices: each simulated one stands for as many others. Where `metrics` do not say which device
/// is how busy, that is the least that it can be.
Watts working_power(const Plan& plan, const Metrics& metrics);
/// Prices the steps of a goal without failures: those of a "run" need its result. `working`: that
/// power, which only clusters of several machines are asked for.
Economics economics_of(const Plan& plan, const Metrics& metrics, Watts working);
Economics economics_of(const Plan& plan, const Metrics& metrics);
/// Prices a result; under a "run", with the time that its failures and checkpoints cost.
Economics economics_of(const ScenarioResult& result);

}  // namespace interlock
