// Tokens that pass to experts beside kernels: pairs as a graph of what waits for what, and as run.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/passages.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::passages_test {
namespace {

/// Times of one layer of an op, in seconds.
struct Layer {
  double around = 0, experts = 0, there = 0, back = 0;
  double delayed_around = 0, delayed_experts = 0;  // weight gradients that come last
};

PassageChain chain_of(const Layer& layer, int layers, bool back) {
  PassageChain chain = {.turns = layers, .back = back};
  const auto all = [&](double time) { return Seconds(layers * time); };
  chain.times.at[static_cast<std::size_t>(KernelPlace::Around)] = all(layer.around);
  chain.times.at[static_cast<std::size_t>(KernelPlace::Experts)] = all(layer.experts);
  chain.delayed.at[static_cast<std::size_t>(KernelPlace::Around)] = all(layer.delayed_around);
  chain.delayed.at[static_cast<std::size_t>(KernelPlace::Experts)] = all(layer.delayed_experts);
  return chain;
}

WayTimes ways_of(const Layer& layer) { return {Seconds(layer.there), Seconds(layer.back)}; }

/// Tasks on two machines, each with a list of what must end before it begins; the end of the last
/// is found by relaxing until nothing moves.
class Graph {
 public:
  void add(const std::string& name, double time, const std::vector<std::string>& after) {
    tasks_[name] = {time, after};
  }
  /// Each of `names` runs after the one before it.
  void in_order(const std::vector<std::string>& names) {
    for (std::size_t i = 1; i < names.size(); ++i) tasks_[names[i]].after.push_back(names[i - 1]);
  }
  double end() {
    std::map<std::string, double> ends;
    double last = 0;
    for (std::size_t round = 0; round <= tasks_.size(); ++round) {
      for (const auto& [name, task] : tasks_) {
        double start = 0;
        for (const std::string& before : task.after) start = std::max(start, ends[before]);
        ends[name] = start + task.time;
        last = std::max(last, ends[name]);
      }
    }
    return last;
  }

 private:
  struct Task {
    double time = 0;
    std::vector<std::string> after;
  };
  std::map<std::string, Task> tasks_;
};

/// The pair as Megatron-Core's TransformerLayerSchedulePlan.run says it of each layer:
///   comm: combine_bwd      | dispatch_fwd -> dispatch_bwd   | combine_fwd
///   comp: pre_dispatch_fwd | mlp_bwd -> mlp_bwd_dw -> mlp_fwd | pre_dispatch_bwd (-> its dw)
double pair_by_graph(const Layer& f, const Layer& b, int layers) {
  Graph graph;
  std::vector<std::string> kernels, messages;
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    const auto when = [&](const std::string& name) {
      return i == 0 ? std::vector<std::string>{} : std::vector<std::string>{name + before};
    };
    graph.add("combine_bwd" + n, b.back, when("attn_bwd"));
    graph.add("attn_fwd" + n, f.around, when("combine_fwd"));
    graph.add("mlp_bwd" + n, b.experts, {"combine_bwd" + n});
    graph.add("dispatch_fwd" + n, f.there, {"attn_fwd" + n});
    graph.add("mlp_dw" + n, b.delayed_experts, {});
    graph.add("dispatch_bwd" + n, b.there, {"mlp_bwd" + n});
    graph.add("mlp_fwd" + n, f.experts, {"dispatch_fwd" + n});
    graph.add("combine_fwd" + n, f.back, {"mlp_fwd" + n});
    graph.add("attn_bwd" + n, b.around, {"dispatch_bwd" + n});
    graph.add("attn_dw" + n, b.delayed_around, {});
    for (const char* one : {"attn_fwd", "mlp_bwd", "mlp_dw", "mlp_fwd", "attn_bwd", "attn_dw"}) {
      kernels.push_back(one + n);
    }
    for (const char* one : {"combine_bwd", "dispatch_fwd", "dispatch_bwd", "combine_fwd"}) {
      messages.push_back(one + n);
    }
  }
  graph.in_order(kernels);
  graph.in_order(messages);
  return graph.end();
}

Layer drawn(Random& random, bool delays) {
  const auto some = [&] { return static_cast<double>(random.integer(0, 6)); };
  Layer layer = {1 + some(), 1 + some(), 1 + some(), some()};
  if (delays) {
    layer.delayed_around = some();
    layer.delayed_experts = some();
  }
  return layer;
}

TEST_CASE("a pair takes as long as Megatron-Core's order of its pieces, as a graph") {
  Random random(5, 1);
  int hidden = 0;
  for (int i = 0; i < 2000; ++i) {
    const int layers = random.integer(1, 4);
    const bool delays = random.integer(0, 1) == 1;
    const Layer f = drawn(random, false), b = drawn(random, delays);
    const auto steps = steps_of_pair(chain_of(f, layers, false), chain_of(b, layers, true));
    const double time = time_of(steps, {ways_of(f), ways_of(b)}).value();
    const double kernels = layers * (f.around + f.experts + b.around + b.experts +
                                     b.delayed_around + b.delayed_experts);
    const double messages = layers * (f.there + f.back + b.there + b.back);
    INFO(layers << " layers; forward " << f.around << " " << f.there << " " << f.experts << " "
                << f.back << "; backward " << b.back << " " << b.experts << " " << b.there << " "
                << b.around);
    CHECK(time == doctest::Approx(pair_by_graph(f, b, layers)));
    CHECK(time >= std::max(kernels, messages));
    CHECK(time <= kernels + messages);
    hidden += time < kernels + messages ? 1 : 0;
  }
  CHECK(hidden > 1000);
}

