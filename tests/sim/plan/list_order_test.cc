// List orders: what they keep to, and the hand-made schedules that their rules stand for.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/list_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/random.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::list_order_test {
namespace {

using Order = std::vector<std::vector<Op>>;

/// F, then I and W or one B, of each stage of a global run, and its update; each takes `time` units
/// of its letter and, from F until the weight gradients, one unit of memory.
struct UnitTimes {
  double forward = 1, input = 1, weight = 1;  // B takes input + weight
  bool split = false;
};

std::vector<std::vector<ListOp>> unit_ops(const std::vector<StageRole>& roles,
                                          const UnitTimes& times) {
  std::vector<std::vector<ListOp>> ops;
  for (std::size_t s = 0; s < roles.size(); ++s) {
    const int stage = static_cast<int>(s), loss = roles[s].traversals.back().loss;
    ops.push_back({{.kind = OpKind::F, .loss = stage, .time = times.forward, .take = 1}});
    const OpKind back = times.split ? OpKind::I : OpKind::B;
    const double time = times.input + (times.split ? 0 : times.weight);
    ops.back().push_back({.kind = back, .loss = loss, .time = time});
    if (times.split) ops.back().push_back({.kind = OpKind::W, .loss = loss, .time = times.weight});
    ops.back().back().give = 1;
    ops.back().push_back({.kind = OpKind::U, .loss = stage, .time = 0});
  }
  return ops;
}

ListInputs unit_inputs(int stages, int micro_batches, const UnitTimes& times) {
  ListInputs inputs{.micro_batches = micro_batches, .update_every = micro_batches};
  inputs.roles = make_roles({}, stages, false);
  for (int stage = 0; stage < stages; ++stage) inputs.rank_of_stage.push_back(stage);
  inputs.ops = unit_ops(inputs.roles, times);
  return inputs;
}

std::string text_of(const std::vector<Op>& ops) {
  std::string text;
  for (const Op& op : ops) {
    text += (text.empty() ? "" : " ") + std::string(1, letter(op.kind)) +
            std::to_string(op.micro_batch);
  }
  return text;
}

TEST_CASE("backwards first and p - s forwards ahead at stage s is 1F1B") {
  ListInputs inputs = unit_inputs(3, 4, {.forward = 1, .input = 1, .weight = 1});
  const auto order = list_order(inputs, {.ahead = {3, 2, 1}});
  REQUIRE(order);
  CHECK(text_of(order->at(0)) == "F0 F1 F2 B0 F3 B1 B2 B3 U3");
  CHECK(text_of(order->at(1)) == "F0 F1 B0 F2 B1 F3 B2 B3 U3");
  CHECK(text_of(order->at(2)) == "F0 B0 F1 B1 F2 B2 F3 B3 U3");
}

TEST_CASE("a limit of memory bounds what is held as a limit of forwards ahead does") {
  ListInputs inputs = unit_inputs(3, 4, {});
  const auto bounded = list_order(inputs, {.ahead = {3, 2, 1}});
  inputs.memory = {3, 2, 1};
  CHECK(list_order(inputs, {}) == bounded);
}

TEST_CASE("weight gradients fill the time in which a rank waits") {
  // Stage 0 of two, F = I = W = 1. F0 at 0, F1 at 1; I0 of stage 1 ends at 3, so that F2 fills
  // [2, 3) and I0 of stage 0 follows; stage 1 has I1 at 4, after F1, so W0 waits for no op.
  ListInputs inputs = unit_inputs(2, 2, {.split = true});
  const auto order = list_order(inputs, {});
  REQUIRE(order);
  CHECK(text_of(order->at(0)) == "F0 F1 I0 W0 I1 W1 U1");
  CHECK(text_of(order->at(1)) == "F0 I0 F1 I1 W0 W1 U1");
}

TEST_CASE("a rank that may hold back no weight gradient makes each at once") {
  ListInputs inputs = unit_inputs(2, 3, {.split = true});
  const auto order = list_order(inputs, {.held = {0, 0}});
  REQUIRE(order);
  CHECK(text_of(order->at(1)) == "F0 I0 W0 F1 I1 W1 F2 I2 W2 U2");
}

/// Several stages a rank, any times and bytes, with and without a limit.
ListInputs random_inputs(Random& random) {
  const int stages = random.integer(1, 6), ranks = random.integer(1, stages);
  ListInputs inputs{.micro_batches = random.integer(1, 6)};
  const int n_wise = random.integer(1, stages);
  Strategy strategy = random.integer(0, 1) == 0
                          ? Strategy{}
                          : Strategy{.kind = StrategyKind::Interlocking, .n_wise = n_wise};
  if (strategy.kind == StrategyKind::Interlocking && random.integer(0, 1) == 0) {
    std::vector<int> n_of_losses;
    for (int loss = 0; loss < stages; ++loss) n_of_losses.push_back(random.integer(1, stages));
    strategy.gradient = static_cast<GradientMode>(random.integer(0, 2));
    set_reach(strategy, n_of_losses);
  }
  inputs.roles = make_roles(strategy, stages, false);
  if (strategy.kind == StrategyKind::Interlocking) inputs.in_flight = random.integer(1, 3);
  if (inputs.in_flight == 0) inputs.update_every = inputs.micro_batches;
  for (int stage = 0; stage < stages; ++stage) {
    inputs.rank_of_stage.push_back(stage % ranks);
    const double kept = random.integer(1, 4);
    std::vector<ListOp> ops = {{.kind = OpKind::F,
                                .loss = stage,
                                .time = random.uniform(),
                                .take = kept,
                                .delay = random.uniform()}};
    if (inputs.roles[stage].head) ops.push_back({.kind = OpKind::H, .loss = stage});
    for (const Traversal& traversal : inputs.roles[stage].traversals) {
      ops.push_back({.kind = OpKind::I,
                     .loss = traversal.loss,
                     .time = random.uniform(),
                     .delay = random.uniform()});
    }
    ops.push_back({.kind = OpKind::W, .loss = ops.back().loss, .time = random.uniform()});
    ops.back().give = kept;
    ops.push_back({.kind = OpKind::U, .loss = stage, .time = 0});
    inputs.ops.push_back(ops);
  }
  return inputs;
}

ListRules random_rules(Random& random, const ListInputs& inputs) {
  ListRules rules{.forward_first = random.integer(0, 1) == 0,
                  .patience = random.uniform(),
                  .first_patience = random.uniform()};
  if (random.integer(0, 1) == 0) {
    for (std::size_t s = 0; s < inputs.ops.size(); ++s) rules.ahead.push_back(random.integer(1, 4));
  }
  if (random.integer(0, 1) == 0) rules.held.assign(inputs.ops.size(), random.integer(0, 2));
  return rules;
}

TEST_CASE("a list order has every op once, each after its micro-batch's earlier ones") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(21, seed);
    const ListInputs inputs = random_inputs(random);
    const auto order = list_order(inputs, random_rules(random, inputs));
    INFO("seed " << seed);
    REQUIRE(order);
    std::map<std::tuple<int, int, int>, int> place;  // of a stage's micro-batch: ops so far
    std::size_t found = 0, expected = 0;
    for (const auto& ops : *order) {
      for (const Op& op : ops) {
        const auto& chain = inputs.ops[op.stage];
        int& next = place[{op.stage, op.micro_batch, 0}];
        CHECK(chain[next].kind == op.kind);
        CHECK(chain[next].loss == op.loss);
        ++next;
        ++found;
      }
    }
    for (const auto& chain : inputs.ops) {
      expected +=
          (chain.size() - 1) * inputs.micro_batches + inputs.micro_batches / inputs.update_every;
    }
    CHECK(found == expected);
  }
}

