// Independent stages: their inputs, gradients, memory, and the loss of the chain of them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tests/harness/support/training.h"
#include "validate/executors/unroll.h"
#include "validate/network/denoising.h"

namespace interlock::independent_test {
namespace {

const std::string kMlp =
    R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [6, 6, 6, 6], "classes": 3})";

TrainingText text_of(const std::string& model, int stages = 4) {
  return {.model = model, .strategy = R"("independent")", .devices = stages};
}

/// Writes out three levels: exp(x / 2), x the quantiles 5/6, 1/2 and 1/6 of the normal distribution
/// by its table.
constexpr double kFirstLevel = 1.622083, kSecondLevel = 1.0, kThirdLevel = 0.616491;

TEST_CASE("levels of noise are medians of shares of equal probability, highest first") {
  CHECK(noise_level(NoiseSchedule::LogNormal, 1, 4) == doctest::Approx(kFirstLevel).epsilon(1e-5));
  CHECK(noise_level(NoiseSchedule::LogNormal, 2, 4) == doctest::Approx(kSecondLevel).epsilon(1e-9));
  CHECK(noise_level(NoiseSchedule::LogNormal, 3, 4) == doctest::Approx(kThirdLevel).epsilon(1e-5));
  CHECK(noise_level(NoiseSchedule::LogNormal, 1, 2) == doctest::Approx(1).epsilon(1e-9));
}

/// Mean and variance of the second half of the columns of the inputs of `stage` whose target is
/// `target`, over many batches.
struct Moments {
  std::vector<double> mean;
  double variance = 0;
};

Moments moments_of(const Job& job, int stage, int columns, int target) {
  constexpr int kBatches = 4000;
  const Denoising denoising(job, stage, columns);
  Batch batch = job.batch(0);
  std::fill(batch.targets.begin(), batch.targets.end(), target);
  const int half = columns / 2;
  Moments moments{.mean = std::vector<double>(static_cast<std::size_t>(half))};
  double squares = 0;
  const double count = static_cast<double>(batch.targets.size()) * kBatches;
  for (int number = 0; number < kBatches; ++number) {
    const std::vector<double> input = denoising.input(batch, number);
    for (std::size_t i = 0; i < input.size(); ++i) {
      const int column = static_cast<int>(i) % columns - (columns - half);
      if (column < 0) continue;
      moments.mean[static_cast<std::size_t>(column)] += input[i] / count;
      squares += input[i] * input[i] / (count * half);
    }
  }
  moments.variance = squares;
  for (const double mean : moments.mean) moments.variance -= mean * mean / half;
  return moments;
}

TEST_CASE("a stage behind the first reads the batch, and its target under noise of its level") {
  const SmallTraining training = make_training(text_of(kResidualMlp));
  const Job job = job_of(training);
  constexpr int kColumns = 8, kHalf = 4;
  const double levels[] = {0, kFirstLevel, kSecondLevel, kThirdLevel};
  for (int stage = 1; stage < 4; ++stage) {
    const double level = levels[stage];
    const double scale = 1 / std::sqrt(1.0 / kHalf + level * level);
    const Denoising denoising(job, stage, kColumns);
    for (int target = 0; target < 4; ++target) {
      const Moments moments = moments_of(job, stage, kColumns, target);
      double length = 0;
      for (int c = 0; c < kHalf; ++c) {
        const double e = denoising.targets()[static_cast<std::size_t>(target * kHalf + c)];
        length += e * e;
        INFO("stage ", stage, ", target ", target, ", column ", c);
        // 8000 draws of a standard deviation below 1: five of the mean are 0.056.
        CHECK(std::abs(moments.mean[static_cast<std::size_t>(c)] - scale * e) < 0.056);
      }
      CHECK(length == doctest::Approx(1).epsilon(1e-9));
      CHECK(moments.variance == doctest::Approx(scale * scale * level * level).epsilon(0.04));
    }
    // The other half is the batch alone: the same under any noise, another for another sample.
    const std::vector<double> one = denoising.input(job.batch(0), 0);
    const std::vector<double> again = denoising.input(job.batch(0), 1);
    for (int c = 0; c < kHalf; ++c) {
      const auto i = static_cast<std::size_t>(c);
      CHECK(one[i] == again[i]);
      CHECK(one[i] != one[i + kColumns]);
      CHECK(one[i + kHalf] != again[i + kHalf]);
    }
  }
}

