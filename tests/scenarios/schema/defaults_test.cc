// Defaults: the meaning of a scenario where it says nothing.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/documents.h"

namespace interlock::defaults_test {
namespace {

TEST_CASE("a scenario that says little is complete") {
  const Question scenario = loaded();
  CHECK(scenario.name == "test");
  CHECK(scenario.ranks == 4);
  CHECK(scenario.stages == 4);
  CHECK(scenario.placement == std::vector<int>{0, 1, 2, 3});
  CHECK(scenario.partition.kind == PartitionRule::Kind::Balanced);
  CHECK(scenario.micro_batches == 1);
  CHECK(scenario.precision == Precision::Bf16);
  CHECK(scenario.optimizer == Optimizer::SgdMomentum);
  CHECK(scenario.recompute == Recompute::None);
  CHECK(scenario.steps == 8);
  CHECK(scenario.engine == EngineKind::Auto);
  CHECK(scenario.seed == 1);
  CHECK(!scenario.graph.samples_per_micro_batch);
}

TEST_CASE("global training is naive for one micro-batch and 1F1B for more") {
  const Question one = loaded();
  CHECK(one.schedule.kind->name == "naive");
  const Question several = loaded({"training.micro_batches=8"});
  CHECK(several.schedule.kind->name == "1f1b");
  for (const Question& scenario : {one, several}) {
    CHECK(!scenario.schedule.split_backward);
    CHECK(scenario.schedule.queue.kind == QueuePolicy::Kind::Unlimited);
    CHECK(!scenario.schedule.copies_on_compute_stream);
    CHECK(!scenario.schedule.barrier);
    CHECK(scenario.schedule.update_every == scenario.micro_batches);
  }
  CHECK(loaded({"training.schedule=naive-split"}).schedule.split_backward);
  CHECK(!loaded({"training.schedule=gpipe"}).schedule.split_backward);
}

TEST_CASE("local and interlocking training is eager, split, with one message queued") {
  for (const char* strategy : {"local", "pairwise", "greedy", "overlapping"}) {
    CAPTURE(strategy);
    const Question scenario =
        loaded({std::string("training.strategy=") + strategy, "training.micro_batches=6"});
    CHECK(scenario.schedule.kind->name == "eager");
    CHECK(scenario.schedule.split_backward);
    CHECK(scenario.schedule.queue.kind == QueuePolicy::Kind::Buffered);
    CHECK(scenario.schedule.queue.depth == 1);
    CHECK(scenario.schedule.in_flight == 1);
    CHECK(scenario.schedule.update_every == 6);
    CHECK(!scenario.strategy.all_heads);
    CHECK(!scenario.strategy.skip_unneeded_input_gradients);
    CHECK(scenario.strategy.gradient == GradientMode::Furthest);
  }
}

TEST_CASE("the list schedule is fused and runs all heads unless told otherwise") {
  const Overrides list = {"training.strategy={\"kind\": \"interlocking\", \"n_wise\": 3}",
                          "training.schedule=list"};
  const Question scenario = loaded(list);
  CHECK(scenario.schedule.kind->name == "list");
  CHECK(!scenario.schedule.split_backward);
  CHECK(scenario.strategy.all_heads);
  Overrides minimal = list;
  minimal.push_back("training.strategy.heads=minimal");
  CHECK(!loaded(minimal).strategy.all_heads);
  CHECK(loaded({"training.strategy={\"kind\": \"pairwise\", \"heads\": \"all\"}"})
            .strategy.all_heads);
}

TEST_CASE("short names of strategies mean the objects they stand for") {
  CHECK(loaded({"training.strategy=local"}).strategy.kind == StrategyKind::Local);
  const Strategy pairwise = loaded({"training.strategy=pairwise"}).strategy;
  CHECK(pairwise.kind == StrategyKind::Interlocking);
  CHECK(pairwise.n_wise == 2);
  CHECK(loaded({"training.strategy={\"kind\": \"pairwise\"}"}).strategy.n_wise == 2);
  CHECK(loaded({"training.strategy=interlocking"}).strategy.n_wise == 2);
}

TEST_CASE("a loss that reaches further than there are stages is global in extent") {
  CHECK(loaded({"training.strategy={\"kind\": \"interlocking\", \"n_wise\": 9}"}).strategy.n_wise ==
        4);
}

TEST_CASE("every policy of the contract is read") {
  const Question scenario = loaded(
      {R"(training.strategy={"kind": "interlocking", "n_wise": 3, "gradient": "sum", "heads": "all",
          "unneeded_input_gradients": "skipped"})",
       R"(training.schedule={"kind": "eager", "backward": "fused", "queue": "rendezvous",
          "copies": "overlapped", "in_flight": 2, "update_every": 3,
          "optimizer_sync": "barrier"})",
       "training.micro_batches=6", "training.precision=fp16", "training.optimizer=adamw",
       "training.recompute=full", "training.steps=3", "simulate.engine=native", "simulate.seed=7"});
  CHECK(scenario.strategy.n_wise == 3);
  CHECK(scenario.strategy.gradient == GradientMode::Sum);
  CHECK(scenario.strategy.all_heads);
  CHECK(scenario.strategy.skip_unneeded_input_gradients);
  CHECK(!scenario.schedule.split_backward);
  CHECK(scenario.schedule.queue.kind == QueuePolicy::Kind::Rendezvous);
  CHECK(!scenario.schedule.copies_on_compute_stream);
  CHECK(loaded({R"(training.schedule={"kind": "1f1b", "copies": "compute_stream"})"})
            .schedule.copies_on_compute_stream);
  CHECK(scenario.schedule.in_flight == 2);
  CHECK(scenario.schedule.update_every == 3);
  CHECK(scenario.schedule.barrier);
  CHECK(scenario.precision == Precision::Fp16);
  CHECK(scenario.optimizer == Optimizer::Adam);
  CHECK(scenario.recompute == Recompute::Full);
  CHECK(scenario.steps == 3);
  CHECK(scenario.engine == EngineKind::Native);
  CHECK(scenario.seed == 7);
}