TEST_CASE("a list order stays within any memory that holds one micro-batch of each stage") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(22, seed);
    ListInputs inputs = random_inputs(random);
    const int ranks =
        1 + *std::max_element(inputs.rank_of_stage.begin(), inputs.rank_of_stage.end());
    inputs.memory.assign(ranks, 0);
    for (std::size_t s = 0; s < inputs.ops.size(); ++s) {
      inputs.memory[inputs.rank_of_stage[s]] += inputs.ops[s].front().take;
    }
    for (double& bytes : inputs.memory) bytes += random.integer(0, 6);
    INFO("seed " << seed);
    const auto order = list_order(inputs, random_rules(random, inputs));
    REQUIRE(order);
    for (int rank = 0; rank < ranks; ++rank) {
      double used = 0;
      for (const Op& op : order->at(rank)) {
        if (op.kind == OpKind::F) used += inputs.ops[op.stage].front().take;
        CHECK(used <= inputs.memory[rank]);
        if (op.kind == OpKind::W) used -= inputs.ops[op.stage].front().take;
      }
    }
  }
}

TEST_CASE("a list order begins a micro-batch after the update due before those in flight") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(23, seed);
    ListInputs inputs = random_inputs(random);
    if (inputs.in_flight == 0) continue;
    inputs.micro_batches = 6;
    inputs.update_every = random.integer(1, 3);
    INFO("seed " << seed << ", " << inputs.in_flight << " in flight, an update every "
                 << inputs.update_every);
    const auto order = list_order(inputs, random_rules(random, inputs));
    REQUIRE(order);
    std::map<int, int> finished, updated;  // of a stage: micro-batches with gradients, with updates
    for (const auto& ops : *order) {
      for (const Op& op : ops) {
        if (op.kind == OpKind::W) finished[op.stage] = op.micro_batch + 1;
        if (op.kind == OpKind::U) updated[op.stage] = op.micro_batch + 1;
        if (op.kind != OpKind::F) continue;
        const int before =
            op.micro_batch - inputs.in_flight + 1;  // micro-batches that must be done
        CHECK(finished[op.stage] >= before);
        CHECK(updated[op.stage] >= before / inputs.update_every * inputs.update_every);
      }
    }
  }
}

}  // namespace
}  // namespace interlock::list_order_test