TEST_CASE("ways no longer than the kernels beside them show once: the last forward's way back") {
  // Forward: around 3, experts 4; backward: experts 5, around 6; ways of 2. back(B) is beside
  // around(F), there(F) beside experts(B), there(B) beside experts(F), back(F) beside around(B).
  const Layer f = {3, 4, 2, 2}, b = {6, 5, 2, 2};
  for (const int layers : {1, 2, 7}) {
    const auto steps = steps_of_pair(chain_of(f, layers, false), chain_of(b, layers, true));
    CHECK(time_of(steps, {ways_of(f), ways_of(b)}) == Seconds(layers * 18));
  }
}

TEST_CASE("layers that one op of a pair has more run alone, and what has no experts beside none") {
  const Layer f = {3, 4, 1, 2}, b = {6, 5, 1, 2};
  PassageChain forward = chain_of(f, 5, false), backward = chain_of(b, 2, true);
  forward.times.apart = Seconds(100);
  const auto steps = steps_of_pair(forward, backward);
  CHECK(time_of(steps, {ways_of(f), ways_of(b)}) == Seconds(2 * 18 + 3 * (3 + 1 + 4 + 2) + 100));
  const PassageChain nothing = {.times = {.apart = Seconds(7)}};
  CHECK(time_of(steps_of_pair(nothing, backward), {WayTimes(), ways_of(b)}) ==
        Seconds(7 + 2 * (2 + 5 + 1 + 6)));
}

TEST_CASE("an op alone waits for each way, less what stands beside it") {
  PassageChain chain = chain_of({3, 4, 2, 2}, 2, false);
  const WayTimes ways = {Seconds(2), Seconds(5)};
  CHECK(time_of(steps_alone(chain), {ways}) == Seconds(2 * (3 + 2 + 4 + 5)));
  chain.times.at[static_cast<std::size_t>(KernelPlace::BesideThere)] = Seconds(2 * 3);
  chain.times.at[static_cast<std::size_t>(KernelPlace::BesideBack)] = Seconds(2 * 1);
  CHECK(time_of(steps_alone(chain), {ways}) == Seconds(2 * (3 + 3 + 4 + 5)));
  chain.back = true;
  CHECK(time_of(steps_alone(chain), {ways}) == Seconds(2 * (3 + 3 + 4 + 5)));
}

/// Costs of a stage of `layers` layers whose tokens pass among two devices at 1 kB/s.
StageCost stage_of(const Layer& f, const Layer& b, int layers) {
  const auto op = [&](const Layer& layer, double around, double experts) {
    OpCost cost{.time = Seconds(layers * (around + experts)), .flops = Flops(layers)};
    cost.at[static_cast<std::size_t>(KernelPlace::Around)] = Seconds(layers * around);
    cost.at[static_cast<std::size_t>(KernelPlace::Experts)] = Seconds(layers * experts);
    for (const TokenWay way : {TokenWay::There, TokenWay::Back}) {
      const double time = way == TokenWay::There ? layer.there : layer.back;
      cost.exchanges.push_back({.kind = CollectiveKind::AllToAll,
                                .axis = MeshAxis::Expert,
                                .bytes = Bytes(2000 * time),  // half of it stays
                                .count = layers,
                                .way = way});
    }
    return cost;
  };
  StageCost stage{.forward = op(f, f.around, f.experts),
                  .backward_input = op(b, b.around, b.experts),
                  .backward_weight = op(b, b.delayed_around, b.delayed_experts)};
  stage.backward_weight.exchanges.clear();
  return stage;
}

/// One stage on two devices that share its experts.
LowerInputs inputs_of(const TestChain& chain, const StageCost& stage) {
  LowerInputs inputs{.schedule = schedule_of(chain),
                     .policy = chain.policy,
                     .strategy = chain.strategy,
                     .roles = roles_of(chain),
                     .stages = {stage},
                     .cluster = chain.cluster};
  inputs.cluster.devices = inputs.cluster.machines.front().devices_per_node = 2;
  inputs.mesh.degree(Dimension::Data) = inputs.mesh.expert = 2;
  inputs.policy.update_every = chain.micro_batches;
  return inputs;
}

TestChain pairs_of(int micro_batches) {
  TestChain chain = make_chain(1, "1f1b");
  chain.micro_batches = micro_batches;
  chain.policy.passes_in_pairs = chain.policy.delays_weights = true;
  return chain;
}

