// NoProp's noise over targets: its share in what stages read, and trainings under it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/harness/support/training.h"
#include "validate/network/denoising.h"

namespace interlock::cosine_noise_test {
namespace {

const std::string kStrategy = R"({"kind": "independent", "noise": "cosine"})";

TrainingText text_of(const std::string& model, int stages = 4) {
  return {.model = model, .strategy = kStrategy, .devices = stages};
}

// Shares of signal of four stages, by hand: cos^2(90 degrees x 0.758, 0.508 or 0.258 / 1.008) over
// cos^2(90 degrees x 0.008 / 1.008).
constexpr double kSignals[] = {0, 0.1442721, 0.4938436, 0.8470122};

TEST_CASE("levels of the cosine schedule are those of its shares of signal, highest first") {
  for (int stage = 1; stage < 4; ++stage) {
    const double level = noise_level(NoiseSchedule::Cosine, stage, 4);
    CHECK(1 / (1 + level * level) == doctest::Approx(kSignals[stage]).epsilon(1e-6));
  }
  // But for the offset it is the tangent of the share of noise.
  for (const int stages : {2, 3, 12, 100}) {
    for (int stage = 1; stage < stages; ++stage) {
      const double plain = std::tan((1 - static_cast<double>(stage) / stages) * std::acos(0.0));
      INFO("stage ", stage, " of ", stages);
      CHECK(noise_level(NoiseSchedule::Cosine, stage, stages) > plain);
      CHECK(noise_level(NoiseSchedule::Cosine, stage, stages) < 1.03 * plain + 0.0129);
    }
  }
}

TEST_CASE("what a stage reads has the share of signal that NoProp's schedule gives its block") {
  constexpr int kColumns = 8, kHalf = 4, kBatches = 4000;
  const SmallTraining training = make_training(text_of(kResidualMlp));
  const Job job = job_of(training);
  const Batch batch = job.batch(0);
  const int target = batch.targets[0];
  for (int stage = 1; stage < 4; ++stage) {
    const Denoising denoising(job, stage, kColumns);
    // Along e the mean is the root of the signal, but for the scale; its variance that of noise.
    double mean = 0, squares = 0;
    for (int number = 0; number < kBatches; ++number) {
      const std::vector<double> input = denoising.input(batch, number);
      double along = 0;
      for (int c = 0; c < kHalf; ++c) {
        along += input[static_cast<std::size_t>(kColumns - kHalf + c)] *
                 denoising.targets()[static_cast<std::size_t>(target * kHalf + c)];
      }
      mean += along / kBatches;
      squares += along * along / kBatches;
    }
    const double noise = squares - mean * mean;
    INFO("stage ", stage);
    // Five deviations of the mean of 4000 draws, and of their variance.
    CHECK(std::abs(mean / std::sqrt(noise) - std::sqrt(kSignals[stage] / (1 - kSignals[stage]))) <
          0.25);
    CHECK(mean * mean / (mean * mean + noise) == doctest::Approx(kSignals[stage]).epsilon(0.15));
  }
}

TEST_CASE("a chain under the cosine schedule learns, in any order of its stages") {
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    TrainingText text = text_of(model);
    text.optimizer = "adam";
    text.samples = 16;
    text.steps = 80;
    SmallTraining training = make_training(text);
    training.descent = {.optimizer = Optimizer::Adam, .rate = 0.01};
    const Outcome run = train(training, RunMode::Threads);
    CHECK(run.losses == train(training, RunMode::Sequential).losses);
    std::vector<double> losses(80);
    for (const auto& of_stage : run.chain_terms) {
      for (const auto& [step, term] : of_stage) losses[static_cast<std::size_t>(step)] += term;
    }
    const double first = std::accumulate(losses.begin(), losses.begin() + 20, 0.0) / 20;
    const double last = std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20;
    MESSAGE("loss of the chain ", first, ", then ", last);
    CHECK(last < first - 0.1);
    // The first stage knows no noise.
    text.strategy = R"("independent")";
    SmallTraining other = make_training(text);
    other.descent = training.descent;
    const Outcome log_normal = train(other, RunMode::Sequential);
    CHECK(log_normal.losses[0] == run.losses[0]);
    for (std::size_t stage = 1; stage < 4; ++stage) {
      CHECK(log_normal.losses[stage] != run.losses[stage]);
    }
  }
}

TEST_CASE("one stage has no noise to be told of") {
  const SmallTraining training = make_training(text_of(kResidualMlp, 1));
  CHECK(why_not_trainable(job_of(training)).find("\"noise\" is of stages behind the first") == 0);
}

}  // namespace
}  // namespace interlock::cosine_noise_test
