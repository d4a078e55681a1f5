// Forward-forward: gradients of goodness, what they leave alone, and what is learnt by them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/harness/support/training.h"
#include "validate/cpu/layers/dense_kernels.h"
#include "validate/cpu/layers/goodness_kernels.h"
#include "validate/network/contrast.h"
#include "validate/training/data_set.h"

namespace interlock::forward_forward_test {
namespace {

const std::string kStrategy = R"({"kind": "forward-forward", "module_gradients": "computed"})";

std::string transformer(int layers) {
  return R"({"kind": "transformer", "layers": )" + std::to_string(layers) +
         R"(, "hidden_size": 8, "attention": "materialised", "attention_heads": 2,
            "vocab_size": 11, "sequence_length": 5, "tied_embeddings": false})";
}

TrainingText text_of(const std::string& model, int stages = 4) {
  return {.model = model, .strategy = kStrategy, .devices = stages};
}

// The threshold that docs/training.md tells.
constexpr double kThreshold = 2;

/// The loss of rows, the first half of which are true: written out.
double loss_of(const std::vector<double>& x, int rows, int columns) {
  double loss = 0;
  for (int r = 0; r < rows; ++r) {
    double goodness = 0;
    for (int c = 0; c < columns; ++c) {
      const double value = x[static_cast<std::size_t>(r * columns + c)];
      goodness += value * value / columns;
    }
    const double is_true = 1 / (1 + std::exp(kThreshold - goodness));
    loss -= std::log(r < rows / 2 ? is_true : 1 - is_true) / rows;
  }
  return loss;
}

TEST_CASE("goodness has the logistic loss, its slopes, and hands on rows of one length") {
  constexpr int kRows = 6, kColumns = 5;
  std::vector<double> x(kRows * kColumns), y(x.size()), dx(x.size());
  std::mt19937 random(3);
  for (double& value : x) value = std::normal_distribution<double>(0, 1.5)(random);
  const ConstMatrixView<double> read(x.data(), kRows, kColumns);
  const double loss = goodness_forward<double>(read, MatrixView<double>(y.data(), kRows, kColumns));
  CHECK(loss == doctest::Approx(loss_of(x, kRows, kColumns)).epsilon(1e-12));
  goodness_backward<double>(read, MatrixView<double>(dx.data(), kRows, kColumns));
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<double> up = x, down = x;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    const double slope = (loss_of(up, kRows, kColumns) - loss_of(down, kRows, kColumns)) / 2e-5;
    CHECK(dx[i] == doctest::Approx(slope).epsilon(1e-6));
  }
  for (int r = 0; r < kRows; ++r) {
    double squares = 0;
    for (int c = 0; c < kColumns; ++c) {
      const auto i = static_cast<std::size_t>(r * kColumns + c);
      squares += y[i] * y[i] / kColumns;
      CHECK(y[i] * x[i] >= 0);
    }
    CHECK(squares == doctest::Approx(1).epsilon(1e-4));
  }
}

TEST_CASE("rows without a target have no part in the loss in words") {
  const std::vector<double> scores = {1, 2, 0.5, 9, 0, 3, -1, 0.25, 4};
  const std::vector<std::int32_t> all = {2, kNoTarget, 0}, some = {2, 0};
  const std::vector<double> of_some = {1, 2, 0.5, -1, 0.25, 4};
  std::vector<double> gradient(9), of_two(6);
  const ConstMatrixView<double> three(scores.data(), 3, 3), two(of_some.data(), 2, 3);
  CHECK(cross_entropy_forward<double>(three, all.data()) ==
        cross_entropy_forward<double>(two, some.data()));
  cross_entropy_backward<double>(three, all.data(), MatrixView<double>(gradient.data(), 3, 3));
  cross_entropy_backward<double>(two, some.data(), MatrixView<double>(of_two.data(), 2, 3));
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(gradient[c] == of_two[c]);
    CHECK(gradient[3 + c] == 0);
    CHECK(gradient[6 + c] == of_two[3 + c]);
  }
}

