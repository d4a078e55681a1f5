// Features Replay: losses and weights against the update equations of the paper, in plain loops.
// SPDX-License-Identifier: Apache-2.0
//
// Huo et al., arXiv 1807.04511, section 3. Module k of K at time t: play, h_k = F_k(h_(k-1); w_k);
// replay, the features that came in K - k steps before run through F_k again with today's weights,
// and the error gradient that module k + 1 made one step before goes back through that:
//   w_k <- w_k - rate * d <delta, F_k(h_(k-1)(t + k - K); w_k)> / d w_k.
// By micro-batch: b meets version max(0, b - (K - k)) of module k forward, and version b backward.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/harness/support/training.h"
#include "tests/harness/support/written_network.h"

namespace interlock::replayed_features_test {
namespace {

/// Losses of every micro-batch by the equations; `stages` end with the last weights.
std::vector<double> losses_by_hand(std::vector<written::Stage>& stages, const Job& job,
                                   int micro_batches) {
  std::vector<std::vector<written::Weights>> versions(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) versions[s] = {stages[s].weights};
  std::vector<double> losses;
  const int last = static_cast<int>(stages.size()) - 1;
  for (int b = 0; b < micro_batches; ++b) {
    const Batch data = job.batch(b);
    std::vector<written::Vector> inputs = {{data.features.begin(), data.features.end()}};
    for (int s = 0; s <= last; ++s) {  // play
      written::Stage played = stages[static_cast<std::size_t>(s)];
      const int version = std::max(0, b - (last - s));
      played.weights = versions[static_cast<std::size_t>(s)][static_cast<std::size_t>(version)];
      inputs.push_back(written::forward(played, inputs.back(), data.targets));
    }
    losses.push_back(inputs.back()[0].real());
    written::Vector delta = {1};
    for (int s = last; s >= 0; --s) {  // replay
      written::Stage& stage = stages[static_cast<std::size_t>(s)];
      const written::Slopes slopes =
          written::backward(stage, inputs[static_cast<std::size_t>(s)], delta, data.targets);
      delta = slopes.input;
      written::descend(stage.weights, slopes.weights, job.descent.rate);
      versions[static_cast<std::size_t>(s)].push_back(stage.weights);
    }
  }
  return losses;
}

TrainingText replay_text(int devices, int steps) {
  TrainingText text = {.model = kResidualMlp, .devices = devices, .steps = steps};
  text.schedule = R"("features-replay")";
  return text;
}

TEST_CASE("Features Replay learns what its equations say") {
  for (const int devices : {1, 2, 3, 5}) {
    SmallTraining training = make_training(replay_text(devices, 9));
    training.dump_step = 0;
    const auto first = part_of(train(training, RunMode::Sequential, {.doubles = true}), "weights/");
    training.dump_step = 8;
    const Job job = job_of(training);
    const Outcome own = train(training, RunMode::Threads, {.doubles = true, .poison = true});
    std::vector<written::Stage> stages = written::stages_of(job, first);
    const std::vector<double> by_hand = losses_by_hand(stages, job, 9);
    for (int b = 0; b < 9; ++b) {
      const double loss = own.losses.back().at(b);
      INFO(devices, " stages, micro-batch ", b, ": ", loss, ", by hand ",
           by_hand[static_cast<std::size_t>(b)]);
      CHECK(loss == doctest::Approx(by_hand[static_cast<std::size_t>(b)]).epsilon(1e-12));
    }
    const auto updated = part_of(own, "updated/");
    for (const written::Stage& stage : stages) {
      for (const auto& [key, values] : stage.weights) {
        const std::string& name = key;
        std::vector<double> expected;
        for (const written::Number value : values) expected.push_back(value.real());
        INFO(devices, " stages, ", name);
        CHECK(distance(updated.at(name), expected) <= 1e-12);
      }
    }
  }
}

TEST_CASE("Features Replay holds what it was simulated to hold, to the byte") {
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet}) {
    for (const std::string backward : {"fused", "split"}) {
      TrainingText text = replay_text(4, 6);
      text.model = model;
      text.schedule = R"({"kind": "features-replay", "backward": ")" + backward + "\"}";
      INFO(model, ", ", backward);
      const SmallTraining training = make_training(text);
      const std::vector<double> simulated = simulated_peaks(training.program);
      const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
      for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
        CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
      }
      const Outcome threads = train(training, RunMode::Threads, {.poison = true});
      CHECK(threads.losses == outcome.losses);
    }
  }
}

}  // namespace
}  // namespace interlock::replayed_features_test
