// Modules that are computed again: the same numbers, in less memory, to the byte what is simulated.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/harness/support/training.h"

namespace interlock::recompute_test {
namespace {

struct RecomputeTrial {
  std::string model;
  int devices = 4;
  std::string strategy = R"("global")", schedule = "", recompute = R"("full")";
};

TrainingText text_of(const RecomputeTrial& trial, const std::string& recompute) {
  TrainingText text = {.model = trial.model, .devices = trial.devices, .micro_batches = 4};
  text.strategy = trial.strategy;
  text.schedule = trial.schedule;
  text.steps = 2;
  text.more_training = R"(, "recompute": )" + recompute;
  text.more = R"(, "partition": "uniform")";  // whatever takes how long
  return text;
}

const std::string kDeep =
    R"({"kind": "transformer", "layers": 6, "hidden_size": 8,
        "attention": "materialised", "attention_heads": 2,
        "vocab_size": 11, "sequence_length": 5, "tied_embeddings": false})";
const std::string kFused =
    R"({"kind": "transformer", "layers": 6, "hidden_size": 8,
        "attention": "fused", "attention_heads": 2,
        "vocab_size": 11, "sequence_length": 5, "tied_embeddings": false})";

/// Models, in stages of one block or several, under everything that tells when a stage goes back.
std::vector<RecomputeTrial> trials() {
  std::vector<RecomputeTrial> all;
  const std::string deep =
      R"({"kind": "residual-mlp", "input_size": 6, "layers": 6, "hidden_size": 8, "classes": 4})";
  const std::string mlp =
      R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [6, 7, 8, 9, 5], "classes": 3})";
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet, deep, mlp}) {
    for (const int devices : {2, 4}) {
      for (const std::string schedule : {R"("gpipe")", R"("1f1b")"}) {
        all.push_back({.model = model, .devices = devices, .schedule = schedule});
      }
      for (const std::string strategy :
           {R"("local")", R"("pairwise")", R"({"kind": "interlocking", "n_wise": 3})",
            R"({"kind": "interlocking", "n_wise": 3, "gradient": "sum"})",
            R"({"kind": "interlocking", "n_wise": 3, "unneeded_input_gradients": "skipped"})"}) {
        for (const std::string schedule :
             {R"({"kind": "eager", "backward": "fused"})",
              R"({"kind": "eager", "backward": "fused", "in_flight": 2})"}) {
          all.push_back(
              {.model = model, .devices = devices, .strategy = strategy, .schedule = schedule});
        }
      }
    }
  }
  // Attention alone, of one block in a stage or of several; a backward in halves may do so, too.
  for (const int devices : {2, 4}) {
    for (const std::string schedule :
         {R"("gpipe")", R"("1f1b")", R"("zb-h1")", R"({"kind": "1f1b", "backward": "split"})"}) {
      all.push_back({kDeep, devices, R"("global")", schedule, R"("selective")"});
    }
    for (const std::string strategy :
         {R"("local")", R"({"kind": "interlocking", "n_wise": 3})",
          R"({"kind": "interlocking", "n_wise": 3, "gradient": "sum"})"}) {
      all.push_back({kDeep, devices, strategy, R"("eager")", R"({"modules": ["core_attn"]})"});
    }
  }
  // Other parts, and several at once.
  for (const std::string& model : {kDeep, kFused}) {
    for (const int devices : {2, 4}) {
      for (const std::string parts : {R"(["layernorm"])", R"(["mlp"])", R"(["layernorm", "mlp"])",
                                      R"(["core_attn", "layernorm", "mlp"])"}) {
        const std::string modules = R"({"modules": )" + parts + "}";
        all.push_back({model, devices, R"("global")", R"("1f1b")", modules});
        all.push_back({model, devices, R"("global")", R"("gpipe")", modules});
        all.push_back({model, devices, R"({"kind": "interlocking", "n_wise": 3})",
                       R"({"kind": "eager", "backward": "fused"})", modules});
      }
    }
  }
  for (const std::string& model : {kDeep, kFused}) {
    all.push_back({model, 2, R"("global")", R"("1f1b")", R"({"full_layers": 3})"});
    all.push_back({model, 2, R"("global")", R"("gpipe")", R"({"full_layers": 3})"});
  }
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer}) {  // a block a stage
    for (const std::string schedule : {R"("zb-h1")", R"({"kind": "1f1b", "backward": "split"})"}) {
      all.push_back({.model = model, .schedule = schedule});
    }
    for (const std::string strategy : {R"("local")", R"({"kind": "interlocking", "n_wise": 3})"}) {
      all.push_back({.model = model, .strategy = strategy, .schedule = R"("eager")"});
    }
  }
  return all;
}