TEST_CASE("false samples follow the true ones that other strategies read") {
  const std::string text = "the quick brown fox jumps over the lazy dog, again and again and again";
  NeuralNetwork network = {.samples = SampleKind::Tokens,
                           .samples_per_micro_batch = 40,
                           .rows_per_sample = 16,
                           .classes = 256};
  const Batch plain = text_batches(text, "f", network, 5)(3);
  network.samples_per_micro_batch = 80;
  network.false_samples = 40;
  const Batch both = text_batches(text, "f", network, 5)(3);
  const auto half = static_cast<std::ptrdiff_t>(plain.tokens.size());
  REQUIRE(both.tokens.size() == 2 * plain.tokens.size());
  CHECK(std::equal(plain.tokens.begin(), plain.tokens.end(), both.tokens.begin()));
  CHECK(std::equal(plain.targets.begin(), plain.targets.end(), both.targets.begin()));
  int others = 0;
  for (std::ptrdiff_t i = 0; i < half; ++i) {
    const auto at = static_cast<std::size_t>(half + i);
    CHECK(both.targets[at] == kNoTarget);
    CHECK(std::count(plain.tokens.begin(), plain.tokens.end(), both.tokens[at]) > 0);
    others += both.tokens[at] == plain.tokens[static_cast<std::size_t>(i)] ? 0 : 1;
  }
  // Half of 640, less those that are drawn equal; five deviations are 63.
  CHECK(others > 0.38 * static_cast<double>(half));
  CHECK(others < 0.6 * static_cast<double>(half));
  CHECK(both.tokens == text_batches(text, "f", network, 5)(3).tokens);
  CHECK(both.tokens != text_batches(text, "f", network, 6)(3).tokens);
}

double direction(std::size_t index) { return std::sin(1.7 * static_cast<double>(index) + 1); }

std::vector<double> moved_losses(const SmallTraining& training, const std::string& parameter,
                                 double step) {
  CpuOptions options = {.doubles = true};
  options.first = [&](const std::string& name, std::int64_t i, double value) {
    return name == parameter ? value + step * direction(static_cast<std::size_t>(i)) : value;
  };
  std::vector<double> losses;
  const Outcome outcome = train(training, RunMode::Sequential, options);
  for (const auto& of_stage : outcome.losses) losses.push_back(of_stage.at(0));
  return losses;
}

TEST_CASE("the gradient of a module is the slope of its own loss") {
  constexpr double kStep = 1e-5;
  SmallTraining training = make_training(text_of(kTransformer));
  training.dump_step = 0;
  const auto gradients =
      part_of(train(training, RunMode::Sequential, {.doubles = true}), "gradients/");
  training.dump_step = -1;
  for (const auto& [name, values] : gradients) {
    std::size_t module = 0;  // a stage each
    while (name.rfind(training.network.modules[module].name + ".", 0) != 0) ++module;
    if (name.find(".head.") != std::string::npos) continue;
    double along = 0;
    for (std::size_t i = 0; i < values.size(); ++i) along += values[i] * direction(i);
    const std::vector<double> up = moved_losses(training, name, kStep);
    const std::vector<double> down = moved_losses(training, name, -kStep);
    INFO(name);
    const double slope = (up[module] - down[module]) / (2 * kStep);
    CHECK(std::abs(along - slope) <= 1e-6 * std::max(std::abs(slope), 1e-2));
    for (std::size_t below = 0; below < module; ++below) CHECK(up[below] == down[below]);
  }
}

TEST_CASE("modules learn the same, whatever stages they are in") {
  std::map<std::string, std::vector<double>> alone;
  for (const int stages : {4, 2, 1}) {
    for (const std::string schedule : {R"("eager")", R"({"kind": "eager", "backward": "split"})"}) {
      TrainingText text = text_of(kTransformer, stages);
      text.schedule = schedule;
      SmallTraining training = make_training(text);
      training.dump_step = 0;
      const auto gradients = part_of(
          train(training, RunMode::Sequential, {.doubles = true, .poison = true}), "gradients/");
      if (alone.empty()) alone = gradients;
      INFO(stages, " stages, ", schedule);
      CHECK(gradients == alone);
    }
  }
}

TEST_CASE("weights are those of a model without the modules behind them, bit for bit") {
  const auto updated = [](int layers) {
    TrainingText text = text_of(transformer(layers), layers + 2);
    text.steps = 4;
    text.optimizer = "adam";
    SmallTraining training = make_training(text);
    training.dump_step = 3;
    return part_of(train(training, RunMode::Threads), "updated/");
  };
  const auto two = updated(2), one = updated(1);
  int compared = 0;
  for (const auto& [name, values] : one) {
    if (name.rfind("readout", 0) == 0 || name.find(".head.") != std::string::npos) continue;
    INFO(name);
    CHECK(two.at(name) == values);
    ++compared;
  }
  CHECK(compared == 2 + 12);  // of the embedding, and of a block
}

