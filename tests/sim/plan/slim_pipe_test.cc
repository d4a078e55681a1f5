// SlimPipe: its order, who trades attention with whom, and a timeline that is made of nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/random.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::slim_pipe_test {
namespace {

/// Times and bytes of stages whose slices take longer, the more there are before them.
struct SlimCase {
  int ranks = 1, chunks = 1, slices = 1, micro_batches = 1, steps = 1;
  bool trades = true, again = false;  // again: backwards first make attention again
  // By stage: what every slice takes, and what it takes more for each slice before it.
  std::vector<double> forward, forward_more, backward, backward_more, recompute, recompute_more;
  std::vector<int> layers;                                    // of a stage, that attend
  double keys = 0, queries = 0, outputs = 0, statistics = 0;  // bytes of a layer
  double output = 0, update = 0, latency = 0;

  int stages() const { return ranks * chunks; }
  /// Returns the layers in which two stages can trade: as many as both have.
  int both(int stage, int other) const { return std::min(layers[stage], layers[other]); }
};

SlimCase random_case(Random& random) {
  SlimCase one{.ranks = random.integer(1, 5),
               .chunks = random.integer(1, 3),
               .micro_batches = random.integer(1, 4),
               .steps = random.integer(1, 2),
               .trades = random.integer(0, 4) > 0,
               .again = random.integer(0, 1) == 0};
  one.slices = one.ranks + random.integer(0, 2 * one.ranks);
  for (int stage = 0; stage < one.stages(); ++stage) {
    for (auto list : {&SlimCase::forward, &SlimCase::forward_more, &SlimCase::backward,
                      &SlimCase::backward_more, &SlimCase::recompute, &SlimCase::recompute_more}) {
      (one.*list).push_back(0.1 + random.uniform());
    }
    one.layers.push_back(random.integer(0, 3));
  }
  one.keys = 100 * random.uniform();
  one.queries = 100 * random.uniform();
  one.outputs = 100 * random.uniform();
  one.statistics = 10 * random.uniform();
  one.output = random.integer(0, 1) * 200 * random.uniform();
  one.update = random.uniform();
  one.latency = 0.1 * random.uniform();
  return one;
}

StageCost cost_of(const SlimCase& one, int stage, int slice) {
  const auto op = [](double seconds, double flops = 0) {
    return OpCost{.time = Seconds(seconds), .flops = Flops(flops)};
  };
  const double before = slice, flops = one.layers[stage] * (1 + before);
  StageCost cost;
  cost.forward = op(one.forward[stage] + one.forward_more[stage] * before, flops);
  cost.backward_input = op(one.backward[stage] + one.backward_more[stage] * before, 2 * flops);
  cost.context.forward = op(one.forward_more[stage] * before, flops);
  cost.context.backward_input = op(one.backward_more[stage] * before, 2 * flops);
  if (one.again) {
    cost.recompute = op(one.recompute[stage] + one.recompute_more[stage] * before, flops);
    cost.context.recompute = op(one.recompute_more[stage] * before, flops);
  }
  const double layers = one.layers[stage];
  cost.context.bytes = {one.layers[stage], Bytes(layers * one.keys), Bytes(layers * one.queries),
                        Bytes(layers * one.outputs), Bytes(layers * one.statistics)};
  cost.update = op(one.update);
  cost.output = Bytes(one.output);
  cost.stash = Bytes(64);
  return cost;
}

Program program_of(const SlimCase& one) {
  TestChain chain = make_laid_chain(one.ranks, "slimpipe", {}, one.chunks);
  chain.policy.trades_context = one.trades;
  LowerInputs inputs{.policy = chain.policy, .roles = roles_of(chain), .cluster = chain.cluster};
  inputs.schedule = make_schedule({.stages = one.stages(),
                                   .slices = one.slices,
                                   .micro_batches = one.micro_batches * one.slices,
                                   .steps = one.steps,
                                   .rank_of_stage = chain.rank_of_stage,
                                   .roles = inputs.roles,
                                   .policy = chain.policy});
  inputs.cluster.machines.front().port_latency = Seconds(one.latency);
  inputs.policy.update_every = inputs.schedule.micro_batches;
  for (int slice = 0; slice < one.slices; ++slice) {
    for (int stage = 0; stage < one.stages(); ++stage) {
      inputs.stages.push_back(cost_of(one, stage, slice));
    }
  }
  return lower(inputs);
}

/// An op as the oracle knows it. Peer: the rank that it trades with, of whose list the op is.
struct Item {
  char kind = 'F';
  int step = 0, micro_batch = 0, chunk = 0, slice = 0;
  int turn = 0;              // all ranks have at most one of a kind in a turn
  int peer = -1, gives = 0;  // gives: slices of attention; negative: it makes those
  std::size_t peer_item = 0;
};
using Lists = std::vector<std::vector<Item>>;

/// Writes the lists as a runtime would come to them: slices in flight are counted, and a forward
/// begins while fewer than wanted are; else the newest slice whose turn it is goes back.
Lists lists_of(const SlimCase& one) {
  const int p = one.ranks, n = one.slices, v = one.chunks;
  int group = p;
  while (n % group != 0) ++group;
  std::vector<Item> way;  // of a micro-batch, forward
  for (int first = 0; first < n; first += group) {
    for (int chunk = 0; chunk < v; ++chunk) {
      for (int s = first; s < first + group; ++s) way.push_back({.chunk = chunk, .slice = s});
    }
  }
  Lists lists(p);
  for (int step = 0; step < one.steps; ++step) {
    for (int rank = 0; rank < p; ++rank) {
      int forwards = 0, backwards = 0;
      const int all = one.micro_batches * static_cast<int>(way.size());
      const int wanted = static_cast<int>(way.size()) + 2 * (p - rank - 1);
      const auto put = [&](char kind, int number) {
        Item item =
            kind == 'F' ? way[number % way.size()] : way[way.size() - 1 - number % way.size()];
        item.kind = kind;
        item.step = step;
        item.micro_batch = number / static_cast<int>(way.size());
        item.turn = number + (kind == 'F' ? rank : p - 1 - rank);
        lists[rank].push_back(item);
      };
      while (backwards < all) {
        if (forwards < all && forwards - backwards < wanted) put('F', forwards++);
        if (forwards == all || forwards - backwards == wanted) put('B', backwards++);
      }
      lists[rank].push_back({.kind = 'U', .step = step});
    }
  }
  return lists;
}

/// Lets the ranks of every turn that all of them have trade: longest context with shortest.
void pair_up(const SlimCase& one, Lists& lists) {
  using Place = std::pair<int, std::size_t>;  // rank, item
  std::map<std::tuple<int, char, int>, std::vector<std::pair<int, Place>>> turns;
  for (int rank = 0; rank < one.ranks; ++rank) {
    for (std::size_t i = 0; i < lists[rank].size(); ++i) {
      const Item& item = lists[rank][i];
      if (item.kind != 'U')
        turns[{item.step, item.kind, item.turn}].push_back({item.slice, {rank, i}});
    }
  }
  for (auto& [turn, members] : turns) {
    if (!one.trades || static_cast<int>(members.size()) < one.ranks) continue;
    std::sort(members.begin(), members.end());
    while (members.size() > 1) {
      const auto [less, shorter] = members.front();
      const auto [more, longer] = members.back();
      members.erase(members.begin());
      members.pop_back();
      const int moved = (more - less) / 2;
      if (moved == 0) continue;
      Item &maker = lists[shorter.first][shorter.second],
           &giver = lists[longer.first][longer.second];
      if (one.both(maker.chunk * one.ranks + shorter.first,
                   giver.chunk * one.ranks + longer.first) == 0) {
        continue;
      }
      maker.peer = longer.first, maker.peer_item = longer.second, maker.gives = -moved;
      giver.peer = shorter.first, giver.peer_item = shorter.second, giver.gives = moved;
    }
  }
}

/// Plays the lists. A rank does one thing after the other; what ranks send each other goes one
/// after the other, too, at 1000 bytes a second.
class Player {
 public:
  Player(const SlimCase& one, Lists lists)
      : one_(one), lists_(std::move(lists)), next_(one.ranks), free_(one.ranks, 0.0) {}

