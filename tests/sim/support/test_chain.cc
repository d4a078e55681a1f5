// Building chains and their programs.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/support/test_chain.h"

#include <algorithm>
#include <functional>

namespace interlock {

namespace {

StageCost cost_of(const ChainStage& stage) {
  const auto op = [](double seconds) {
    return OpCost{Seconds(seconds), Flops(seconds), Flops(seconds)};
  };
  return {.forward = op(stage.forward),
          .backward_input = op(stage.backward_input),
          .backward_weight = op(stage.backward_weight),
          .update = op(stage.update),
          .head = op(stage.head),
          .output = Bytes(stage.output),
          .stash = Bytes(stage.stash)};
}

Cluster mesh(int devices) {
  return {.machines = {{.devices_per_node = devices, .port_bandwidth = BytesPerSecond(1000)}},
          .devices = devices,
          .mesh = true};
}

/// Whole numbers from 0 to `most`, or any number between.
using Draw = std::function<double(int most)>;

StageCost random_cost(Random& random, const Draw& draw) {
  StageCost cost = cost_of({.forward = draw(3),
                            .backward_input = draw(3),
                            .backward_weight = draw(3),
                            .head = draw(4),
                            .update = draw(1),
                            .output = 1000 * draw(2),
                            .stash = 4000 * draw(2)});
  cost.first_backward_input.time = cost.backward_input.time / 2;
  cost.next_forward = {Seconds(draw(2)), Flops(1)};
  cost.link = {.backward_input = {Seconds(draw(2)), Flops(1)},
               .backward_weight = {Seconds(draw(2)), Flops(1)}};
  cost.link.first_backward_input.time = cost.link.backward_input.time / 4;
  if (random.integer(0, 3) == 0) {
    cost.recompute = {Seconds(draw(2)), Flops(1)};
    cost.link.recompute = cost.recompute;
  }
  cost.gradient_addition = Seconds(draw(1));
  cost.workspace = Bytes(1000 * draw(1));
  cost.head_memory = Bytes(1000 * draw(1));
  cost.readout = Bytes(1000 * draw(1));
  cost.state = {Bytes(1000 * draw(2)), Bytes(1000 * draw(2)), Bytes(1000 * draw(2))};
  return cost;
}

std::vector<int> divisors(int number) {
  std::vector<int> found;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) found.push_back(d);
  }
  return found;
}

template <class Choice>
Choice one_of(Random& random, const std::vector<Choice>& choices) {
  return choices[random.integer(0, static_cast<int>(choices.size()) - 1)];
}

std::vector<int> random_reach(Random& random, int stages) {
  std::vector<int> n_of_losses;
  for (int loss = 0; loss < stages; ++loss) n_of_losses.push_back(random.integer(1, stages));
  return n_of_losses;
}

Strategy random_strategy(Random& random, std::string_view kind, int stages) {
  Strategy strategy;
  if (schedule_named(kind).global()) return strategy;
  std::vector<StrategyKind> kinds = {StrategyKind::Local, StrategyKind::Interlocking};
  const bool no_gradients = kind == "ppll" || schedule_named(kind).replays;
  if (no_gradients) {
    kinds = {StrategyKind::Local, StrategyKind::Greedy, StrategyKind::ForwardForward,
             StrategyKind::Tree};
  } else if (kind != "list") {
    for (int other = 3; other <= 9; ++other) kinds.push_back(static_cast<StrategyKind>(other));
  }
  strategy.kind = one_of(random, kinds);
  strategy.n_wise = random.integer(1, stages + 1);
  strategy.chunks = one_of(random, divisors(stages));
  strategy.arity = random.integer(1, 3);
  strategy.gradient = static_cast<GradientMode>(random.integer(0, 2));
  strategy.all_heads = random.integer(0, 1) == 0;
  strategy.skip_unneeded_input_gradients = random.integer(0, 1) == 0;
  strategy.recompute_shared_forward = random.integer(0, 1) == 0;
  if (strategy.kind == StrategyKind::Interlocking && random.integer(0, 1) == 0) {
    set_reach(strategy, random_reach(random, stages));
  }
  return strategy;
}

QueuePolicy random_queue(Random& random) {
  return {static_cast<QueuePolicy::Kind>(random.integer(0, 2)), random.integer(1, 2)};
}

