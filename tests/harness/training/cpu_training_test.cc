// Trainings on the CPU: what may not change a result, and memory to the byte.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/harness/support/training.h"
#include "validate/executors/executor.h"

namespace interlock::cpu_training_test {
namespace {

using Numbers = std::map<std::string, std::vector<double>>;

/// Everything that a training came to: losses, and the last step's gradients and weights.
Numbers all_of(const TrainingText& text, RunMode mode = RunMode::Sequential,
               const CpuOptions& options = {}) {
  SmallTraining training = make_training(text);
  training.dump_step = text.steps - 1;
  const Outcome outcome = train(training, mode, options);
  Numbers numbers = by_name(outcome);
  for (std::size_t stage = 0; stage < outcome.losses.size(); ++stage) {
    for (const auto& [batch, loss] : outcome.losses[stage]) {
      numbers["loss " + std::to_string(stage)].push_back(loss);
    }
  }
  CHECK(numbers.size() > 10);
  return numbers;
}

/// The stages of a model of five modules on four devices.
TrainingText four_stages(const std::string& model) {
  return {.model = model, .devices = 4, .samples = 2, .micro_batches = 4, .steps = 2};
}

TEST_CASE("1F1B, GPipe and interleaved stages come to the same weights, bit for bit") {
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet}) {
    TrainingText text = four_stages(model);
    text.schedule = R"("gpipe")";
    const Numbers gpipe = all_of(text);
    text.schedule = R"("1f1b")";
    CHECK(all_of(text) == gpipe);
    text.devices = 2;
    text.schedule = R"("interleaved")";
    text.more = R"(, "parallel": {"pipeline": 2, "stages": 4})";
    CHECK(all_of(text) == gpipe);
  }
}

TEST_CASE("a backward in two halves makes what one makes, bit for bit") {
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet}) {
    TrainingText text = four_stages(model);
    text.schedule = R"({"kind": "1f1b", "backward": "fused"})";
    const Numbers fused = all_of(text, RunMode::Sequential, {.poison = true});
    text.schedule = R"({"kind": "1f1b", "backward": "split"})";
    CHECK(all_of(text, RunMode::Sequential, {.poison = true}) == fused);
    text.schedule = R"("zb-h1")";
    CHECK(all_of(text, RunMode::Sequential, {.poison = true}) == fused);
  }
}

TEST_CASE("micro-batches make the gradient of a batch as large as all of them") {
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    TrainingText text = {.model = model, .devices = 2, .samples = 2, .micro_batches = 4};
    const Numbers parts = all_of(text, RunMode::Sequential, {.doubles = true});
    text.samples = 8;
    text.micro_batches = 1;
    const Numbers whole = all_of(text, RunMode::Sequential, {.doubles = true});
    for (const auto& entry : whole) {
      const std::string& name = entry.first;
      const std::vector<double>& values = entry.second;
      if (name.rfind("gradients/", 0) != 0) continue;
      INFO(name);
      CHECK(distance(parts.at(name), values) <= 1e-12);
    }
  }
}

TEST_CASE("floats differ from doubles by their rounding") {
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet}) {
    const TrainingText text = {.model = model, .strategy = R"("local")", .devices = 3};
    const Numbers exact = all_of(text, RunMode::Sequential, {.doubles = true});
    double worst = 0;
    for (const auto& entry : all_of(text)) {
      const std::string& name = entry.first;
      const std::vector<double>& values = entry.second;
      if (name.rfind("gradients/", 0) != 0) continue;
      const double error = distance(values, exact.at(name));
      worst = std::max(worst, error);
      INFO(name, ": ", error);
      CHECK(error <= 1e-5);
    }
    MESSAGE("worst of floats against doubles: ", worst);
  }
}

const std::vector<std::string> kStrategies = {R"("global")", R"("local")",
                                              R"({"kind": "interlocking", "n_wise": 2})",
                                              R"({"kind": "interlocking", "n_wise": 3})"};

TEST_CASE("a thread for each rank comes to what one thread comes to, bit for bit") {
  int runs = 0;
  for (const std::string& strategy : kStrategies) {
    TrainingText text = four_stages(kResidualMlp);
    text.strategy = strategy;
    const Numbers sequential = all_of(text);
    for (int repeat = 0; repeat < 25; ++repeat, ++runs) {
      CHECK(all_of(text, RunMode::Threads, {.poison = true}) == sequential);
    }
  }
  CHECK(runs == 100);
}

TEST_CASE("losses fall, of the network and of heads, under every optimiser") {
  for (const char* optimizer : {"sgd", "sgd-momentum", "adam"}) {
    TrainingText text = {.model = kResidualMlp, .strategy = kStrategies[2], .devices = 3};
    text.samples = 8;
    text.steps = 40;
    text.optimizer = optimizer;
    SmallTraining training = make_training(text);
    training.descent.rate = training.descent.optimizer == Optimizer::Adam ? 0.02 : 0.05;
    Job job = job_of(training);
    job.batch = [&](int) { return made_up_batch(training.network, 1, 0); };  // the same always
    const CpuRun run = make_cpu_run(job, {});
    run_threads(training.program, run.workload, {}, {});
    const Outcome outcome = run.outcome();
    for (const int stage : {1, 2}) {
      const auto& losses = outcome.losses[static_cast<std::size_t>(stage)];
      INFO(optimizer, ", stage ", stage, ": ", losses.at(0), " to ", losses.at(39));
      CHECK(losses.at(39) < losses.at(0) / 4);
    }
  }
}

TEST_CASE("a loss that is not a number stops the run with its module and step") {
  TrainingText text = {.model = kResidualMlp, .devices = 2, .samples = 4, .steps = 30};
  SmallTraining training = make_training(text);
  training.descent.rate = 1e30;
  CHECK_THROWS_WITH_AS(train(training), doctest::Contains("the loss at module readout"), Error);
}

/// Why the training of `text` is refused.
std::string refusal(const TrainingText& text) {
  const SmallTraining training = make_training(text);
  return why_not_trainable(job_of(training));
}

TEST_CASE("what cannot be trained is refused with what to write instead") {
  TrainingText text = four_stages(kResidualMlp);
  CHECK(refusal(text).empty());
  text.strategy = R"("overlapping")";
  CHECK(refusal(text).find("expected global, local") != std::string::npos);
  text.strategy = R"("global")";
  text.schedule = R"({"kind": "features-replay"})";
  CHECK(refusal(text).empty());
  text.schedule = R"({"kind": "petra"})";
  CHECK(refusal(text) ==
        "/training/schedule: \"petra\" computes the input of every module between the first and "
        "the last back from its output, which block0 of residual-mlp does not allow; expected a "
        "model of reversible blocks, {\"kind\": \"residual-mlp\", \"reversible\": true}, or the "
        "schedule \"features-replay\", which keeps inputs");
  text.model = kTransformer;
  CHECK(refusal(text).find("which block0 of transformer does not allow") != std::string::npos);
  text.model = kReversible;
  CHECK(refusal(text).empty());
  text.model = kResidualMlp;
  text.schedule = R"({"kind": "chimera"})";
  CHECK(refusal(text).find("expected a schedule of one copy") != std::string::npos);
  TrainingText mlp =
      four_stages(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [6, 6, 6], "classes": 3})");
  mlp.devices = 2;
  mlp.schedule = R"({"kind": "1f1b", "backward": "split"})";
  CHECK(refusal(mlp).find(R"("backward": "fused")") != std::string::npos);
  mlp.schedule = R"("1f1b")";
  CHECK(refusal(mlp).empty());
}

}  // namespace
}  // namespace interlock::cpu_training_test