/// The stage whose module a parameter belongs to.
int stage_of(const SmallTraining& training, const std::string& parameter) {
  for (std::size_t m = 0; m < training.network.modules.size(); ++m) {
    if (parameter.rfind(training.network.modules[m].name + ".", 0) != 0) continue;
    int stage = 0;
    const auto& cuts = training.plan.partition.boundaries;
    while (cuts[static_cast<std::size_t>(stage) + 1] <= static_cast<int>(m)) ++stage;
    return stage;
  }
  FAIL("no module of ", parameter);
  return 0;
}

double direction(std::size_t index) { return std::sin(1.7 * static_cast<double>(index) + 1); }

/// Losses of all stages with one parameter moved along its direction.
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

TEST_CASE("the gradient of an independent stage is the slope of its own loss, and of no other") {
  constexpr double kStep = 1e-5;
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kMlp}) {
    SmallTraining training = make_training(text_of(model));
    training.dump_step = 0;
    const auto gradients =
        part_of(train(training, RunMode::Sequential, {.doubles = true}), "gradients/");
    training.dump_step = -1;
    for (const auto& [name, values] : gradients) {
      double along = 0;
      for (std::size_t i = 0; i < values.size(); ++i) along += values[i] * direction(i);
      const std::vector<double> up = moved_losses(training, name, kStep);
      const std::vector<double> down = moved_losses(training, name, -kStep);
      for (int stage = 0; stage < 4; ++stage) {
        const auto s = static_cast<std::size_t>(stage);
        INFO(model, ", ", name, ", loss of stage ", stage);
        if (stage != stage_of(training, name)) {
          CHECK(up[s] == down[s]);
          continue;
        }
        const double slope = (up[s] - down[s]) / (2 * kStep);
        CHECK(std::abs(along - slope) <= 1e-6 * std::max(std::abs(slope), 1e-2));
      }
    }
  }
}

/// A weight of a dump, and its columns.
struct Weights {
  const std::map<std::string, std::vector<double>>& all;
  double at(const std::string& name, int row, int columns, int column) const {
    return all.at(name)[static_cast<std::size_t>(row * columns + column)];
  }
};

/// Layer norm, product, GELU by tanh, product, and the input added: one row of width 8.
std::vector<double> block(const Weights& w, const std::string& name, const std::vector<double>& x,
                          int hidden) {
  constexpr int kWidth = 8;
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / kWidth;
  for (const double value : x) variance += (value - mean) * (value - mean) / kWidth;
  std::vector<double> y = x;
  for (int c = 0; c < kWidth; ++c) y[c] += w.at(name + ".mlp.second.bias", 0, kWidth, c);
  for (int h = 0; h < hidden; ++h) {
    double sum = w.at(name + ".mlp.first.bias", 0, hidden, h);
    for (int c = 0; c < kWidth; ++c) {
      const double normed = (x[c] - mean) / std::sqrt(variance + 1e-5);
      sum += (normed * w.at(name + ".mlp.norm.gain", 0, kWidth, c) +
              w.at(name + ".mlp.norm.shift", 0, kWidth, c)) *
             w.at(name + ".mlp.first.weight", c, hidden, h);
    }
    const double inner = std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum);
    const double active = sum / 2 * (1 + std::tanh(inner));
    for (int c = 0; c < kWidth; ++c) {
      y[c] += active * w.at(name + ".mlp.second.weight", h, kWidth, c);
    }
  }
  return y;
}

/// The probabilities of four classes by the linear head of a module.
std::vector<double> head(const Weights& w, const std::string& name, const std::vector<double>& x) {
  std::vector<double> p(4);
  double total = 0;
  for (int c = 0; c < 4; ++c) {
    double score = w.at(name + ".head.projection.bias", 0, 4, c);
    for (int i = 0; i < 8; ++i) {
      score += x[i] * w.at(name + ".head.projection.weight", i, 4, c);
    }
    total += p[c] = std::exp(score);
  }
  for (double& one : p) one /= total;
  return p;
}

