// Defaults: the meaning of a scenario where it says nothing.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/documents.h"

namespace interlock::defaults_test {
namespace {

TEST_CASE("a scenario that says little is complete") {
  const Question scenario = loaded();
  CHECK(scenario.name == "test");
  CHECK(scenario.layout.ranks() == 4);
  CHECK(scenario.layout.stages == 4);
  CHECK(scenario.layout.placement == std::vector<int>{0, 1, 2, 3});
  CHECK(scenario.layout.partition.kind == PartitionRule::Kind::Balanced);
  const Training& training = scenario.training();
  CHECK(training.micro_batches == 1);
  CHECK(training.precision == Precision::Bf16);
  CHECK(training.optimizer == Optimizer::SgdMomentum);
  CHECK(training.recompute == Recompute::None);
  CHECK(training.steps == 8);
  CHECK(scenario.simulation.engine == EngineKind::Auto);
  CHECK(scenario.simulation.seed == 1);
  CHECK(!training.graph.samples_per_micro_batch);
}

TEST_CASE("global training is naive for one micro-batch and 1F1B for more") {
  const Question one = loaded();
  CHECK(one.training().schedule.kind->name == "naive");
  const Question several = loaded({"training.micro_batches=8"});
  CHECK(several.training().schedule.kind->name == "1f1b");
  for (const Question& scenario : {one, several}) {
    const Training& training = scenario.training();
    CHECK(!training.schedule.split_backward);
    CHECK(training.schedule.queue.kind == QueuePolicy::Kind::Unlimited);
    CHECK(!training.schedule.copies_on_compute_stream);
    CHECK(!training.schedule.barrier);
    CHECK(training.schedule.update_every == training.micro_batches);
  }
  CHECK(loaded({"training.schedule=naive-split"}).training().schedule.split_backward);
  CHECK(!loaded({"training.schedule=gpipe"}).training().schedule.split_backward);
}

TEST_CASE("local and interlocking training is eager, split, with one message queued") {
  for (const char* strategy : {"local", "pairwise", "greedy", "overlapping"}) {
    CAPTURE(strategy);
    const Question scenario =
        loaded({std::string("training.strategy=") + strategy, "training.micro_batches=6"});
    const Training& training = scenario.training();
    CHECK(training.schedule.kind->name == "eager");
    CHECK(training.schedule.split_backward);
    CHECK(training.schedule.queue.kind == QueuePolicy::Kind::Buffered);
    CHECK(training.schedule.queue.depth == 1);
    CHECK(training.schedule.in_flight == 1);
    CHECK(training.schedule.update_every == 6);
    CHECK(!training.strategy.all_heads);
    CHECK(!training.strategy.skip_unneeded_input_gradients);
    CHECK(training.strategy.gradient == GradientMode::Furthest);
  }
}

TEST_CASE("the list schedule is fused and runs all heads unless told otherwise") {
  const Overrides list = {"training.strategy={\"kind\": \"interlocking\", \"n_wise\": 3}",
                          "training.schedule=list"};
  const Question scenario = loaded(list);
  const Training& training = scenario.training();
  CHECK(training.schedule.kind->name == "list");
  CHECK(!training.schedule.split_backward);
  CHECK(training.strategy.all_heads);
  Overrides minimal = list;
  minimal.push_back("training.strategy.heads=minimal");
  CHECK(!loaded(minimal).training().strategy.all_heads);
  CHECK(loaded({"training.strategy={\"kind\": \"pairwise\", \"heads\": \"all\"}"})
            .training()
            .strategy.all_heads);
}

TEST_CASE("short names of strategies mean the objects they stand for") {
  CHECK(loaded({"training.strategy=local"}).training().strategy.kind == StrategyKind::Local);
  const Strategy pairwise = loaded({"training.strategy=pairwise"}).training().strategy;
  CHECK(pairwise.kind == StrategyKind::Interlocking);
  CHECK(pairwise.n_wise == 2);
  CHECK(loaded({"training.strategy={\"kind\": \"pairwise\"}"}).training().strategy.n_wise == 2);
  CHECK(loaded({"training.strategy=interlocking"}).training().strategy.n_wise == 2);
}

TEST_CASE("a loss that reaches further than there are stages is global in extent") {
  CHECK(loaded({"training.strategy={\"kind\": \"interlocking\", \"n_wise\": 9}"})
            .training()
            .strategy.n_wise == 4);
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
  const Training& training = scenario.training();
  CHECK(training.strategy.n_wise == 3);
  CHECK(training.strategy.gradient == GradientMode::Sum);
  CHECK(training.strategy.all_heads);
  CHECK(training.strategy.skip_unneeded_input_gradients);
  CHECK(!training.schedule.split_backward);
  CHECK(training.schedule.queue.kind == QueuePolicy::Kind::Rendezvous);
  CHECK(!training.schedule.copies_on_compute_stream);
  CHECK(loaded({R"(training.schedule={"kind": "1f1b", "copies": "compute_stream"})"})
            .training()
            .schedule.copies_on_compute_stream);
  CHECK(training.schedule.in_flight == 2);
  CHECK(training.schedule.update_every == 3);
  CHECK(training.schedule.barrier);
  CHECK(training.precision == Precision::Fp16);
  CHECK(training.optimizer == Optimizer::Adam);
  CHECK(training.recompute == Recompute::Full);
  CHECK(training.steps == 3);
  CHECK(scenario.simulation.engine == EngineKind::Native);
  CHECK(scenario.simulation.seed == 7);
}

TEST_CASE("queues are unlimited, rendezvous or of a depth") {
  const auto queue = [](const std::string& value) {
    return loaded({"training.strategy=pairwise", "training.schedule.queue=" + value})
        .training()
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
    const Training& training = scenario.training();
    REQUIRE(training.graph.samples_per_micro_batch);
    return std::pair(training.micro_batches, *training.graph.samples_per_micro_batch);
  };
  CHECK(sizes({"training.global_batch_size=24"}) == std::pair(1, 24.0));
  CHECK(sizes({"training.global_batch_size=24", "training.micro_batch_size=6"}) ==
        std::pair(4, 6.0));
  CHECK(sizes({"training.global_batch_size=24", "training.micro_batches=8"}) == std::pair(8, 3.0));
}

TEST_CASE("a profile knows its samples only if the scenario names a batch") {
  CHECK(!loaded({"training.micro_batches=4"}).training().graph.samples_per_micro_batch);
  const Question named = loaded({"training.micro_batches=4", "training.global_batch_size=12"});
  CHECK(named.training().graph.samples_per_micro_batch == 3.0);
  CHECK(named.training().micro_batches == 4);
}

TEST_CASE("stale copies of the readout are the strategy's business, also with the model's head") {
  const std::string head = R"({"weights": {"stale_every": 4}})";
  CHECK(loaded({"training.strategy={\"kind\": \"local\", \"head\": " + head + "}"})
            .training()
            .strategy.readout_every == 4);
  CHECK(loaded({"training.strategy=local"}).training().strategy.readout_every == 0);
}

TEST_CASE("the name is the file's unless the scenario has one") {
  CHECK(loaded({"name=four"}).name == "four");
  CHECK(load_questions(parse_json(kFourModules, "some/folder/toy.json")).front().name == "toy");
}

}  // namespace
}  // namespace interlock::defaults_test
