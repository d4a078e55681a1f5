// Prices, lowers and measures the outer step of a fragment.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/outer_steps.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "scenarios/plan/lower_plan.h"

namespace interlock {
namespace {

/// Bytes that an outer step moves in memory for each parameter, in fp32: it reads weights and
/// synchronised weights for their difference, then reads and writes momentum and synchronised
/// weights, and writes weights; the outer gradient is written once and read once in its format.
constexpr double kMovedBytes = 7 * 4, kGradientPasses = 2;

/// Bytes that a correction for weights that moved meanwhile moves besides: those from when the
/// exchange began are written then and read now, those of now are read.
constexpr double kCorrectionBytes = 3 * 4;

/// Returns the time of the kernels of an outer step that updates `parameters`.
Seconds update_time(double parameters, const OuterSteps& outer, const PriceInputs& prices) {
  if (prices.device.memory_bandwidth.value() <= 0 || parameters == 0) return Seconds(0);
  const double moved = kMovedBytes + (outer.compensates ? kCorrectionBytes : 0);
  const double bytes = parameters * (moved + kGradientPasses * outer.element);
  const Work update{.op_class = OpClass::Optimizer, .bytes = Bytes(bytes)};
  return time_of(update, prices.device, prices.precision);
}

/// Returns the cost of a stage in an outer step of a fragment: an update, and what goes before and
/// behind it. Its states are those of its steps.
StageCost outer_cost(const Question& question, const StageCost& stage, const PriceInputs& prices) {
  const DataParallel& policy = question.layout.data_parallel;
  const OuterSteps& outer = policy.outer;
  const double parameters = outer_parameters(policy, question.layout.mesh, stage) / outer.fragments;
  const double on_host = question.training().offload.optimizer;
  StageCost cost;
  cost.update.time = update_time(parameters, outer, prices) * (1 - on_host);
  cost.update.memory_bound = 1;
  cost.whole_gradients = Bytes(parameters * outer.element);
  cost.whole_weights = (stage.whole_weights - stage.frozen) / outer.fragments;
  cost.more_sent = stage.more_sent / outer.fragments;
  cost.host_gradients = cost.whole_gradients * on_host;
  cost.host_weights = cost.whole_weights * (on_host / question.layout.mesh.shard);
  return cost;
}

/// Returns an order in which each rank updates its stages once.
Schedule updates_of(const std::vector<int>& rank_of_stage, int ranks) {
  Schedule schedule{.stages = static_cast<int>(rank_of_stage.size()),
                    .rank_of_stage = rank_of_stage,
                    .ranks = std::vector(static_cast<std::size_t>(ranks),
                                         std::vector(1, Sequence{.runs = {Run{}}}))};
  for (std::size_t stage = 0; stage < rank_of_stage.size(); ++stage) {
    const int number = static_cast<int>(stage);
    schedule.ranks[rank_of_stage[stage]].front().runs.front().ops.push_back(
        {.kind = OpKind::U, .stage = number, .loss = number});
  }
  return schedule;
}

LowerInputs outer_inputs(const Plan& plan, LowerInputs inputs, bool exchanges) {
  const Question& question = plan.question;
  const std::size_t stages = plan.rank_of_stage.size();
  const std::size_t machines = question.cluster.machines.size();
  const std::size_t each = inputs.stages.size() / machines;  // of all slices
  const auto places = places_on_machines(question);
  std::vector<StageCost> costs;
  for (std::size_t machine = 0; machine < machines; ++machine) {
    const PriceInputs prices = price_inputs(question, places[machine].value_or(Coordinates{}));
    for (std::size_t stage = 0; stage < stages; ++stage) {
      costs.push_back(outer_cost(question, inputs.stages[machine * each + stage], prices));
      if (!exchanges) costs.back().whole_gradients = Bytes(0);
    }
  }
  inputs.stages = std::move(costs);
  inputs.schedule = updates_of(plan.rank_of_stage, question.layout.ranks());
  inputs.policy = SchedulePolicy();
  inputs.known_links.reset();
  DataParallel& policy = inputs.data_parallel;
  policy.outer.now = true;
  policy.zero_stage = std::max(1, policy.zero_stage);  // devices of a worker divide outer states
  policy.overlap_weights = false;
  policy.gradient_density = 1;
  policy.bucket = Bytes(std::numeric_limits<double>::max());
  return inputs;
}

/// Measures one outer step by itself.
Measurement measure_outer(const Plan& plan, const LowerInputs& inputs, const MeasureInputs& asked,
                          bool exchanges) {
  const auto lower_one = [&](int, double most_ticks_per_second) {
    LowerInputs like = inputs;
    like.most_ticks_per_second = most_ticks_per_second;
    return lower_outer_step(plan, like, exchanges);
  };
  const MeasureInputs one = {.steps = 1, .engine = asked.engine, .devices = asked.devices};
  return measure(lower_one, one, false);
}

/// Adds room for the fragments that are on their way at once where a cycle has `exchanges`, beside
/// those that there is room for: all that is resident of communication.
void add_buffers(const OuterSteps& outer, int exchanges, Measurement& measured) {
  const int known = outer.on_the_way(outer.fragments), all = outer.on_the_way(exchanges);
  if (all <= known) return;
  constexpr auto kClass = static_cast<std::size_t>(MemoryClass::Communication);
  Metrics& metrics = measured.metrics;
  for (std::size_t r = 0; r < metrics.devices.size(); ++r) {
    Bytes& resident = measured.program.ranks.at(r).resident[kClass];
    const Bytes more = resident * (static_cast<double>(all - known) / known);
    resident += more;
    DeviceMetrics& device = metrics.devices[r];
    device.memory[kClass] += more * measured.program.memory_held;
    for (Bytes* peak : {&device.peak_memory, &device.allocated_peak}) {
      *peak += more * measured.program.memory_held;
    }
    const std::optional<Bytes>& capacity = device.memory_capacity;
    if (capacity && device.peak_memory > *capacity) metrics.fits_in_memory = false;
  }
  if (!metrics.devices.empty()) metrics.memory_capacity = fullest_device(metrics).memory_capacity;
}

}  // namespace

Program lower_outer_step(const Plan& plan, const LowerInputs& inputs, bool exchanges) {
  return lower(outer_inputs(plan, inputs, exchanges));
}

void add_outer_steps(const Plan& plan, const LowerInputs& inputs, const MeasureInputs& asked,
                     Measurement& measured) {
  const OuterSteps& outer = plan.question.layout.data_parallel.outer;
  const Measurement all = measure_outer(plan, inputs, asked, true);
  const Seconds alone = measure_outer(plan, inputs, asked, false).metrics.step_time;
  OuterCycle cycle = {.every = outer.every,
                      .exchanges = outer.fragments,
                      .overlap = outer.overlap,
                      .exchange = all.metrics.step_time - alone,
                      .apply = alone};
  if (outer.network_share > 0) {
    cycle.exchanges = exchanges_within(outer.network_share, cycle, measured.metrics.step_time);
  }
  add_buffers(outer, cycle.exchanges, measured);
  add_outer_steps(cycle, all, measured);
  set_rates(asked, measured.metrics);
}

}  // namespace interlock