TEST_CASE("losses of independent blocks, and of their chain, are those of a network in loops") {
  TrainingText text = text_of(
      R"({"kind": "residual-mlp", "input_size": 6, "layers": 4, "hidden_size": 8,
          "ffn_hidden_size": 12, "classes": 4})",
      6);
  SmallTraining training = make_training(text);
  training.dump_step = 0;
  const Outcome outcome = train(training, RunMode::Sequential, {.doubles = true});
  const auto weights = part_of(outcome, "weights/");
  const Job job = job_of(training);
  const Batch batch = job.batch(0);
  // Five levels: the normal quantiles 0.9, 0.7, 0.5, 0.3 and 0.1, halved, of a table.
  const double x[] = {0.6407758, 0.2622003, 0, -0.2622003, -0.6407758};
  for (int stage = 1; stage < 5; ++stage) {
    const Denoising denoising(job, stage, 8);
    const std::vector<double> input = denoising.input(batch, 0);
    const std::string name = "block" + std::to_string(stage - 1);
    double loss = 0, term = 0;
    for (int row = 0; row < 2; ++row) {
      const std::vector<double> read(input.begin() + row * 8, input.begin() + row * 8 + 8);
      const std::vector<double> p = head({weights}, name, block({weights}, name, read, 12));
      const int target = batch.targets[static_cast<std::size_t>(row)];
      loss -= std::log(p[static_cast<std::size_t>(target)]) / 2;
      for (int i = 0; i < 4; ++i) {
        double error = denoising.targets()[static_cast<std::size_t>(target * 4 + i)];
        for (int c = 0; c < 4; ++c) {
          error -= p[static_cast<std::size_t>(c)] *
                   denoising.targets()[static_cast<std::size_t>(c * 4 + i)];
        }
        term += error * error / 2;
      }
    }
    // 1 / level^2 is exp(-2 x).
    term *= (std::exp(-2 * x[stage]) - std::exp(-2 * x[stage - 1])) / 2;
    INFO("stage ", stage);
    const auto s = static_cast<std::size_t>(stage);
    CHECK(outcome.losses[s].at(0) == doctest::Approx(loss).epsilon(1e-9));
    CHECK(outcome.chain_terms[s].at(0) == doctest::Approx(term).epsilon(1e-6));
  }
  CHECK(outcome.chain_terms[5].at(0) == doctest::Approx(outcome.losses[5].at(0)).epsilon(1e-12));
}

/// Returns the sum of the terms of eight exact blocks, over many draws. Two classes, e = +1 and -1,
/// and nothing known of the batch: the exact block at level s has the log odds 2 z / s^2.
double bound_of_exact_blocks(NoiseSchedule noise) {
  SmallTraining training = make_training(text_of(
      R"({"kind": "residual-mlp", "input_size": 2, "layers": 6, "hidden_size": 2, "classes": 2})",
      8));
  training.plan.question.training().strategy.noise = noise;
  while (Denoising(job_of(training), 0, 2).targets()[0] ==
         Denoising(job_of(training), 0, 2).targets()[1]) {
    ++training.seed;
  }
  const Job job = job_of(training);
  double bound = 0;
  for (int stage = 0; stage < 8; ++stage) {
    const Denoising denoising(job, stage, 2);
    const double e0 = denoising.targets()[0], e1 = denoising.targets()[1];
    REQUIRE(std::abs(e0) == doctest::Approx(1));
    const double level = stage == 0 ? 1e9 : noise_level(noise, stage, 8);
    const double scale = stage == 0 ? 1 : 1 / std::sqrt(1 + level * level);
    double sum = 0;
    constexpr int kDraws = 20000;
    for (int n = 0; n < kDraws; ++n) {
      Batch batch{.features = {0, 0}, .targets = {n % 2}};
      const double z = stage == 0 ? 0 : denoising.input(batch, n)[1] / scale;
      const double odds = z * (e0 - e1) / (level * level);
      sum += denoising.term({odds, 0}, batch.targets) / kDraws;
    }
    bound += sum;
  }
  return bound;
}

/// Returns that sum by quadrature: e = 1 is seen as 1 + s n, and a block at 1 / s^2 = p says that e
/// is 1 with odds of exp(2 (p + sqrt(p) n)).
double bound_by_quadrature(NoiseSchedule noise) {
  const auto precision = [&](int stage) {
    return stage == 0 ? 0 : std::pow(noise_level(noise, stage, 8), -2);
  };
  double bound = 0;
  for (double n = -9; n < 9; n += 1e-3) {
    const double density = std::exp(-n * n / 2) / std::sqrt(2 * M_PI) * 1e-3;
    for (int stage = 0; stage < 8; ++stage) {
      const double p = precision(stage), odds = p + std::sqrt(p) * n;
      const double growth = stage < 7 ? precision(stage + 1) - p : 0;
      bound += density * (stage < 7 ? growth / 2 * std::pow(1 - std::tanh(odds), 2)
                                    : std::log1p(std::exp(-2 * odds)));
    }
  }
  return bound;
}

