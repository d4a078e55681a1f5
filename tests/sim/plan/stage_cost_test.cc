// The price of stages: sums over their modules, done again by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>

#include "sim/plan/stage_times.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::stage_cost_test {
namespace {

OpCost random_op(Random& random) {
  return {Seconds(random.integer(0, 9)), Flops(random.integer(0, 9)), Flops(random.integer(0, 9))};
}

StageCost random_module(Random& random) {
  StageCost module;
  for (OpCost* cost :
       {&module.forward, &module.backward_input, &module.backward_weight, &module.recompute,
        &module.update, &module.head, &module.head_update, &module.first_backward_input}) {
    *cost = random_op(random);
  }
  module.backward_input += module.first_backward_input;  // of which it is a part
  for (Bytes* bytes :
       {&module.output, &module.stash, &module.workspace, &module.head_memory, &module.readout,
        &module.state.weights, &module.state.gradients, &module.state.optimizer,
        &module.head_state.weights, &module.head_state.gradients, &module.head_state.optimizer,
        &module.tied_state.weights, &module.tied_state.gradients, &module.tied_state.optimizer}) {
    *bytes = Bytes(random.integer(0, 99));
  }
  module.gradient_addition = Seconds(random.integer(0, 3));
  return module;
}

/// Random modules cut at random into stages, under a random strategy.
struct PricedCase {
  Strategy strategy;
  std::vector<StageCost> modules;
  Partition partition;
  std::vector<StageRole> roles;

  explicit PricedCase(std::uint64_t seed, bool recomputed) {
    Random random(81, seed);
    const int stages = random.integer(1, 5);
    strategy = n_wise(random.integer(1, stages), random.integer(0, 1) == 0);
    strategy.gradient = static_cast<GradientMode>(random.integer(0, 2));
    if (recomputed) strategy.kind = StrategyKind::Overlapping;
    strategy.recompute_shared_forward = recomputed;
    strategy.skip_unneeded_input_gradients = random.integer(0, 1) == 0;
    roles = make_roles(strategy, stages, random.integer(0, 1) == 0);
    partition.boundaries = {0};
    for (int part = 0; part < parts_of(strategy, stages); ++part) {
      partition.boundaries.push_back(partition.boundaries.back() + random.integer(1, 4));
    }
    for (int m = 0; m < partition.boundaries.back(); ++m) {
      modules.push_back(random_module(random));
    }
  }
  int stages() const { return static_cast<int>(roles.size()); }
  std::vector<StageCost> prices() const {
    return price_stages(modules, partition, strategy, roles);
  }
  /// The sum of a quantity over the modules [first, last).
  template <class Read>
  auto sum(int first, int last, Read read) const {
    auto total = read(modules[first]);
    for (int m = first + 1; m < last; ++m) total += read(modules[m]);
    return total;
  }
};

bool equal(const OpCost& a, const OpCost& b) {
  return a.time == b.time && a.flops == b.flops && a.counted == b.counted;
}

TEST_CASE("a stage does the ops of all its modules") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PricedCase c(seed, false);
    const auto prices = c.prices();
    INFO("seed " << seed);
    for (int s = 0; s < c.stages(); ++s) {
      const int first = c.partition.boundaries[s], last = c.partition.boundaries[s + 1];
      const auto expect = [&](OpCost StageCost::*op) {
        CHECK(equal(prices[s].*op, c.sum(first, last, [&](const StageCost& m) { return m.*op; })));
      };
      expect(&StageCost::forward);
      expect(&StageCost::backward_input);
      expect(&StageCost::backward_weight);
      expect(&StageCost::recompute);
      // Weights shared with the first module are updated wherever there is a copy of them.
      CHECK(equal(prices[s].update, c.sum(first, last, [&](const StageCost& m) {
        OpCost update = m.update;
        if (first > 0) update += m.tied_update;
        return update;
      })));
      CHECK(equal(prices[s].first_backward_input, c.modules[first].first_backward_input));
    }
  }
}

