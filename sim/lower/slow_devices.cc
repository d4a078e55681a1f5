// Slow devices, found on the mesh and in the costs of stages.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/slow_devices.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "sim/lower/lower.h"
#include "sim/plan/vocabulary.h"

namespace interlock {

namespace {

/// The slowdowns of ranks and devices, by number.
struct SlowNumbers {
  std::map<int, double> ranks, devices;

  explicit SlowNumbers(const std::vector<SlowDevices>& slow) {
    for (const SlowDevices& one : slow) {
      auto& numbers = one.of == SlowDevices::Of::Rank ? ranks : devices;
      numbers.try_emplace(one.number, 1).first->second *= one.slowdown;
    }
  }
  double of(const Mesh& mesh, const Coordinates& at) const {
    const auto rank = ranks.find(at[static_cast<int>(Dimension::Pipeline)]);
    const auto device = devices.empty() ? devices.end() : devices.find(device_of(mesh, at));
    return (rank == ranks.end() ? 1 : rank->second) *
           (device == devices.end() ? 1 : device->second);
  }
};

void slow_down(OpCost& cost, double slowdown) {
  cost.time = cost.time * slowdown;
  for (Seconds& time : cost.at) time *= slowdown;
}

void slow_down(StageCost& stage, double slowdown) {
  for (OpCost* cost : costs_of_ops(stage)) slow_down(*cost, slowdown);
  for (OpCost* cost :
       {&stage.update, &stage.first_backward_input, &stage.next_forward, &stage.link.backward_input,
        &stage.link.backward_weight, &stage.link.recompute, &stage.link.first_backward_input,
        &stage.head, &stage.head_update, &stage.deferrable, &stage.tied_update,
        &stage.context.forward, &stage.context.backward_input, &stage.context.recompute,
        &stage.casts.output, &stage.casts.output_read, &stage.casts.gradient,
        &stage.casts.gradient_read}) {
    slow_down(*cost, slowdown);
  }
  stage.gradient_addition = stage.gradient_addition * slowdown;
  stage.sweeps = stage.sweeps * slowdown;
}

}  // namespace

std::vector<double> slowdowns(const std::vector<SlowDevices>& slow, const Mesh& mesh,
                              const Unfolded& unfolded) {
  const SlowNumbers numbers(slow);
  const std::vector<Coordinates> folded = folded_ranks(mesh, unfolded);
  std::vector<double> slowest;
  for (const Coordinates& rank : simulated_ranks(mesh, unfolded)) {
    slowest.push_back(0);
    for (const Coordinates& by : folded) {
      slowest.back() = std::max(slowest.back(), numbers.of(mesh, shifted(mesh, rank, by)));
    }
  }
  return slowest;
}

std::string slow_folding_problem(const std::vector<SlowDevices>& slow, const Mesh& mesh,
                                 const Unfolded& unfolded) {
  if (slow.empty()) return "";
  const SlowNumbers numbers(slow);
  const std::vector<Coordinates> folded = folded_ranks(mesh, unfolded);
  for (const Coordinates& rank : simulated_ranks(mesh, unfolded)) {
    const double own = numbers.of(mesh, rank);
    for (const Coordinates& by : folded) {
      const Coordinates other = shifted(mesh, rank, by);
      if (numbers.of(mesh, other) == own) continue;
      return "device " + std::to_string(device_of(mesh, other)) +
             " does not compute as fast as device " + std::to_string(device_of(mesh, rank));
    }
  }
  return "";
}

void slow_down(LowerInputs& inputs) {
  if (inputs.slow.empty()) return;
  const std::vector<double> by_rank = slowdowns(inputs.slow, inputs.mesh, inputs.unfolded);
  const Schedule& schedule = inputs.schedule;
  CHECK(by_rank.size() == schedule.ranks.size(), "a slowdown for each simulated rank");
  for (std::size_t cost = 0; cost < inputs.stages.size(); ++cost) {
    const int rank = schedule.rank_of_stage[cost % schedule.stages];
    slow_down(inputs.stages[cost], by_rank[rank]);
  }
}

}  // namespace interlock