int ranks_of(const TestChain& chain) {
  return *std::max_element(chain.rank_of_stage.begin(), chain.rank_of_stage.end()) + 1;
}

int stages_of_copy(const TestChain& chain) {
  return static_cast<int>(chain.rank_of_stage.size()) / chain.copies;
}

/// Stages on ranks, as the schedule lays them, and micro-batches; not yet checked.
TestChain random_shape(Random& random, std::string_view kind, int most_stages) {
  const ScheduleEntry& entry = schedule_named(kind);
  TestChain chain;
  if (entry.layout == StageLayout::Any || entry.layout == StageLayout::OneEach) {
    chain = make_chain(random.integer(1, most_stages), kind);
    const int stages = stages_of_copy(chain);
    const int ranks = entry.layout == StageLayout::Any ? random.integer(1, stages) : stages;
    for (int stage = 0; stage < stages; ++stage) chain.rank_of_stage[stage] = stage % ranks;
    chain.micro_batches = random.integer(1, 4);
  } else {
    const int rows = has_copies(entry.layout) ? 2 * entry.chunks : random.integer(1, 4);
    chain = make_laid_chain(random.integer(1, 4), kind, {}, rows);
    chain.micro_batches = random.integer(1, 12);
    chain.policy.folds = random.integer(1, 2);
  }
  if (entry.slices) chain.slices = random.integer(1, 3);
  chain.policy.update_every = one_of(random, divisors(chain.micro_batches));
  return chain;
}

/// Returns whether weight gradients of the readout of `chain` may be put off.
bool may_defer(const TestChain& chain) {
  return chain.strategy.kind == StrategyKind::Global && deferral_problem(chain.policy).empty();
}

/// Returns whether each rank of `chain` may hold a part of the vocabulary.
bool may_divide_vocabulary(const TestChain& chain) {
  const int ranks = ranks_of(chain), each = chain.policy.kind->layout == StageLayout::V ? 2 : 1;
  return chain.strategy.kind == StrategyKind::Global && vocabulary_problem(chain.policy).empty() &&
         ranks > 1 && ranks * each == stages_of_copy(chain);
}

void divide_vocabulary(TestChain& chain, Random& random) {
  const bool even = chain.policy.kind->even_slices;  // with two barriers alone
  chain.policy.vocabulary = static_cast<VocabularySplit>(even ? 1 : random.integer(1, 2));
  chain.contention = false;  // of broadcasts with sums
  const auto op = [&] { return OpCost{Seconds(random.integer(0, 2)), Flops(1), Flops(1)}; };
  const VocabularyCost cost = {.s = op(),
                               .t = op(),
                               .e = op(),
                               .g = op(),
                               .hidden = Bytes(random.integer(1, 2000)),
                               .statistics = Bytes(random.integer(1, 500)),
                               .kept = Bytes(random.integer(0, 20)),
                               .workspace = Bytes(random.integer(0, 20))};
  for (StageCost& stage : chain.costs) stage.vocabulary = cost;
}

TestChain random_chain_of(Random& random, std::string_view kind, int most_stages) {
  TestChain chain = random_shape(random, kind, most_stages);
  while (!shape_problem(chain).empty()) chain = random_shape(random, kind, most_stages);
  const ScheduleEntry& entry = schedule_named(kind);
  chain.steps = random.integer(1, 4);
  chain.strategy = random_strategy(random, kind, stages_of_copy(chain));
  draw_costs(chain, random);
  if (entry.overlaps) chain.policy.overlap = random.integer(0, 2) / 2.0;
  if (entry.replays) {
    chain.policy.queue = {QueuePolicy::Kind::Buffered, random.integer(1, 3)};
    return chain;
  }
  // Several stages in one order, or forwards ahead, seldom end with short queues.
  const bool needs_room = !is_plain(chain) && random.integer(0, 3) > 0;
  if (!needs_room) chain.policy.queue = random_queue(random);
  chain.policy.copies_on_compute_stream = !needs_room && random.integer(0, 3) == 0;
  chain.policy.barrier = random.integer(0, 3) == 0;
  const bool may_split = kind != "naive" && kind != "naive-split" && kind != "list";
  if (may_split && is_plain(chain)) chain.policy.split_backward = random.integer(0, 1) == 0;
  const int every = random.integer(0, 2);
  const bool one_chain =
      chain.strategy.kind != StrategyKind::Tree && chain.strategy.kind != StrategyKind::Independent;
  if (every * chain.micro_batches > 1 && !entry.global() && one_chain) {
    chain.strategy.readout_every = every;
  }
  if (may_defer(chain) && random.integer(0, 2) == 0) {
    chain.policy.deferred_readout = random.integer(1, chain.micro_batches + 1);
    StageCost& last = chain.costs.back();
    last.deferrable = last.backward_weight;
    last.deferrable.time = last.deferrable.time * 0.5;
    last.deferrable.flops = last.deferrable.flops * 0.5;
    last.deferred = Bytes(random.integer(0, 20));
  }
  if (may_divide_vocabulary(chain) && random.integer(0, 1) == 0) divide_vocabulary(chain, random);
  return chain;
}

}  // namespace