/// The losses, gradients and weights of the last step.
std::map<std::string, std::vector<double>> numbers_of(const TrainingText& text) {
  SmallTraining training = make_training(text);
  training.dump_step = text.steps - 1;
  const Outcome outcome = train(training, RunMode::Sequential, {.poison = true});
  auto numbers = by_name(outcome);
  for (std::size_t stage = 0; stage < outcome.losses.size(); ++stage) {
    for (const auto& [batch, loss] : outcome.losses[stage]) {
      numbers["loss " + std::to_string(stage)].push_back(loss);
    }
  }
  return numbers;
}

TEST_CASE("modules that are computed again come to the same numbers, bit for bit") {
  for (const RecomputeTrial& trial : trials()) {
    INFO(trial.model, ", ", trial.devices, " stages, ", trial.strategy, ", ", trial.schedule);
    // Two micro-batches in flight meet older weights the longer a stage takes.
    if (trial.schedule.find("in_flight") != std::string::npos) continue;
    const TrainingText again = text_of(trial, trial.recompute);
    const Program program = make_training(again).program;
    CHECK(std::any_of(program.ops.begin(), program.ops.end(),
                      [](const OpInfo& op) { return op.kind == OpKind::R; }));
    CHECK(numbers_of(again) == numbers_of(text_of(trial, R"("none")")));
  }
}

TEST_CASE("memory of modules that are computed again is the simulated memory, to the byte") {
  int less = 0;
  for (const RecomputeTrial& trial : trials()) {
    INFO(trial.model, ", ", trial.devices, " stages, ", trial.strategy, ", ", trial.schedule);
    const SmallTraining training = make_training(text_of(trial, trial.recompute));
    const std::vector<double> simulated = simulated_peaks(training.program);
    const std::vector<double> kept =
        simulated_peaks(make_training(text_of(trial, R"("none")")).program);
    const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
    for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
      CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
      if (simulated[rank] < kept[rank]) ++less;
    }
  }
  INFO(less, " ranks hold less than without");
  CHECK(less > 20);
}

TEST_CASE("a backward in halves that would need several modules at once is refused") {
  const std::string deep =
      R"({"kind": "residual-mlp", "input_size": 6, "layers": 6, "hidden_size": 8, "classes": 4})";
  const RecomputeTrial trial = {
      .model = deep, .devices = 2, .strategy = R"("pairwise")", .schedule = R"("eager")"};
  const SmallTraining training = make_training(text_of(trial, R"("full")"));
  CHECK(why_not_trainable(job_of(training)).find(R"(expected "backward": "fused")") !=
        std::string::npos);
  CHECK_THROWS_AS(train(training), Error);
  INFO("parts that the gradients of weights read, too");
  for (const auto& [parts, refused] : {std::pair(R"({"modules": ["mlp"]})", true),
                                       {R"({"modules": ["layernorm"]})", true},
                                       {R"({"modules": ["core_attn"]})", false}}) {
    const RecomputeTrial some = {kDeep, 2, R"("global")", R"("zb-h1")", parts};
    const std::string why = why_not_trainable(job_of(make_training(text_of(some, parts))));
    CHECK(why.empty() != refused);
  }
}

}  // namespace
}  // namespace interlock::recompute_test