  double play() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < one_.ranks; ++rank) {
        while (next_[rank] < lists_[rank].size() && step(rank)) moved = true;
      }
    }
    for (int rank = 0; rank < one_.ranks; ++rank) REQUIRE(next_[rank] == lists_[rank].size());
    return *std::max_element(free_.begin(), free_.end());
  }
  double traded() const { return traded_; }
  /// Returns bytes of trades times the time that devices hold them.
  double held() const { return held_; }

 private:
  int stage_of(int rank, const Item& item) const { return item.chunk * one_.ranks + rank; }

  /// Returns when an item has what it reads; nothing if that is not known.
  std::optional<double> ready(int rank, const Item& item) const {
    const int stage = stage_of(rank, item), from = item.kind == 'F' ? stage - 1 : stage + 1;
    if (item.kind == 'U' || from < 0 || from == one_.stages()) return free_[rank];
    const auto found = arrivals_.find({item.step, item.kind, item.micro_batch, item.slice, from});
    if (found == arrivals_.end()) return std::nullopt;
    return std::max(free_[rank], found->second);
  }

  /// Returns how long an item takes if `layers` of its stage attend to `slices` more than it does.
  double time_of(int rank, const Item& item, double slices, int layers = 0) const {
    const int stage = stage_of(rank, item);
    if (item.kind == 'U') return one_.chunks * one_.update;
    const double more = slices == 0 ? 0 : slices * layers / one_.layers[stage];
    if (item.kind == 'F') {
      return one_.forward[stage] + one_.forward_more[stage] * item.slice +
             one_.forward_more[stage] * more;
    }
    const double again = one_.again
                             ? one_.recompute[stage] + one_.recompute_more[stage] * item.slice +
                                   one_.recompute_more[stage] * more
                             : 0;
    return again + one_.backward[stage] + one_.backward_more[stage] * item.slice +
           one_.backward_more[stage] * more;
  }

  /// Sends bytes at `time`, and returns when they have left.
  double send(int from, int to, double bytes, double time) {
    double& busy = wires_[{from, to}];
    return busy = std::max(busy, time) + bytes / 1000;
  }

  void finish(int rank, const Item& item, double end) {
    free_[rank] = end;
    ++next_[rank];
    if (item.kind == 'U') return;
    const int stage = stage_of(rank, item), to = item.kind == 'F' ? stage + 1 : stage - 1;
    if (to < 0 || to == one_.stages()) return;
    const int other = to % one_.ranks;
    arrivals_[{item.step, item.kind, item.micro_batch, item.slice, stage}] =
        other == rank ? end : send(rank, other, one_.output, end) + one_.latency;
  }

  bool step(int rank) {
    const Item& item = lists_[rank][next_[rank]];
    const auto own = ready(rank, item);
    if (!own) return false;
    if (item.peer < 0) {
      finish(rank, item, *own + time_of(rank, item, 0));
      return true;
    }
    if (next_[item.peer] != item.peer_item) return false;
    const Item& other = lists_[item.peer][item.peer_item];
    const auto others = ready(item.peer, other);
    if (!others) return false;
    const bool gives = item.gives > 0;
    trade(gives ? rank : item.peer, gives ? item : other, gives ? item.peer : rank,
          gives ? other : item, std::max(*own, *others));
    return true;
  }

  void trade(int giver, const Item& given, int maker, const Item& made, double start) {
    const int layers = one_.both(stage_of(giver, given), stage_of(maker, made));
    const double slices = given.gives, merged = one_.outputs + one_.statistics;
    double request = 0, answer = 0;
    if (given.kind == 'F' || one_.again) {
      request += one_.queries + slices * one_.keys;
      answer += merged;
    }
    if (given.kind == 'B') {
      request += one_.queries + slices * one_.keys + merged + one_.outputs;
      answer += one_.queries + slices * one_.keys;
    }
    // A device holds what one layer needs of a pass; the giver's own tensors are there anyway.
    const bool back = given.kind == 'B';
    const double asked = one_.queries + slices * one_.keys;
    const double request_held = back ? asked + merged + one_.outputs : asked;
    const double answer_held = !back ? merged : one_.again ? std::max(asked, merged) : asked;
    request *= layers, answer *= layers;
    traded_ += request + answer;
    const double arrived = send(giver, maker, request, start) + one_.latency;
    const double done = start + time_of(giver, given, -slices, layers);
    const double helped = std::max(arrived, start + time_of(maker, made, slices, layers));
    const double left = send(maker, giver, answer, helped);
    const double end = std::max(done, left + one_.latency * layers);
    held_ += request_held * (helped - start) + answer_held * (left - helped + end - helped);
    finish(maker, made, left);
    finish(giver, given, end);
  }

  const SlimCase& one_;
  Lists lists_;
  std::vector<std::size_t> next_;
  std::vector<double> free_;
  double traded_ = 0, held_ = 0;
  std::map<std::pair<int, int>, double> wires_;
  std::map<std::tuple<int, char, int, int, int>, double> arrivals_;
};

