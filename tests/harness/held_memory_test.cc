// Memory of trainings that run in the simulated order: the simulated memory, to the byte.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "sim/plan/schedules/catalogue.h"
#include "tests/harness/support/training.h"

namespace interlock::held_memory_test {
namespace {

/// The stages of a model of five modules on four devices.
TrainingText four_stages(const std::string& model) {
  return {.model = model, .devices = 4, .samples = 2, .micro_batches = 4, .steps = 2};
}

const std::vector<std::string> kStrategies = {R"("global")", R"("local")",
                                              R"({"kind": "interlocking", "n_wise": 2})",
                                              R"({"kind": "interlocking", "n_wise": 3})"};

/// Peak memory of every rank as the simulator has it and as the run had it.
void check_memory(const TrainingText& text, const std::string& name) {
  const SmallTraining training = make_training(text);
  const std::vector<double> simulated = simulated_peaks(training.program);
  const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
  for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
    INFO(name, ", rank ", rank);
    CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
  }
}

TEST_CASE("memory of runs in the simulated order is the simulated memory, to the byte") {
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet}) {
    for (const std::string& strategy : kStrategies) {
      TrainingText text = four_stages(model);
      text.strategy = strategy;
      check_memory(text, model + ", " + strategy);
    }
    for (const std::string schedule :
         {R"("gpipe")", R"("1f1b")", R"("zb-h1")", R"({"kind": "1f1b", "backward": "split"})"}) {
      TrainingText text = four_stages(model);
      text.schedule = schedule;
      text.optimizer = "adam";
      check_memory(text, model + ", " + schedule);
    }
  }
}

TEST_CASE("memory of an MLP and of several stages on a rank is the simulated memory, to the byte") {
  TrainingText text = four_stages(
      R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [6, 7, 8, 9, 5], "classes": 3})");
  check_memory(text, "MLP");
  text.strategy = R"("local")";
  check_memory(text, "local MLP");
  text = four_stages(kTransformer);
  text.devices = 2;
  text.schedule = R"("interleaved")";
  text.more = R"(, "parallel": {"pipeline": 2, "stages": 4})";
  check_memory(text, "interleaved");
}

TEST_CASE(
    "memory of lists of gradients and of two micro-batches in flight is the simulated memory") {
  for (const std::string schedule : {R"("list")", R"({"kind": "eager", "in_flight": 2})"}) {
    for (const std::string& strategy : kStrategies) {
      if (strategy == kStrategies.front()) continue;
      TrainingText text = four_stages(kResidualMlp);
      text.strategy = strategy;
      text.schedule = schedule;
      check_memory(text, strategy + ", " + schedule);
    }
  }
}

TEST_CASE("memory of pipelines that keep old weights is the simulated memory, to the byte") {
  for (const std::string schedule :
       {R"("pipedream")", R"({"kind": "pipedream-2bw", "update_every": 4})"}) {
    TrainingText text = four_stages(kResidualMlp);
    text.steps = 5;
    text.schedule = schedule;
    check_memory(text, schedule);
  }
}

/// Every strategy that can be trained, with all that it may be told.
std::vector<std::string> all_strategies() {
  std::vector<std::string> all = {R"("local")", R"({"kind": "local", "heads": "all"})",
                                  R"("greedy")", R"({"kind": "chunked", "chunks": 2})"};
  for (const std::string n : {"1", "2", "3", "4", "[1, 2, 1, 2]", "[1, 1, 3, 2]", "[1, 2, 2, 4]"}) {
    for (const std::string more :
         {"", R"(, "gradient": "sum")", R"(, "gradient": "mean")", R"(, "heads": "all")",
          R"(, "unneeded_input_gradients": "skipped")",
          R"(, "gradient": "sum", "unneeded_input_gradients": "skipped")"}) {
      all.push_back(R"({"kind": "interlocking", "n_wise": )" + n + more + "}");
    }
  }
  return all;
}

TEST_CASE("memory of every strategy under every policy of its schedules is the simulated memory") {
  int runs = 0;
  for (const std::string& strategy : all_strategies()) {
    for (const std::string policy :
         {R"("kind": "eager")", R"("kind": "eager", "backward": "fused")",
          R"("kind": "eager", "queue": "rendezvous")", R"("kind": "eager", "queue": "unlimited")",
          R"("kind": "eager", "copies": "compute_stream")",
          R"("kind": "eager", "optimizer_sync": "barrier")",
          R"("kind": "eager", "update_every": 1)", R"("kind": "eager", "in_flight": 2)",
          R"("kind": "eager", "in_flight": 3, "update_every": 2)",
          R"("kind": "eager", "in_flight": 2, "update_every": 1)",
          R"("kind": "list", "update_every": 2)"}) {
      const bool list = policy.find("list") != std::string::npos;
      const bool chain = strategy.find("local") == std::string::npos &&
                         strategy.find("interlocking") == std::string::npos;
      if (list && chain) continue;
      TrainingText text = four_stages(kResidualMlp);
      text.strategy = strategy;
      text.schedule = "{" + policy + "}";
      if (strategy.find("greedy") != std::string::npos) text.devices = 5;
      check_memory(text, strategy + ", " + policy);
      ++runs;
    }
  }
  CHECK(runs > 250);
}

TEST_CASE("memory of stages that share a device is the simulated memory") {
  int runs = 0;
  for (const std::string& strategy : all_strategies()) {
    for (const std::string policy :
         {R"("kind": "eager")", R"("kind": "eager", "queue": "rendezvous")",
          R"("kind": "eager", "in_flight": 2, "update_every": 1)"}) {
      for (const std::string placement : {R"("loop")", R"("v")", "[0, 0, 1, 1]", "[0, 1, 1, 0]"}) {
        if (strategy.find("greedy") != std::string::npos) continue;
        TrainingText text = four_stages(kResidualMlp);
        text.devices = 2;
        text.strategy = strategy;
        text.schedule = "{" + policy + "}";
        text.more = R"(, "parallel": {"pipeline": 2, "stages": 4, "placement": )" + placement + "}";
        check_memory(text, strategy + ", " + policy + ", " + placement);
        ++runs;
      }
    }
  }
  CHECK(runs > 250);
}

TEST_CASE("memory under every schedule of global training is the simulated memory") {
  for (const std::string schedule :
       {"naive", "naive-split", "gpipe", "1f1b", "eager-1f1b", "interleaved", "breadth-first",
        "zb-h1", "zb-h2", "interleaved-zb", "pipeoffload", "zb-v", "v-half", "v-min", "hanayo",
        "pipedream", "pipedream-2bw", "pipelined-backprop", "ddg"}) {
    TrainingText text = four_stages(kResidualMlp);
    text.steps = 4;
    const bool laid = schedule_named(schedule).layout == StageLayout::Loop ||
                      schedule_named(schedule).layout == StageLayout::V;
    if (laid) text.devices = 2;
    text.schedule = "\"" + schedule + "\"";
    check_memory(text, schedule);
  }
}

}  // namespace
}  // namespace interlock::held_memory_test
