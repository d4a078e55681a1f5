// Pipelines that never flush: which weights a micro-batch meets, against a loop by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "tests/harness/support/training.h"
#include "validate/network/job_plan.h"
#include "validate/network/stage_network.h"

namespace interlock {
namespace {

using Weights = std::vector<std::vector<double>>;

/// A stage whose every version of its weights is kept.
struct HandStage {
  StageJob planned;
  std::vector<Weights> versions;
  Weights gradients;
  std::vector<std::vector<double>> blocks;
};

std::vector<double*> pointers(Weights& weights) {
  std::vector<double*> begins;
  for (auto& weight : weights) begins.push_back(weight.data());
  return begins;
}

HandStage make_hand_stage(const Job& job, int index) {
  HandStage stage = {.planned = plan_stage_of_job(job, index, 8)};
  Weights first;
  for (int m = job.first_module[static_cast<std::size_t>(index)];
       m < job.first_module[static_cast<std::size_t>(index) + 1]; ++m) {
    const NetworkModule& module = job.network.modules[static_cast<std::size_t>(m)];
    int number = first_parameter(job.network, m, false);
    for (const Parameter& p : parameters_of(module.name, module.layers)) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < p.size(); ++i) {
        values.push_back(first_value(p, job.seed, number, i));
      }
      ++number;
      first.push_back(values);
      stage.gradients.emplace_back(values.size(), 0.0);
    }
  }
  stage.versions = {first};
  const StagePlan& plan = stage.planned.plan;
  const auto numbers = [](std::int64_t bytes) {
    return std::vector<double>(static_cast<std::size_t>(bytes / 8));
  };
  const auto output = numbers(plan.output.size() * 8);
  stage.blocks = {{},     numbers(plan.input), numbers(plan.stash), numbers(plan.workspace), output,
                  output, numbers(plan.input)};
  return stage;
}

StageTensors<double> tensors_of(HandStage& stage, const Job& job) {
  StageTensors<double> tensors;
  for (std::size_t p = 0; p < stage.blocks.size(); ++p) tensors.places[p] = stage.blocks[p].data();
  tensors.samples = job.network.samples_per_micro_batch;
  tensors.rows_per_sample = job.network.rows_per_sample;
  return tensors;
}

std::vector<double>& block(HandStage& stage, Place place) {
  return stage.blocks[static_cast<std::size_t>(place)];
}

/// One micro-batch through all stages and back, with a version of each one's weights. Its loss.
double go_through(std::vector<HandStage>& stages, const Job& job, int micro_batch,
                  const std::function<int(int stage)>& version) {
  const Batch data = job.batch(micro_batch);
  double loss = 0;
  std::vector<StageTensors<double>> tensors;
  std::vector<std::vector<double*>> weights, gradients;
  for (HandStage& stage : stages) {
    const int s = static_cast<int>(weights.size());
    weights.push_back(pointers(stage.versions.at(static_cast<std::size_t>(version(s)))));
    gradients.push_back(pointers(stage.gradients));
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::vector<double>& input = block(stages[s], Place::Input);
    if (s == 0) {
      std::copy(data.features.begin(), data.features.end(), input.begin());
    } else {
      input = block(stages[s - 1], Place::Output);
    }
    tensors.push_back(tensors_of(stages[s], job));
    tensors[s].weights = &weights[s];
    tensors[s].gradients = &gradients[s];
    tensors[s].targets = data.targets.data();
    loss += run_steps(stages[s].planned.plan.forward, tensors[s]);
  }
  for (std::size_t s = stages.size(); s-- > 0;) {
    if (s + 1 < stages.size()) {
      block(stages[s], Place::OutputGradient) = block(stages[s + 1], Place::InputGradient);
      tensors[s].places[static_cast<std::size_t>(Place::OutputGradient)] =
          block(stages[s], Place::OutputGradient).data();
    }
    run_steps(stages[s].planned.plan.backward, tensors[s]);
  }
  return loss;
}

/// Steps down by the mean of `count` gradients.
void descend(HandStage& stage, double rate, int count) {
  Weights next = stage.versions.back();
  for (std::size_t p = 0; p < next.size(); ++p) {
    for (std::size_t i = 0; i < next[p].size(); ++i) {
      next[p][i] -= rate * stage.gradients[p][i] / count;
      stage.gradients[p][i] = 0;
    }
  }
  stage.versions.push_back(next);
}

/// The losses of a run against those of a loop in which stage `s` meets micro-batch `b` with the
/// weights of version(s, b).
void check_versions(const TrainingText& text, const std::function<int(int s, int b)>& version) {
  const Training training = make_training(text);
  const Job job = job_of(training);
  const int every = training.program.update_every;
  const auto losses = train(training, Execution::Sequential, {.doubles = true}).losses.back();
  const auto threads = train(training, Execution::Threads, {.doubles = true}).losses.back();
  CHECK(threads == losses);
  std::vector<HandStage> stages;
  for (int s = 0; s < training.program.stages; ++s) stages.push_back(make_hand_stage(job, s));
  for (int b = 0; b < text.steps * text.micro_batches; ++b) {
    const double loss = go_through(stages, job, b, [&](int s) { return version(s, b); });
    INFO(text.schedule, ", micro-batch ", b, ": ", losses.at(b), ", by hand ", loss);
    CHECK(losses.at(b) == doctest::Approx(loss).epsilon(1e-12));
    if ((b + 1) % every != 0) continue;
    for (HandStage& stage : stages) descend(stage, training.descent.rate, every);
  }
}

TEST_CASE("backwards of PipeDream use the weights of their forwards") {
  TrainingText text = {.model = kResidualMlp, .devices = 3, .micro_batches = 2, .steps = 5};
  text.schedule = R"({"kind": "pipedream", "update_every": 1})";
  // Stage s is 2 - s forwards ahead: that many updates come between a forward and its backward.
  check_versions(text, [](int s, int b) { return std::max(0, b - (2 - s)); });
  text.schedule = R"({"kind": "pipedream", "update_every": 2})";
  check_versions(text, [](int s, int b) { return std::max(0, b - (2 - s)) / 2; });
}

TEST_CASE("PipeDream-2BW uses the weights before the newest on every stage") {
  TrainingText text = {.model = kResidualMlp, .devices = 3, .micro_batches = 4, .steps = 4};
  text.schedule = R"({"kind": "pipedream-2bw", "update_every": 4})";
  check_versions(text, [](int, int b) { return std::max(0, b / 4 - 1); });
}

}  // namespace
}  // namespace interlock