double traded_bytes(const Program& program, const TraceLog& log) {
  double bytes = 0;
  for (const Transfer& transfer : log.transfers) {
    const Channel& channel = program.channels[transfer.channel];
    if (channel.cargo == Cargo::Context) bytes += channel.bytes.value();
  }
  return bytes;
}

/// Returns bytes of messages times the time that devices hold them.
double held_bytes(const TraceLog& log) {
  double held = 0;
  for (const MemoryChange& change : log.memory) {
    if (change.memory_class != MemoryClass::Boundary) continue;
    held -= change.bytes * change.time.value();
  }
  return held;
}

Flops flops_of(const Program& program, const TraceLog& log) {
  Flops flops(0);
  for (const Span& span : log.spans) flops += program.ops[span.op].flops;
  return flops;
}

TEST_CASE("a step of SlimPipe ends when a list of its ops, played by hand, does") {
  int traded = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(400)); ++seed) {
    Random random(371, seed);
    const SlimCase one = random_case(random);
    Lists lists = lists_of(one);
    pair_up(one, lists);
    Player player(one, lists);
    const double expected = player.play();
    const Program program = program_of(one);
    const Realised run = realise(program, run_native);
    INFO("seed " << seed << ": p " << one.ranks << ", v " << one.chunks << ", n " << one.slices
                 << ", m " << one.micro_batches << ", " << one.steps << " steps: " << expected
                 << " s by hand, simulated " << run.summary.makespan.value());
    CHECK(run.deadlock == "");
    CHECK(std::abs(run.summary.makespan.value() - expected) <= 1e-9 * expected);
    CHECK(std::abs(traded_bytes(program, run.log) - player.traded()) <= 1e-6);
    if (one.output == 0) {
      CHECK(held_bytes(run.log) == doctest::Approx(player.held()).epsilon(1e-6));
    }
    CHECK(difference(run, realise(program, run_event_loop)) == "");
    traded += player.traded() > 0 ? 1 : 0;
    SlimCase alone = one;  // what is moved is not lost
    alone.trades = false;
    const Program without = program_of(alone);
    const Flops all = flops_of(without, realise(without, run_native).log);
    CHECK(flops_of(program, run.log).value() == doctest::Approx(all.value()));
  }
  CHECK(traded > met_by_cases(150));
}

