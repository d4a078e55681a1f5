// Costs of messages: copies, gathers and casts beside what stages compute.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/costs/message_costs.h"

#include <algorithm>
#include <utility>

#include "hardware/networks/cluster.h"
#include "scenarios/plan/lower_plan.h"
#include "sim/plan/schedules/message_bytes.h"

namespace interlock {

namespace {

/// Returns the neighbouring stages on different ranks, between which messages go.
std::vector<std::pair<StageCost*, StageCost*>> stages_apart(const Plan& plan,
                                                            std::vector<StageCost>& stages) {
  std::vector<std::pair<StageCost*, StageCost*>> pairs;
  for (std::size_t stage = 0; stage + 1 < stages.size(); ++stage) {
    if (plan.rank_of_stage[stage] == plan.rank_of_stage[stage + 1]) continue;
    pairs.emplace_back(&stages[stage], &stages[stage + 1]);
  }
  return pairs;
}

Bytes sent_output(const StageCost& stage) { return stage.sent_output.value_or(stage.output); }

Bytes sent_gradient(const StageCost& stage) { return stage.sent_gradient.value_or(stage.output); }

}  // namespace

void add_message_copies(const Plan& plan, std::vector<StageCost>& stages) {
  const Training& training = plan.question.training();
  const BytesPerSecond rate = training.framework.message_copies;
  if (rate == BytesPerSecond()) return;
  for (const auto& [before, after] : stages_apart(plan, stages)) {
    const OpCost up{.time = sent_output(*before) / rate, .messages = 1},
        down{.time = sent_gradient(*before) / rate, .messages = 1};
    for (StageCost* end : {before, after}) {
      end->forward += up;
      if (training.strategy.kind == StrategyKind::Global) end->backward_input += down;
    }
  }
}

void add_message_gathers(const Plan& plan, const PriceInputs& prices,
                         std::vector<StageCost>& stages) {
  if (plan.schedule.message_parts == 1) return;
  const bool global = plan.question.training().strategy.kind == StrategyKind::Global;
  for (const auto& [before, after] : stages_apart(plan, stages)) {
    const auto gather = [&](Bytes bytes) -> OpCost {
      const Exchange exchange{
          .kind = CollectiveKind::AllGather, .bytes = bytes, .layout = before->layout};
      return {.waiting = prices.exchange_time(exchange), .exchanges = {exchange}};
    };
    after->forward += gather(sent_output(*before));
    if (global) before->backward_input += gather(sent_gradient(*before));
  }
}

namespace {

/// A tensor as a strategy sends it, and the casts of a device on either end.
struct Sent {
  std::optional<Bytes> bytes;
  OpCost cast, cast_back;
};

/// Returns what casts of `tensor` cost where `parts` devices send a part each.
Sent sent(Bytes tensor, SentFormat format, int parts, const PriceInputs& prices) {
  if (format == SentFormat::Computed) return {};
  const Bytes bytes = cast_bytes(format, tensor, element_bytes(prices.precision));
  const auto cast = [&](int devices) {
    OpCost cost = pass_cost((tensor + bytes) / devices, prices);
    cost.messages = 1;
    return cost;
  };
  return {bytes, cast(parts), cast(1)};
}

/// Returns the number of tensor devices that send a part each of what modules of `layout` hand on.
int parts_of_messages(const Question& question, int layout) {
  const int parts = question.training().schedule.message_parts;
  if (parts == 1 || question.layout.layer_layouts.empty()) return parts;
  return question.layout.layers().at(layout).degree(Dimension::Tensor);
}

/// A boundary behind a module or a stage, and what passes it.
struct Boundary {
  Sent output, gradient;
};

Boundary behind(const StageCost& cost, const Question& question, const PriceInputs& prices) {
  const Strategy& strategy = question.training().strategy;
  const int parts = parts_of_messages(question, cost.layout);
  return {sent(cost.output, strategy.activation_format, parts, prices),
          sent(cost.output_gradient(), strategy.gradient_format, parts, prices)};
}

/// The time of casts at a boundary: of outputs and gradients, as they leave and as they are read.
struct BoundaryCasts {
  Seconds output, output_read, gradient, gradient_read;
};

/// Returns the time in which a stage casts gradients in a role. `above`, `below`: its boundaries,
/// if messages cross them.
Seconds gradient_casts(const StageRole& role, int stage, const BoundaryCasts& above,
                       const BoundaryCasts& below) {
  Seconds time;
  for (const Traversal& traversal : role.traversals) {
    const std::size_t added = added_before(role, stage, traversal.loss).size();
    const std::size_t read = added + (traversal.loss > stage ? 1 : 0);
    time += static_cast<double>(read) * above.gradient_read;
    if (traversal.to_previous) time += below.gradient;
  }
  return time;
}

}  // namespace

void add_message_casts(const Plan& plan, const PriceInputs& prices,
                       std::vector<StageCost>& stages) {
  if (!casts_messages(plan.question.training().strategy)) return;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    const Boundary above = behind(stages[s], plan.question, prices);
    stages[s].sent_output = above.output.bytes;
    stages[s].sent_gradient = above.gradient.bytes;
    MessageCasts& casts = stages[s].casts;
    casts.output = above.output.cast;
    casts.gradient_read = above.gradient.cast_back;
    const int before = stage_before(plan.question.training().strategy, s);
    if (before < 0) continue;
    const Boundary below = behind(stages[before], plan.question, prices);
    casts.output_read = below.output.cast_back;
    casts.gradient = below.gradient.cast;
  }
}