Strategy n_wise(int n, bool all_heads) {
  return {.kind = StrategyKind::Interlocking, .n_wise = n, .all_heads = all_heads};
}

TestChain make_chain(const std::vector<ChainStage>& stages, std::string_view kind) {
  const ScheduleEntry& entry = schedule_named(kind);
  TestChain chain;
  chain.policy = {.kind = &entry, .split_backward = entry.split_backward, .replays = entry.replays};
  if (!entry.global()) {
    chain.strategy = kLocal;
    chain.policy.queue = {QueuePolicy::Kind::Buffered, 1};
  }
  for (const ChainStage& stage : stages) {
    chain.rank_of_stage.push_back(static_cast<int>(chain.costs.size()));
    chain.costs.push_back(cost_of(stage));
  }
  chain.cluster = mesh(static_cast<int>(stages.size()));
  return chain;
}

TestChain make_chain(int stages, std::string_view kind) {
  return make_chain(std::vector<ChainStage>(stages), kind);
}

std::vector<std::string_view> families() {
  std::vector<std::string_view> kinds;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (entry.order == OrderSource::Function) kinds.push_back(entry.name);
  }
  return kinds;
}

std::string shape_problem(const TestChain& chain) {
  const ScheduleEntry& entry = *chain.policy.kind;
  if (entry.problem == nullptr) return "";
  return entry.problem({.ranks = ranks_of(chain),
                        .stages = stages_of_copy(chain),
                        .micro_batches = chain.micro_batches,
                        .update_every = chain.policy.update_every,
                        .folds = chain.policy.folds,
                        .slices = chain.slices});
}

void draw_costs(TestChain& chain, Random& random) {
  const bool whole = random.integer(0, 1) == 0;
  const Draw draw = [&](int most) {
    return whole ? random.integer(0, most) : most * random.uniform();
  };
  chain.costs.clear();
  for (int slice = 0; slice < chain.slices; ++slice) {
    std::vector<StageCost> of_copy(stages_of_copy(chain));
    for (StageCost& cost : of_copy) cost = random_cost(random, draw);
    apply_stash_mode(chain.policy.kind->stash, of_copy);
    for (int copy = 0; copy < chain.copies; ++copy) {
      chain.costs.insert(chain.costs.end(), of_copy.begin(), of_copy.end());
    }
  }
  chain.cluster.machines.front().port_latency = Seconds(draw(2));
}

TestChain random_chain(Random& random) { return random_chain(random, one_of(random, families())); }

TestChain random_chain(Random& random, std::string_view kind) {
  TestChain chain = random_chain_of(random, kind, 6);
  if (kind == "eager") chain.policy.in_flight = random.integer(1, 3);
  return chain;
}

TestChain random_choosing_chain(Random& random) {
  TestChain chain = random_chain_of(random, "eager", 6);
  if (random.integer(0, 1) == 0) {
    for (int& rank : chain.rank_of_stage) rank /= 2;
  }
  const int last = chain.rank_of_stage.back();
  const bool alone = last == static_cast<int>(chain.rank_of_stage.size()) - 1;
  chain.policy.in_flight = random.integer(alone ? 2 : 1, 3);
  return chain;
}

