// Gradients that cross boundaries for every k-th micro-batch, against slopes of the losses.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/harness/support/training.h"

namespace interlock::gradient_every_test {
namespace {

constexpr int kStages = 4, kMicroBatches = 4;

std::string strategy_of(const std::string& keys, int every) {
  return "{" + keys + R"(, "gradient_every": )" + std::to_string(every) + "}";
}

SmallTraining training_of(const std::string& model, const std::string& strategy, int in_flight = 1,
                          int steps = 1) {
  return make_training(
      {.model = model,
       .strategy = strategy,
       .schedule = R"({"kind": "eager", "in_flight": )" + std::to_string(in_flight) + "}",
       .devices = kStages,
       .micro_batches = kMicroBatches,
       .steps = steps});
}

std::map<std::string, std::vector<double>> gradients_of(SmallTraining training,
                                                        const CpuOptions& options = {}) {
  training.dump_step = 0;
  return part_of(train(training, RunMode::Sequential, options), "gradients/");
}

/// Returns the stage whose module, or head, a parameter belongs to.
int stage_of(const SmallTraining& training, const std::string& parameter) {
  for (std::size_t m = 0; m < training.network.modules.size(); ++m) {
    if (!parameter.starts_with(training.network.modules[m].name + ".")) continue;
    const auto& cuts = training.plan.partition.boundaries;
    return static_cast<int>(std::ranges::upper_bound(cuts, static_cast<int>(m)) - cuts.begin()) - 1;
  }
  FAIL("no module of ", parameter);
  return 0;
}

double direction(const std::string& parameter, std::int64_t index) {
  return std::cos(2.3 * static_cast<double>(index) + static_cast<double>(parameter.size()));
}

/// Losses that train a stage by a micro-batch.
using Trains = std::function<std::vector<int>(int stage, int micro_batch)>;

/// Returns the slope, along `direction` in one parameter of `stage`, of the mean over micro-batches
/// of the losses that train it.
double slope(const SmallTraining& training, const std::string& parameter, int stage,
             const Trains& trains) {
  constexpr double kStep = 1e-6;
  double difference = 0;
  for (const double sign : {1.0, -1.0}) {
    CpuOptions options = {.doubles = true};
    options.first = [&](const std::string& name, std::int64_t i, double value) {
      return name == parameter ? value + sign * kStep * direction(name, i) : value;
    };
    const Outcome outcome = train(training, RunMode::Sequential, options);
    for (int b = 0; b < kMicroBatches; ++b) {
      for (const int loss : trains(stage, b)) {
        difference += sign * outcome.losses[static_cast<std::size_t>(loss)].at(b);
      }
    }
  }
  return difference / (2 * kStep) / kMicroBatches;
}

/// Holds every gradient of a step to the slope of what trains its stage; a head learns from all.
void check_slopes(const std::string& model, const std::string& strategy, const Trains& trains) {
  const SmallTraining training = training_of(model, strategy);
  const auto gradients = gradients_of(training_of(model, strategy), {.doubles = true});
  const Trains own = [](int stage, int) { return std::vector<int>{stage}; };
  for (const auto& [name, values] : gradients) {
    const int stage = stage_of(training, name);
    double along = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      along += values[i] * direction(name, static_cast<std::int64_t>(i));
    }
    const bool of_head = name.find(".head.") != std::string::npos;
    const double expected = slope(training, name, stage, of_head ? own : trains);
    INFO(strategy << ", " << name << " of stage " << stage << ": " << along << ", slope "
                  << expected);
    CHECK(std::abs(along - expected) <= 1e-6 * std::max(std::abs(expected), 1e-2));
  }
}

bool crosses(int micro_batch, int every) { return (micro_batch + 1) % every == 0; }

TEST_CASE("between the k-th micro-batches a stage learns from its own loss: slopes") {
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    for (const int every : {2, 4}) {
      check_slopes(model, strategy_of(R"("kind": "pairwise")", every), [&](int stage, int b) {
        return std::vector{crosses(b, every) ? std::min(stage + 1, kStages - 1) : stage};
      });
      check_slopes(model, strategy_of(R"("kind": "chunked", "chunks": 2)", every),
                   [&](int stage, int b) {
                     return std::vector{crosses(b, every) ? stage / 2 * 2 + 1 : stage};
                   });
    }
    const std::string sum = R"("kind": "interlocking", "n_wise": 3, "gradient": "sum")";
    check_slopes(model, strategy_of(sum, 2), [](int stage, int b) {
      std::vector<int> losses = {stage};
      const int last = crosses(b, 2) ? std::min(stage + 2, kStages - 1) : stage;
      for (int loss = stage + 1; loss <= last; ++loss) losses.push_back(loss);
      return losses;
    });
  }
}

TEST_CASE("every gradient, or none to let through: as without the key, bit for bit") {
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    INFO(model);
    CHECK(gradients_of(training_of(model, strategy_of(R"("kind": "pairwise")", 1))) ==
          gradients_of(training_of(model, R"("pairwise")")));
    const std::string alone = R"("kind": "interlocking", "n_wise": 1)";
    CHECK(gradients_of(training_of(model, strategy_of(alone, 2))) ==
          gradients_of(training_of(model, R"("local")")));
  }
}

TEST_CASE("stages whose gradients cross now and then hold what is simulated, to the byte") {
  for (const std::string kind : {R"("kind": "pairwise")", R"("kind": "chunked", "chunks": 2)",
                                 R"("kind": "interlocking", "n_wise": 3, "gradient": "mean")"}) {
    for (const int in_flight : {1, 3}) {
      INFO(kind << ", in flight " << in_flight);
      const SmallTraining training = training_of(kTransformer, strategy_of(kind, 2), in_flight, 3);
      const std::vector<double> peaks = simulated_peaks(training.program);
      const Outcome outcome = train(training, RunMode::Clock);
      REQUIRE(outcome.memory.size() == peaks.size());
      for (std::size_t r = 0; r < peaks.size(); ++r) {
        INFO("rank " << r);
        CHECK(static_cast<double>(outcome.memory[r].peak) == peaks[r]);
      }
    }
  }
}

TEST_CASE("threads learn the same as one thread where gradients cross now and then") {
  const SmallTraining training =
      training_of(kResidualMlp, strategy_of(R"("kind": "pairwise")", 2), 1, 5);
  CHECK(train(training, RunMode::Threads).losses == train(training, RunMode::Sequential).losses);
}

}  // namespace
}  // namespace interlock::gradient_every_test