StageTime cast_time(const Question& question, const PriceInputs& prices,
                    const std::vector<StageCost>& modules, std::vector<int> rank_of_stage) {
  const Strategy& strategy = question.training().strategy;
  if (!casts_messages(strategy) || rank_of_stage.empty()) return {};
  std::vector<BoundaryCasts> boundaries;  // behind each module
  boundaries.reserve(modules.size());
  for (const StageCost& module : modules) {
    const auto [output, gradient] = behind(module, question, prices);
    boundaries.push_back({output.cast.whole(), output.cast_back.whole(), gradient.cast.whole(),
                          gradient.cast_back.whole()});
  }
  const int stages = static_cast<int>(rank_of_stage.size());
  const auto roles = make_roles(strategy, stages, question.training().schedule.kind->sends_lists);
  return [=, ranks = std::move(rank_of_stage)](int stage, int first, int last) {
    if (stage >= stages) return Seconds(0);  // the last part of overlapping blocks
    const auto apart = [&](int other) { return ranks[stage] != ranks[other]; };
    const int before = stage_before(strategy, stage);
    const bool reads = before >= 0 && apart(before);
    const BoundaryCasts below = reads ? boundaries[first - 1] : BoundaryCasts{};
    const bool read = stage + 1 < stages && apart(stage + 1);
    const BoundaryCasts above = read ? boundaries[last - 1] : BoundaryCasts{};
    Seconds time = below.output_read;
    for (const int next : stages_after(strategy, stage, stages)) {
      if (apart(next)) time += boundaries[last - 1].output;
    }
    const StageRole& role = roles[stage];
    const Seconds crossing = gradient_casts(role, stage, above, below);
    if (role.alone.empty()) return time + crossing;
    const Seconds alone = gradient_casts(role.alone.front(), stage, above, below);
    return time + alone + (crossing - alone) / role.gradient_every;
  };
}

StageMessages stage_messages(const Question& question, const std::vector<StageCost>& modules,
                             const std::vector<int>& rank_of_stage) {
  const Strategy& strategy = question.training().strategy;
  const PriceInputs prices = price_inputs(question);
  std::vector<std::pair<Bytes, Bytes>> sent;  // behind each module: up and down
  sent.reserve(modules.size());
  for (const StageCost& module : modules) {
    const auto [output, gradient] = behind(module, question, prices);
    const int parts = parts_of_messages(question, module.layout);
    sent.emplace_back(output.bytes.value_or(module.output) / parts,
                      gradient.bytes.value_or(module.output_gradient()) / parts);
  }
  const auto device = [&](int stage) {
    return device_of(question.layout.mesh, {0, 0, 0, rank_of_stage[stage]});
  };
  const int stages = static_cast<int>(rank_of_stage.size());
  std::vector<std::vector<Route>> routes(rank_of_stage.size());  // from each stage to those above
  for (int stage = 0; stage < stages; ++stage) {
    for (const int next : stages_after(strategy, stage, stages)) {
      if (rank_of_stage[stage] == rank_of_stage[next]) continue;
      routes[stage].push_back(route(question.cluster, device(stage), device(next)));
    }
  }
  const auto occupied = [=](int stage, int last) {
    Seconds longest;
    const auto [up, down] = sent[last - 1];
    for (const Route& way : routes[stage]) {
      longest = std::max(longest, std::max(up, down) / way.bandwidth);
    }
    return longest;
  };
  const auto round_trip = [=](int stage, int first) {
    if (routes[stage - 1].empty()) return Seconds(0);
    const Route& way = routes[stage - 1].front();
    const auto [up, down] = sent[first - 1];
    return 2 * way.latency + (up + down) / way.bandwidth;
  };
  return {occupied, round_trip};
}

}  // namespace interlock