std::string describe(const TestChain& chain) {
  const Strategy& strategy = chain.strategy;
  const SchedulePolicy& policy = chain.policy;
  std::string text = policy.kind->name + ", " + name_of(strategy);
  text += ", " + std::to_string(chain.rank_of_stage.size()) + " stages on ranks";
  for (const int rank : chain.rank_of_stage) text += ' ' + std::to_string(rank);
  text += ", M " + std::to_string(chain.micro_batches) + ", steps " + std::to_string(chain.steps);
  text += ", slices " + std::to_string(chain.slices);
  text += ", gradient " + std::to_string(static_cast<int>(strategy.gradient));
  text += ", queue " + std::to_string(static_cast<int>(policy.queue.kind)) + '/' +
          std::to_string(policy.queue.depth);
  text += ", in_flight " + std::to_string(policy.in_flight) + ", update_every " +
          std::to_string(policy.update_every);
  text += ", readout_every " + std::to_string(strategy.readout_every);
  const auto flag = [&](bool set, const char* name) { text += set ? name : ""; };
  flag(policy.overlap > 0, ", overlapping");
  flag(policy.split_backward, ", split");
  flag(policy.deferred_readout > 0, ", readout deferred");
  flag(policy.vocabulary == VocabularySplit::TwoBarriers, ", vocab-1");
  flag(policy.vocabulary == VocabularySplit::OneBarrier, ", vocab-2");
  flag(policy.messages.lines == MessageOrder::Lines::Rank, ", in line by rank");
  flag(policy.messages.lines == MessageOrder::Lines::Pair, ", in line by pair");
  flag(policy.messages.batched, ", batched");
  flag(policy.messages.late, ", late");
  flag(policy.waits_for_sends, ", waiting for sends");
  flag(policy.copies_on_compute_stream, ", copies on compute stream");
  flag(policy.barrier, ", barrier");
  flag(strategy.all_heads, ", all heads");
  flag(strategy.skip_unneeded_input_gradients, ", skipping");
  flag(strategy.recompute_shared_forward, ", recomputing");
  return text;
}

bool is_flushed(const TestChain& chain) { return chain.policy.kind->flushes; }

bool is_plain(const TestChain& chain) {
  const StageLayout layout = chain.policy.kind->layout;
  return layout == StageLayout::Any || layout == StageLayout::OneEach;
}

int update_every(const TestChain& chain) {
  return chain.slices * (is_flushed(chain) ? chain.micro_batches : chain.policy.update_every);
}

std::vector<StageRole> roles_of(const TestChain& chain) {
  const bool list = chain.policy.kind->name == "list";
  return roles_of_copies(make_roles(chain.strategy, stages_of_copy(chain), list), chain.copies);
}

Schedule schedule_of(const TestChain& chain) {
  const int period = chain.strategy.readout_every * chain.micro_batches;
  return make_schedule({.stages = static_cast<int>(chain.rank_of_stage.size()),
                        .copies = chain.copies,
                        .slices = chain.slices,
                        .micro_batches = chain.micro_batches * chain.slices,
                        .steps = chain.steps,
                        .rank_of_stage = chain.rank_of_stage,
                        .roles = roles_of(chain),
                        .policy = chain.policy,
                        .unroll = std::max(1, period)});
}

Program program_of(const TestChain& chain) {
  LowerInputs inputs{.schedule = schedule_of(chain),
                     .policy = chain.policy,
                     .strategy = chain.strategy,
                     .roles = roles_of(chain),
                     .stages = chain.costs,
                     .cluster = chain.cluster};
  inputs.policy.update_every = update_every(chain);
  inputs.most_ticks_per_second = chain.most_ticks_per_second;
  inputs.contention = chain.contention;
  if (chain.policy.vocabulary != VocabularySplit::Whole) {
    inputs.mesh.degree(Dimension::Pipeline) = ranks_of(chain);
  }
  return lower(inputs);
}

ProgramOfSteps programs_of(const TestChain& chain) {
  return [chain](int steps, double most_ticks_per_second) {
    TestChain longer = chain;
    longer.steps = steps;
    longer.most_ticks_per_second = most_ticks_per_second;
    return program_of(longer);
  };
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (const auto& sequences : schedule.ranks) {
    std::string line;
    for (const Sequence& sequence : sequences) {
      if (!line.empty()) line += " |";
      for (const Op& op : expand(sequence)) {
        if (!line.empty()) line += ' ';
        line += std::to_string(op.stage) + letter(op.kind) + std::to_string(op.micro_batch);
        if (op.kind == OpKind::I) line += ':' + std::to_string(op.loss);
      }
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace interlock