TEST_CASE("queues are unlimited, rendezvous or of a depth") {
  const auto queue = [](const std::string& value) {
    return loaded({"training.strategy=pairwise", "training.schedule.queue=" + value})
        .schedule.queue;
  };
  CHECK(queue("unlimited").kind == QueuePolicy::Kind::Unlimited);
  CHECK(queue("rendezvous").kind == QueuePolicy::Kind::Rendezvous);
  CHECK(queue("{\"buffered\": 5}").kind == QueuePolicy::Kind::Buffered);
  CHECK(queue("{\"buffered\": 5}").depth == 5);
}

TEST_CASE("batch and micro-batch say how many micro-batches and samples there are") {
  const Overrides mlp = {
      R"(model={"kind": "mlp", "input_size": 8, "hidden_sizes": [8, 8, 8], "classes": 2})",
      "cluster=dgx-a100-80g", "parallel.pipeline=4"};
  // Overrides merge objects, so the profile of the test document is replaced through a text.
  const auto sizes = [&](Overrides more) {
    more.insert(more.begin(), {"model=none", mlp[0], "cluster=none", mlp[1], mlp[2]});
    const Question scenario = loaded(more);
    REQUIRE(scenario.graph.samples_per_micro_batch);
    return std::pair(scenario.micro_batches, *scenario.graph.samples_per_micro_batch);
  };
  CHECK(sizes({"training.global_batch_size=24"}) == std::pair(1, 24.0));
  CHECK(sizes({"training.global_batch_size=24", "training.micro_batch_size=6"}) ==
        std::pair(4, 6.0));
  CHECK(sizes({"training.global_batch_size=24", "training.micro_batches=8"}) == std::pair(8, 3.0));
}

TEST_CASE("a profile knows its samples only if the scenario names a batch") {
  CHECK(!loaded({"training.micro_batches=4"}).graph.samples_per_micro_batch);
  const Question named = loaded({"training.micro_batches=4", "training.global_batch_size=12"});
  CHECK(named.graph.samples_per_micro_batch == 3.0);
  CHECK(named.micro_batches == 4);
}

TEST_CASE("stale copies of the readout are the strategy's business, also with the model's head") {
  const std::string head = R"({"weights": {"stale_every": 4}})";
  CHECK(loaded({"training.strategy={\"kind\": \"local\", \"head\": " + head + "}"})
            .strategy.readout_every == 4);
  CHECK(loaded({"training.strategy=local"}).strategy.readout_every == 0);
}

TEST_CASE("the name is the file's unless the scenario has one") {
  CHECK(loaded({"name=four"}).name == "four");
  CHECK(load_questions(parse_json(kFourModules, "some/folder/toy.json")).front().name == "toy");
}

}  // namespace
}  // namespace interlock::defaults_test