TEST_CASE("what runs holds what is simulated, to the byte") {
  for (const int stages : {4, 2}) {
    for (const std::string schedule :
         {R"("eager")", R"("ppll")", R"({"kind": "eager", "backward": "split"})",
          R"({"kind": "eager", "update_every": 1})", R"({"kind": "eager", "in_flight": 2})"}) {
      TrainingText text = text_of(kTransformer, stages);
      text.schedule = schedule;
      text.micro_batches = 4;
      text.steps = 2;
      text.optimizer = "adam";
      const SmallTraining training = make_training(text);
      INFO(stages, " stages, ", schedule);
      CHECK(why_not_trainable(job_of(training)) == "");
      const std::vector<double> simulated = simulated_peaks(training.program);
      const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
      for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
        CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
      }
    }
  }
}

/// Losses of stages over the last quarter of a run on sequences that count up from anywhere
/// (`counts`), or on tokens at random.
std::vector<double> last_losses(bool counts, RunMode mode) {
  constexpr int kSteps = 400, kLast = 100;
  TrainingText text = text_of(kTransformer);
  text.samples = 16;
  text.steps = kSteps;
  text.optimizer = "adam";
  SmallTraining training = make_training(text);
  training.descent = {.optimizer = Optimizer::Adam, .rate = 0.01};
  Job job = job_of(training);
  job.batch = [counts](int number) {
    Random random(11, static_cast<std::uint64_t>(number));
    Batch batch;
    for (int sample = 0; sample < 16; ++sample) {
      int token = random.integer(0, 10);
      for (int place = 0; place < 5; ++place) {
        batch.tokens.push_back(token);
        token = counts ? (token + 1) % 11 : random.integer(0, 10);
        batch.targets.push_back(token);
      }
    }
    append_false_samples(batch, 1, number);
    return batch;
  };
  const CpuRun run = make_cpu_run(job, {});
  if (mode == RunMode::Threads) {
    run_threads(training.program, run.workload, {}, {});
  } else {
    run_in_order(training.program, run.workload);
  }
  std::vector<double> means;
  for (const auto& of_stage : run.outcome().losses) {
    double sum = 0;
    for (int step = kSteps - kLast; step < kSteps; ++step) sum += of_stage.at(step) / kLast;
    means.push_back(sum);
  }
  return means;
}

TEST_CASE("goodness tells true samples from false ones, and words are learnt from what it leaves") {
  // A goodness that does not depend on what is true has a loss of log 2 at least: the mean of
  // log(1 + exp(-a)) and log(1 + exp(a)).
  const std::vector<double> counting = last_losses(true, RunMode::Sequential);
  const std::vector<double> noise = last_losses(false, RunMode::Sequential);
  for (std::size_t stage = 0; stage < 3; ++stage) {
    MESSAGE("stage ", stage, ": ", counting[stage], " of sequences, ", noise[stage], " of noise");
  }
  MESSAGE("words: ", counting[3], " and ", noise[3], " nats; at random ", std::log(11));
  CHECK(counting[1] < std::log(2.0) - 0.05);
  CHECK(counting[2] < std::log(2.0) - 0.05);
  // The first module sees tokens one by one, which are as frequent in false samples.
  for (const double blind : {counting[0], noise[0], noise[1], noise[2]}) {
    CHECK(blind > std::log(2.0) - 0.03);
  }
  CHECK(counting[3] < 0.8 * std::log(11));
  CHECK(noise[3] > std::log(11) - 0.05);
  CHECK(last_losses(true, RunMode::Threads) == counting);
}

TEST_CASE("what forward-forward cannot train is refused by name") {
  const auto problem_of = [](TrainingText text) {
    const SmallTraining training = make_training(text);
    return why_not_trainable(job_of(training));
  };
  CHECK(problem_of(text_of(kResidualMlp)).find("false samples are made of tokens") == 0);
  TrainingText text = text_of(kTransformer);
  text.strategy = R"("forward-forward")";
  CHECK(problem_of(text).find("operators that learn from what they make alone") == 0);
  text.strategy = kStrategy;
  text.more_training = R"(, "recompute": "full")";
  CHECK(problem_of(text).find("modules that learn from their goodness keep") == 0);
}

}  // namespace
}  // namespace interlock::forward_forward_test
