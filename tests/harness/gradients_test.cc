// Gradients of runs against slopes of the losses that they belong to.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/harness/support/training.h"

namespace interlock::gradients_test {
namespace {

std::string interlocking(const std::string& n, const std::string& more = "") {
  return R"({"kind": "interlocking", "n_wise": )" + n + more + "}";
}

std::string n_wise(int n) {
  return R"({"kind": "interlocking", "n_wise": )" + std::to_string(n) + "}";
}

TrainingText text_of(const std::string& model, int stages, const std::string& strategy) {
  return {.model = model, .strategy = strategy, .devices = stages};
}

/// Gradients of the first step, by parameter.
std::map<std::string, std::vector<double>> gradients_of(const TrainingText& text,
                                                        const CpuOptions& options = {}) {
  SmallTraining training = make_training(text);
  training.dump_step = 0;
  return part_of(train(training, RunMode::Sequential, options), "gradients/");
}

/// The stage whose module a parameter belongs to; heads', too.
int stage_of(const SmallTraining& training, const std::string& parameter) {
  for (std::size_t m = 0; m < training.network.modules.size(); ++m) {
    if (parameter.rfind(training.network.modules[m].name + ".", 0) != 0) continue;
    const auto& cuts = training.plan.partition.boundaries;
    int stage = 0;
    while (cuts[static_cast<std::size_t>(stage) + 1] <= static_cast<int>(m)) ++stage;
    return stage;
  }
  FAIL("no module of ", parameter);
  return 0;
}

/// A direction in the space of a parameter's values.
double direction(const std::string& parameter, std::int64_t index) {
  return std::sin(1.7 * static_cast<double>(index) + static_cast<double>(parameter.size()));
}

/// The slope of the loss at the end of stage `loss` along `direction` in one parameter.
double slope(const SmallTraining& training, const std::string& parameter, int loss) {
  constexpr double kStep = 1e-5;
  double difference = 0;
  for (const double sign : {1.0, -1.0}) {
    CpuOptions options = {.doubles = true};
    options.first = [&](const std::string& name, std::int64_t i, double value) {
      return name == parameter ? value + sign * kStep * direction(name, i) : value;
    };
    const Outcome outcome = train(training, RunMode::Sequential, options);
    difference += sign * outcome.losses[static_cast<std::size_t>(loss)].at(0);
  }
  return difference / (2 * kStep);
}

/// Each gradient of an N-wise run is the slope of the loss of stage min(i + N - 1, K - 1) alone.
void check_slopes(const std::string& model, int stages, int n) {
  SmallTraining training = make_training(text_of(model, stages, n_wise(n)));
  training.dump_step = 0;
  const auto gradients =
      part_of(train(training, RunMode::Sequential, {.doubles = true}), "gradients/");
  training.dump_step = -1;
  double worst = 0;
  for (const auto& entry : gradients) {
    const std::string& name = entry.first;
    const std::vector<double>& values = entry.second;
    const int stage = stage_of(training, name);
    const bool of_head = name.find(".head.") != std::string::npos;
    const int loss = of_head ? stage : std::min(stage + n - 1, stages - 1);
    double along = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      along += values[i] * direction(name, static_cast<std::int64_t>(i));
    }
    const double difference = slope(training, name, loss);
    const double error = std::abs(along - difference) / std::max(std::abs(difference), 1e-2);
    worst = std::max(worst, error);
    INFO(n, "-wise, ", name, " by loss ", loss, ": ", along, ", slope ", difference);
    CHECK(error <= 1e-6);
  }
  MESSAGE(n, "-wise, ", gradients.size(), " parameters in ", stages, " stages: worst error ",
          worst);
}

TEST_CASE("every gradient of an N-wise residual MLP is the slope of its own loss alone") {
  for (int n = 1; n <= 5; ++n) {
    check_slopes(kResidualMlp, 5, n);
    check_slopes(kReversible, 5, n);
  }
}

TEST_CASE("every gradient of an N-wise transformer is the slope of its own loss alone") {
  for (int n = 1; n <= 4; ++n) check_slopes(kTransformer, 4, n);
}

/// Lists of N of the losses of five stages, and the losses that reach each stage, written out.
struct Reach {
  std::string n;
  std::vector<std::vector<int>> losses;  // (stages)
};

const std::vector<Reach>& reaches() {
  static const std::vector<Reach> all = {
      {"[1, 2, 1, 2, 1]", {{0, 1}, {1}, {2, 3}, {3}, {4}}},
      {"[1, 1, 3, 1, 3]", {{0, 2}, {1, 2}, {2, 4}, {3, 4}, {4}}},
      {"[1, 2, 3, 1, 2]", {{0, 1, 2}, {1, 2}, {2}, {3, 4}, {4}}},
      {"[1, 1, 1, 4, 5]", {{0, 3, 4}, {1, 3, 4}, {2, 3, 4}, {3, 4}, {4}}},
      {"[1, 1, 2, 4, 2]", {{0, 3}, {1, 2, 3}, {2, 3}, {3, 4}, {4}}},
      {"[9, 1, 3, 2, 4]", {{0, 2}, {1, 2, 4}, {2, 3, 4}, {3, 4}, {4}}}};
  return all;
}

TEST_CASE("with an N for each loss every gradient is the slope of what trains its stage") {
  for (const Reach& reach : reaches()) {
    for (const std::string mode : {"furthest", "sum", "mean"}) {
      SmallTraining training = make_training(
          text_of(kResidualMlp, 5, interlocking(reach.n, R"(, "gradient": ")" + mode + '"')));
      training.dump_step = 0;
      const auto gradients =
          part_of(train(training, RunMode::Sequential, {.doubles = true}), "gradients/");
      training.dump_step = -1;
      for (const auto& [name, values] : gradients) {
        const int stage = stage_of(training, name);
        std::vector<int> losses = reach.losses[static_cast<std::size_t>(stage)];
        if (mode == "furthest") losses = {losses.back()};
        if (name.find(".head.") != std::string::npos) losses = {stage};
        double along = 0, expected = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          along += values[i] * direction(name, static_cast<std::int64_t>(i));
        }
        for (const int loss : losses) expected += slope(training, name, loss);
        if (mode == "mean") expected /= static_cast<double>(losses.size());
        INFO(reach.n, ", ", mode, ", ", name, ": ", along, ", slope ", expected);
        CHECK(std::abs(along - expected) <= 1e-6 * std::max(std::abs(expected), 1e-2));
      }
    }
  }
}

TEST_CASE("N-wise is local for N = 1 and global for N = K, bit for bit") {
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet}) {
    INFO(model);
    const auto local = gradients_of(text_of(model, 4, R"("local")"));
    CHECK(gradients_of(text_of(model, 4, n_wise(1))) == local);
    const auto global = gradients_of(text_of(model, 4, R"("global")"));
    CHECK(gradients_of(text_of(model, 4, n_wise(4))) == global);
  }
}