TEST_CASE("the terms of a chain bound the entropy of the target where blocks are exact") {
  const double entropy = std::log(2.0);
  for (const NoiseSchedule noise : {NoiseSchedule::LogNormal, NoiseSchedule::Cosine}) {
    const double bound = bound_of_exact_blocks(noise), exact = bound_by_quadrature(noise);
    MESSAGE("bound ", bound, " nats, by quadrature ", exact, ", entropy ", entropy);
    CHECK(std::abs(bound - exact) < 0.03);  // of 20,000 draws each
    CHECK(exact >= entropy);                // steps of the chain are few
  }
}

TEST_CASE("independent stages exchange nothing, and hold what is simulated, to the byte") {
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kMlp}) {
    for (const std::string schedule :
         {R"("eager")", R"({"kind": "eager", "backward": "split"})",
          R"({"kind": "eager", "update_every": 1})", R"({"kind": "eager", "in_flight": 2})"}) {
      for (const bool skips : {false, true}) {
        TrainingText text = text_of(model);
        text.schedule = schedule;
        text.micro_batches = 4;
        text.steps = 2;
        text.optimizer = "adam";
        if (skips) {
          text.strategy = R"({"kind": "independent", "unneeded_input_gradients": "skipped"})";
        }
        const SmallTraining training = make_training(text);
        INFO(model, ", ", schedule, skips ? ", skips" : "");
        CHECK(training.program.channels.empty());
        const std::vector<double> simulated = simulated_peaks(training.program);
        const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
        for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
          CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
        }
      }
    }
  }
}

TEST_CASE("losses of independent stages are the same in any order of the stages") {
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    TrainingText text = text_of(model);
    text.micro_batches = 3;
    text.steps = 3;
    const SmallTraining training = make_training(text);
    const Outcome in_order = train(training, RunMode::Sequential);
    const Outcome clocked = train(training, RunMode::Clock);
    const Outcome threads = train(training, RunMode::Threads);
    CHECK(in_order.losses == clocked.losses);
    CHECK(in_order.losses == threads.losses);
    CHECK(in_order.chain_terms == threads.chain_terms);
    // Stage 3 alone, before any other has begun.
    const Job job = job_of(training);
    const CpuRun run = make_cpu_run(job, {});
    for (const int wanted : {3, 0, 2, 1}) {
      for (const UnrolledStream& stream : unroll(training.program)) {
        if (stream.rank != wanted) continue;
        for (const Instruction& one : stream.code) {
          if (one.code == Opcode::Compute) run.workload.compute(one.index, one.micro_batch);
        }
      }
    }
    CHECK(run.outcome().losses == in_order.losses);
  }
}

TEST_CASE("the first independent stage learns what the first local one does, bit for bit") {
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    TrainingText text = text_of(model);
    text.micro_batches = 2;
    text.steps = 3;
    const Outcome independent = train(make_training(text));
    text.strategy = R"("local")";
    CHECK(independent.losses[0] == train(make_training(text)).losses[0]);
  }
}

TEST_CASE("independent replicas of one model learn from the mean of their gradients") {
  TrainingText text = text_of(kResidualMlp, 4);
  text.micro_batches = 2;
  text.steps = 3;
  const SmallTraining one = make_training(text);
  text.devices = 8;
  text.replicas = 2;
  text.micro_batches = 1;
  const SmallTraining two = make_training(text);
  const Outcome whole = train(one), halves = train(two);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (const auto& [batch, loss] : whole.losses[stage]) {
      CHECK(halves.losses[stage].at(batch) == doctest::Approx(loss).epsilon(1e-5));
    }
  }
}

TEST_CASE("models that independent stages cannot denoise are refused by name") {
  const auto problem_of = [](const std::string& model, int stages) {
    const SmallTraining training = make_training(text_of(model, stages));
    return why_not_trainable(job_of(training));
  };
  CHECK(problem_of(kResNet, 2).find("images") != std::string::npos);
  const std::string widths =
      R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [6, 7, 6], "classes": 3})";
  CHECK(problem_of(widths, 4).find("stage 2 reads 7 columns") != std::string::npos);
  CHECK(problem_of(widths, 1).empty());
}

}  // namespace
}  // namespace interlock::independent_test