TEST_CASE("a vocabulary on all ranks runs with any number of slices, few ones too") {
  for (const int ranks : {2, 3, 4, 5, 7, 8, 12, 16}) {
    for (int slices = 1; slices <= 6; ++slices) {
      Random random(372, static_cast<std::uint64_t>(10 * ranks + slices));
      TestChain chain = make_laid_chain(ranks, "slimpipe");
      chain.slices = slices;
      draw_costs(chain, random);
      chain.policy.vocabulary = VocabularySplit::TwoBarriers;
      chain.contention = false;
      INFO(ranks << " ranks, " << slices << " slices");
      CHECK(realise(program_of(chain), run_native).deadlock == "");
    }
  }
}

TEST_CASE("rank 0 of four leaves a slice of slice 7's attention to rank 3, who is at slice 4") {
  TestChain chain = make_laid_chain(4, "slimpipe", {}, 1);
  chain.policy.trades_context = true;
  const Schedule schedule = make_schedule({.stages = 4,
                                           .slices = 8,
                                           .micro_batches = 16,
                                           .rank_of_stage = chain.rank_of_stage,
                                           .roles = roles_of(chain),
                                           .policy = chain.policy});
  const std::vector<Op> ops = expand(schedule.ranks[0].front());
  CHECK(ops[7].trade == ContextTrade{-1, 3, -3});
  CHECK(ops[6].trade == ContextTrade{-1, 3, -3});  // slices 6, 5, 4 and 3
  CHECK(ops[2].trade == ContextTrade{});           // rank 3 has no work yet
  // Rank 0 is at slice 0 of the next micro-batch, rank 1 still at slice 7 of the first.
  CHECK(ops[8].trade == ContextTrade{3, 1, -1});
}

}  // namespace
}  // namespace interlock::slim_pipe_test