TEST_CASE("stages that the last loss reaches have the global gradient, bit for bit") {
  const int stages = 5;
  const auto global = gradients_of(text_of(kResidualMlp, stages, R"("global")"));
  const SmallTraining any = make_training(text_of(kResidualMlp, stages, R"("global")"));
  for (int n = 1; n <= stages; ++n) {
    int reached = 0;
    for (const auto& entry : gradients_of(text_of(kResidualMlp, stages, n_wise(n)))) {
      const std::string& name = entry.first;
      const std::vector<double>& values = entry.second;
      const auto whole = global.find(name);
      if (whole == global.end()) continue;  // a head's
      const bool same = stage_of(any, name) + n - 1 >= stages - 1;
      INFO(n, "-wise, ", name);
      CHECK((values == whole->second) == same);
      if (same) ++reached;
    }
    CHECK(reached > 0);
  }
}

TEST_CASE("a head learns the same whatever N is") {
  const auto all = [](int n) {
    return R"({"kind": "interlocking", "n_wise": )" + std::to_string(n) + R"(, "heads": "all"})";
  };
  const auto local = gradients_of(text_of(kResidualMlp, 5, R"("local")"));
  for (int n = 2; n <= 4; ++n) {
    int heads = 0;
    for (const auto& entry : gradients_of(text_of(kResidualMlp, 5, all(n)))) {
      const std::string& name = entry.first;
      const std::vector<double>& values = entry.second;
      if (name.find(".head.") == std::string::npos) continue;
      INFO(n, "-wise, ", name);
      CHECK(values == local.at(name));
      ++heads;
    }
    CHECK(heads == 4 * 2);
  }
}

TEST_CASE("chunked and greedy training are local training of chunks and of modules") {
  const auto chunked =
      gradients_of(text_of(kResidualMlp, 4, R"({"kind": "chunked", "chunks": 2})"));
  TrainingText halves = text_of(kResidualMlp, 2, R"("local")");
  halves.more = R"(, "partition": [3, 2])";
  TrainingText four = text_of(kResidualMlp, 4, R"({"kind": "chunked", "chunks": 2})");
  four.more = R"(, "partition": [2, 1, 1, 1])";
  const auto whole = gradients_of(halves);
  for (const auto& entry : gradients_of(four)) {
    const std::string& name = entry.first;
    const std::vector<double>& values = entry.second;
    INFO(name);
    CHECK(distance(values, whole.at(name)) <= 1e-5);
  }
  const auto greedy = gradients_of(text_of(kResidualMlp, 5, R"("greedy")"));
  CHECK(greedy == gradients_of(text_of(kResidualMlp, 5, R"("local")")));
}

TEST_CASE("the sum and the mean of gradients are those of the losses that reach a stage") {
  const int stages = 4;
  const auto of_mode = [&](const std::string& mode) {
    return gradients_of(
        text_of(kTransformer, stages,
                R"({"kind": "interlocking", "n_wise": 3, "gradient": ")" + mode + "\"}"),
        {.doubles = true});
  };
  const auto summed = of_mode("sum"), mean = of_mode("mean");
  std::vector<std::map<std::string, std::vector<double>>> alone;  // by N: of the furthest loss
  for (int n = 1; n <= 3; ++n) {
    alone.push_back(gradients_of(text_of(kTransformer, stages, n_wise(n)), {.doubles = true}));
  }
  const SmallTraining any = make_training(text_of(kTransformer, stages, n_wise(3)));
  for (const auto& entry : summed) {
    const std::string& name = entry.first;
    const std::vector<double>& values = entry.second;
    if (name.find(".head.") != std::string::npos) continue;
    const int losses = std::min(3, stages - stage_of(any, name));
    std::vector<double> expected(values.size(), 0.0), share = mean.at(name);
    for (int n = 0; n < losses; ++n) {
      const auto& one = alone[static_cast<std::size_t>(n)].at(name);
      for (std::size_t i = 0; i < one.size(); ++i) expected[i] += one[i];
    }
    for (double& value : share) value *= losses;
    INFO(name, ", ", losses, " losses");
    CHECK(distance(values, expected) <= 1e-12);
    CHECK(distance(share, expected) <= 1e-12);
  }
}

}  // namespace
}  // namespace interlock::gradients_test