TEST_CASE("a run of pairs takes as long as its pairs, whether devices stand for others or not") {
  Random random(7, 1);
  for (int i = 0; i < 200; ++i) {
    const int layers = random.integer(1, 4), micro_batches = random.integer(1, 5);
    const Layer f = drawn(random, false), b = drawn(random, true);
    const double alone = layers * (f.around + f.experts + f.there + f.back + b.around + b.experts +
                                   b.there + b.back + b.delayed_around + b.delayed_experts);
    const double time = alone + (micro_batches - 1) * pair_by_graph(f, b, layers);
    INFO(layers << " layers, " << micro_batches << " micro-batches: the first forward, "
                << micro_batches - 1 << " pairs, and the last backward");
    for (const bool folds : {true, false}) {
      LowerInputs inputs = inputs_of(pairs_of(micro_batches), stage_of(f, b, layers));
      inputs.unfolded[static_cast<std::size_t>(Dimension::Data)] = !folds;
      const Program program = lower(inputs);
      CHECK(program.ranks.size() == (folds ? 1 : 2));
      const Realised run = realise(program, run_native);
      CHECK(run.deadlock == "");
      CHECK(run.summary.makespan.value() == doctest::Approx(time).epsilon(1e-12));
      double flops = 0;
      for (const Span& span : run.log.spans) flops += program.ops[span.op].flops.value();
      CHECK(flops / static_cast<double>(program.ranks.size()) ==
            doctest::Approx(3.0 * layers * micro_batches));
    }
  }
}

TEST_CASE("the stash of a pair is one, and a layer: what a backward gives back a forward takes") {
  for (const int layers : {1, 3, 4}) {
    StageCost stage = stage_of({3, 4, 2, 2}, {6, 5, 2, 2}, layers);
    stage.stash = Bytes(1200);
    const Realised run = realise(lower(inputs_of(pairs_of(4), stage)), run_native);
    std::map<Seconds, double> changes;  // all of one instant count together
    for (const MemoryChange& change : run.log.memory) changes[change.time] += change.bytes;
    double held = 0, most = 0;
    for (const auto& [time, bytes] : changes) {
      held += bytes;
      most = std::max(most, held);
    }
    CHECK(held == 0);
    CHECK(most == doctest::Approx(1200 + 1200.0 / layers));
  }
}

// On two ranks no early receive holds anything up, see the closed form of interleaved 1F1B in line.
TEST_CASE("pieces of a pair take turns, and its messages leave in line once both ops are done") {
  const StageCost stage = stage_of({3, 4, 2, 2}, {6, 5, 2, 2}, 3);
  for (const std::string_view kind : {"interleaved", "dualpipe-v"}) {
    TestChain chain = make_laid_chain(2, kind);
    chain.micro_batches = 6;
    chain.steps = 2;
    chain.policy.passes_in_pairs = true;
    std::vector<Realised> runs;
    for (const auto lines :
         {MessageOrder::Lines::Free, MessageOrder::Lines::Rank, MessageOrder::Lines::Pair}) {
      for (const bool waits : {false, true}) {
        chain.policy.messages.lines = lines;
        chain.policy.waits_for_sends = waits;
        LowerInputs inputs = inputs_of(chain, stage);
        inputs.stages.assign(chain.costs.size(), stage);
        inputs.mesh.degree(Dimension::Pipeline) = 2;
        inputs.cluster.devices = inputs.cluster.machines.front().devices_per_node = 4;
        runs.push_back(realise(lower(inputs), run_native));
        INFO(kind << ", lines " << static_cast<int>(lines) << ", waits for sends: " << waits);
        CHECK(runs.back().deadlock == "");
        CHECK(runs.back().summary.tasks == runs.front().summary.tasks);
        CHECK(runs.back().summary.makespan.value() ==
              doctest::Approx(runs.front().summary.makespan.value()));
      }
    }
  }
}

TEST_CASE("pairs of an interleaved schedule end, with one forward more ahead than without") {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int chunks : {2, 3}) {
      for (const int rounds : {1, 2, 5}) {
        TestChain chain = make_laid_chain(ranks, "interleaved", {.output = 100}, chunks);
        chain.micro_batches = ranks * rounds;
        chain.steps = 2;
        chain.policy.passes_in_pairs = true;
        const Program program = program_of(chain);
        const Realised run = realise(program, run_native);
        INFO(ranks << " ranks, " << chunks << " chunks, " << chain.micro_batches
                   << " micro-batches");
        CHECK(run.deadlock == "");
        CHECK(run.summary.tasks == count_tasks(program));
        const std::vector<Op> ops = expand(schedule_of(chain).ranks[0].front());
        std::size_t ahead = 0;
        while (ops[ahead].kind == OpKind::F && !ops[ahead].overlaps_next) ++ahead;
        const int usual = 2 * (ranks - 1) + (chunks - 1) * ranks + 1;
        CHECK(static_cast<int>(ahead) == std::min(usual, chunks * chain.micro_batches));
      }
    }
  }
}

}  // namespace
}  // namespace interlock::passages_test