TEST_CASE("forward-forward goes back through a module, but for its input, where it is told to") {
  StageCost module;
  module.forward = {Seconds(1)};
  module.backward_input = {Seconds(5)};
  module.first_backward_input = {Seconds(2)};
  module.backward_weight = {Seconds(3)};
  module.stash = Bytes(100);
  module.output = Bytes(10);
  module.workspace = Bytes(7);
  Strategy strategy = {.kind = StrategyKind::ForwardForward};
  const std::vector<StageCost> modules(4, module);
  const Partition partition{{0, 2, 4}};
  const auto roles = make_roles(strategy, 2, false);
  for (const bool through : {false, true}) {
    strategy.module_gradients = through;
    const auto prices = price_stages(modules, partition, strategy, roles);
    for (std::size_t stage = 0; stage < 2; ++stage) {
      const StageCost& price = prices[stage];
      CHECK(price.forward.time.value() == 2 * 2 * 1);
      CHECK(price.backward_weight.time.value() == 2 * 2 * 3);
      CHECK(price.backward_input.time.value() == (through ? 2 * 2 * (5 - 2) : 0));
      CHECK(traversal_cost(price, strategy, roles[stage].traversals.back()).time ==
            price.backward_input.time + price.backward_weight.time);
      CHECK(price.output.value() == 2 * 10);
      // The output stays of all modules but the model's last, whose loss keeps what it reads.
      const double kept = through ? (stage == 0 ? 20 : 10) : 0;
      CHECK(price.stash.value() == 2 * (200 + kept));
      CHECK(price.workspace.value() == (through ? 2 * 7 : 7));
    }
  }
}

TEST_CASE("what modules of a stage read together is kept once, in each stage") {
  std::vector<StageCost> modules(5);
  const double carried[] = {0, 6, 6, 9, 0};
  for (std::size_t m = 0; m < modules.size(); ++m) {
    modules[m].stash = Bytes(10);
    modules[m].carried = Bytes(carried[m]);
  }
  const Strategy strategy;
  const auto prices =
      price_stages(modules, Partition{{0, 2, 4, 5}}, strategy, make_roles(strategy, 3, false));
  CHECK(prices[0].stash.value() == 20 + 6);
  CHECK(prices[1].stash.value() == 20 + 9);
  CHECK(prices[2].stash.value() == 10);
}

TEST_CASE("a stage holds the state of all its modules, and the head of its last if it owns one") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PricedCase c(seed, false);
    const auto prices = c.prices();
    INFO("seed " << seed);
    for (int s = 0; s < c.stages(); ++s) {
      const int first = c.partition.boundaries[s], last = c.partition.boundaries[s + 1];
      const StageCost& top = c.modules[last - 1];
      const double heads = c.roles[s].head ? 1 : 0;
      const auto expect = [&](Bytes Footprint::*part) {
        const Bytes modules = c.sum(first, last, [&](const StageCost& m) {
          return m.state.*part + (first > 0 ? m.tied_state.*part : Bytes(0));
        });
        CHECK(prices[s].state.*part == modules + heads * top.head_state.*part);
      };
      expect(&Footprint::weights);
      expect(&Footprint::gradients);
      expect(&Footprint::optimizer);
      CHECK(prices[s].head.time == heads * top.head.time);
      CHECK(prices[s].head_update.time == heads * top.head_update.time);
      CHECK(prices[s].head_memory == heads * top.head_memory);
      CHECK(prices[s].readout == heads * top.readout);
    }
  }
}

TEST_CASE("a stage stashes for all its modules, sends its last output, works in the largest room") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PricedCase c(seed, false);
    const auto prices = c.prices();
    INFO("seed " << seed);
    for (int s = 0; s < c.stages(); ++s) {
      const int first = c.partition.boundaries[s], last = c.partition.boundaries[s + 1];
      CHECK(prices[s].stash == c.sum(first, last, [](const StageCost& m) { return m.stash; }));
      CHECK(prices[s].output == c.modules[last - 1].output);
      CHECK(prices[s].gradient_addition == c.modules[last - 1].gradient_addition);
      Bytes most;
      for (int m = first; m < last; ++m) most = std::max(most, c.modules[m].workspace);
      CHECK(prices[s].workspace == most);
    }
  }
}

