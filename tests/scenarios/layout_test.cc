// Which rank runs which stage, and which modules a stage holds.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "scenarios/plan/plan.h"
#include "sim/plan/stage_cost.h"
#include "tests/scenarios/documents.h"

namespace interlock::layout_test {
namespace {

const std::string kEight = "model.modules.0.repeat=8";

TEST_CASE("placement loop wraps around the ranks, v turns back") {
  const Overrides six = {kEight, "parallel.pipeline=3", "parallel.stages=6"};
  CHECK(loaded(six).layout.placement == std::vector<int>{0, 1, 2, 0, 1, 2});
  Overrides v = six;
  v.push_back("parallel.placement=v");
  CHECK(loaded(v).layout.placement == std::vector<int>{0, 1, 2, 2, 1, 0});
  v[2] = "parallel.stages=8";
  CHECK(loaded(v).layout.placement == std::vector<int>{0, 1, 2, 2, 1, 0, 0, 1});
}

TEST_CASE("a list places every stage, and no rank may be left without one") {
  const Overrides four = {"parallel.pipeline=2", "parallel.stages=4"};
  const auto with = [&](const std::string& list) {
    Overrides all = four;
    all.push_back("parallel.placement=" + list);
    return all;
  };
  CHECK(loaded(with("[1, 0, 0, 1]")).layout.placement == std::vector<int>{1, 0, 0, 1});
  CHECK(mistakes(with("[0, 0, 0, 0]")) ==
        "set: /parallel/placement: rank 1 holds no stage; expected one for each of the 2 ranks");
  CHECK(mistakes(with("[0, 1]")) ==
        "set: /parallel/placement: names the rank of 2 stages; expected 4");
  CHECK(mistakes(with("[0, 1, 2, 0]")) ==
        "set: /parallel/placement/2: expected a whole number from 0 to 1, got 2");
}

TEST_CASE("cuts and ranks may be left to a search") {
  const Question all = loaded(
      {"parallel.pipeline=2", "parallel.stages=4", "partition=auto", "parallel.placement=auto"});
  CHECK(all.layout.partition.kind == PartitionRule::Kind::Auto);
  CHECK(all.layout.lays_freely);
  CHECK(all.layout.placement == std::vector<int>{0, 1, 0, 1});
  CHECK_FALSE(loaded({"parallel.placement=loop"}).layout.lays_freely);
}

TEST_CASE("greedy training has a stage for each module, laid over the ranks in blocks") {
  const Plan plan =
      lay_out(loaded({kEight, "parallel.pipeline=3", "training.strategy=greedy"})).draft;
  CHECK(plan.partition.boundaries == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  // Eight equal modules over three ranks: no rank may hold more than three.
  REQUIRE(plan.rank_of_stage.size() == 8);
  CHECK(std::is_sorted(plan.rank_of_stage.begin(), plan.rank_of_stage.end()));
  for (int rank = 0; rank < 3; ++rank) {
    const auto held = std::count(plan.rank_of_stage.begin(), plan.rank_of_stage.end(), rank);
    CHECK(held >= 2);
    CHECK(held <= 3);
  }
}

TEST_CASE("chunks have whole numbers of stages") {
  const auto chunked = [](int chunks, Overrides more) {
    more.push_back(kEight);
    more.push_back(
        "training.strategy={\"kind\": \"chunked\", \"chunks\": " + std::to_string(chunks) + "}");
    return more;
  };
  CHECK(loaded(chunked(2, {})).layout.stages == 4);
  CHECK(loaded(chunked(8, {})).layout.placement == std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(mistakes(chunked(3, {"parallel.pipeline=4"})) ==
        "set: /parallel/pipeline: 4 stages make no whole number for each of the 3 chunks; expected "
        "parallel.stages such as 6; or training.strategy.chunks such as 2");
  CHECK(loaded(chunked(3, {"parallel.stages=6"})).layout.stages == 6);
}

TEST_CASE("uniform and explicit partitions are what they say") {
  const Overrides three = {kEight, "parallel.pipeline=3"};
  const auto with = [&](const std::string& partition) {
    Overrides all = three;
    all.push_back("partition=" + partition);
    return all;
  };
  CHECK(lay_out(loaded(with("uniform"))).draft.partition.boundaries ==
        std::vector<int>{0, 3, 6, 8});
  CHECK(lay_out(loaded(with("[1, 5, 2]"))).draft.partition.boundaries ==
        std::vector<int>{0, 1, 6, 8});
  CHECK(mistakes(with("[1, 5, 3]")) ==
        "set: /partition: places 9 modules; expected all 8 of the model");
  CHECK(mistakes(with("[4, 4]")) ==
        "set: /partition: gives the modules of 2 stages; expected those of 3");
  CHECK(mistakes(with("[8, 0, 0]")) ==
        "set: /partition/1: expected a whole number from 1 to 1000000, got 0\n"
        "set: /partition/2: expected a whole number from 1 to 1000000, got 0");
}

/// Busy time of the busiest stage, added up from the prices of the stages themselves.
Seconds busiest(const Plan& plan) {
  const Question& scenario = plan.question;
  const Training& training = scenario.training();
  const std::vector<StageRole> roles =
      make_roles(training.strategy, plan.partition.stages(), false);
  const auto modules = price_modules(training.graph, {scenario.cluster.machines.front().device,
                                                      training.precision, training.optimizer});
  const auto stages = price_stages(modules, plan.partition, training.strategy, roles);
  Seconds most;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageCost& stage = stages[i];
    Seconds busy = stage.forward.time + stage.recompute.time + stage.backward_weight.time +
                   stage.update.time / training.schedule.update_every;
    busy += stage.backward_input.time * static_cast<double>(roles[i].traversals.size());
    if (roles[i].head) {
      busy += stage.head.time + stage.head_update.time / training.schedule.update_every;
    }
    most = std::max(most, busy);
  }
  return most;
}

/// The least `busiest` over every way to cut the modules into as many stages.
Seconds best_by_search(Plan plan) {
  const int modules = static_cast<int>(plan.question.training().graph.modules.size());
  std::vector<int>& cuts = plan.partition.boundaries;
  Seconds best(1e300);
  const std::function<void(std::size_t)> place = [&](std::size_t stage) {
    if (stage + 1 == cuts.size()) {
      best = std::min(best, busiest(plan));
      return;
    }
    const int left = static_cast<int>(cuts.size() - 1 - stage);
    for (cuts[stage] = cuts[stage - 1] + 1; cuts[stage] <= modules - left; ++cuts[stage]) {
      place(stage + 1);
    }
  };
  place(1);
  return best;
}

TEST_CASE("balanced stages are as busy as in the best of all cuts, heads and traversals included") {
  for (const char* strategy : {R"("global")", R"("local")"}) {
    CAPTURE(strategy);
    const std::string text = std::string(R"({"model": "resnet-50", "partition": "balanced",
        "cluster": {"machine": "dgx-a100-80g", "devices": 4},
        "training": {"global_batch_size": 32, "strategy": )") +
                             strategy + "}}";
    const Plan plan = lay_out(load_questions(parse_json(text, "test.json")).front()).draft;
    CHECK(plan.partition.stages() == 4);
    const double found = busiest(plan).value(), best = best_by_search(plan).value();
    MESSAGE(std::string(strategy) << ": busiest stage " << found << " s, best of all cuts " << best
                                  << " s");
    CHECK(found == doctest::Approx(best).epsilon(1e-12));
  }
}

TEST_CASE("layouts that fit neither the cluster nor the model are refused with the numbers") {
  CHECK(mistakes({"parallel.pipeline=5"}) ==
        "set: /parallel/pipeline: more ranks than devices; expected 1 to the 4 devices of the "
        "cluster, got 5");
  CHECK(mistakes({"parallel.stages=5"}) ==
        "set: /parallel/stages: more stages than modules; expected 1 to the 4 modules of the "
        "model, got 5");
  CHECK(mistakes({R"(training.schedule={"kind": "interleaved", "chunks": 2})",
                  "training.micro_batches=4"}) ==
        "test.json:1: more stages than modules: \"interleaved\" puts 2 on each of the 4 ranks "
        "(parallel.pipeline); expected 1 to the 4 modules of the model, got 8");
  CHECK(mistakes({"cluster.devices=5"}) ==
        "test.json:1: more stages than modules: there is one for each of the 5 ranks "
        "(parallel.pipeline); expected 1 to the 4 modules of the model, got 5");
  CHECK(mistakes({"parallel.stages=3"}) ==
        "set: /parallel/stages: fewer stages than ranks, and every rank must hold one; expected at "
        "least 4, got 3");
  CHECK(mistakes({"parallel.pipeline=2", "parallel.stages=3", "training.strategy=greedy"}) ==
        "set: /parallel/stages: greedy training has a loss on every module, so each is a stage; "
        "expected 4, got 3");
}

}  // namespace
}  // namespace interlock::layout_test