TEST_CASE("a block that runs the part above again is priced as both parts, and sends the lower") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PricedCase c(seed, true);
    const auto prices = c.prices();
    INFO("seed " << seed);
    for (int s = 0; s < c.stages(); ++s) {
      const int first = c.partition.boundaries[s], middle = c.partition.boundaries[s + 1];
      const int last = c.partition.boundaries[s + 2];
      const auto forward = [](const StageCost& m) { return m.forward; };
      CHECK(equal(prices[s].forward, c.sum(first, middle, forward)));
      CHECK(equal(prices[s].next_forward, c.sum(middle, last, forward)));
      CHECK(equal(prices[s].backward_weight,
                  c.sum(first, last, [](const StageCost& m) { return m.backward_weight; })));
      CHECK(prices[s].stash == c.sum(first, last, [](const StageCost& m) { return m.stash; }));
      CHECK(prices[s].output == c.modules[middle - 1].output);
      if (c.roles[s].head) CHECK(equal(prices[s].head, c.modules[last - 1].head));
    }
  }
}

TEST_CASE("a traversal is an input half, and a weight half where it trains") {
  StageCost stage;
  stage.backward_input = {Seconds(8), Flops(80)};
  stage.first_backward_input = {Seconds(3), Flops(30)};
  stage.backward_weight = {Seconds(16), Flops(160)};
  const Strategy computed = kLocal;
  Strategy skipped = kLocal;
  skipped.skip_unneeded_input_gradients = true;
  const auto cost = [&](const Strategy& strategy, bool weights, bool to_previous) {
    const OpCost c = traversal_cost(stage, strategy, {0, weights, to_previous});
    CHECK(c.flops.value() == 10 * c.time.value());
    return c.time.value();
  };
  CHECK(cost(computed, false, true) == 8);
  CHECK(cost(computed, false, false) == 8);
  CHECK(cost(computed, true, true) == 24);
  CHECK(cost(computed, true, false) == 24);
  CHECK(cost(skipped, false, true) == 8);
  CHECK(cost(skipped, false, false) == 5);
  CHECK(cost(skipped, true, true) == 24);
  CHECK(cost(skipped, true, false) == 21);
}

TEST_CASE("busy time is what the ops of a stage add up to, updates shared out") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const PricedCase c(seed, false);
    const auto prices = c.prices();
    INFO("seed " << seed);
    for (const int update_every : {1, 2, 4}) {
      const StageTime time = busy_time(c.modules, c.strategy, c.roles, update_every);
      for (int s = 0; s < c.stages(); ++s) {
        const StageCost& stage = prices[s];
        const Seconds updates = stage.update.time + stage.head_update.time;
        Seconds sum = stage.forward.time + stage.head.time +
                      c.roles[s].summed_gradients * stage.gradient_addition +
                      updates / update_every;
        for (const Traversal& traversal : c.roles[s].traversals) {
          // Each traversal recomputes what it reads.
          sum += traversal_cost(stage, c.strategy, traversal).time + stage.recompute.time;
        }
        CHECK(time(s, c.partition.boundaries[s], c.partition.boundaries[s + 1]) == sum);
      }
    }
  }
}

TEST_CASE("busy time is how long a rank computes for one micro-batch of a run") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PricedCase c(seed, false);
    TestChain chain = make_chain(c.stages(), "eager");
    chain.strategy = c.strategy;
    chain.costs = c.prices();
    const StageTime time = busy_time(c.modules, c.strategy, roles_of(chain), 1);
    std::vector<Seconds> busy(c.stages());
    run_longest_path(program_of(chain),
                     {.span = [&](const Span& span) { busy[span.rank] += span.end - span.start; }});
    INFO("seed " << seed);
    for (int s = 0; s < c.stages(); ++s) {
      const Seconds told = time(s, c.partition.boundaries[s], c.partition.boundaries[s + 1]);
      CHECK(busy[s].value() == doctest::Approx(told.value()).epsilon(1e-12));
    }
  }
}

}  // namespace
}  // namespace interlock::stage_cost_test
