// Trainings with several micro-batches in flight: the timing of threads must not change a number.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "base/random.h"
#include "tests/harness/support/training.h"
#include "validate/executors/settled_program.h"
#include "validate/training/execution.h"

namespace interlock::settled_order_test {
namespace {

/// Batches that come up to two milliseconds late, each run and each call by another time.
BatchSource late_batches(const NeuralNetwork& network, std::uint64_t run) {
  auto random = std::make_shared<Random>(run, 5);
  auto mutex = std::make_shared<std::mutex>();
  return [&network, random, mutex](int batch) {
    int wait = 0;
    {
      const std::scoped_lock lock(*mutex);
      wait = random->integer(0, 2000);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(wait));
    return made_up_batch(network, 1, batch);
  };
}

/// All that a run came to: losses of every stage, and the dump of step 3.
std::map<std::string, std::vector<double>> numbers_of(const SmallTraining& training,
                                                      const ExecutionOptions& options) {
  const Execution execution = execute(training.plan, training.network, options);
  std::map<std::string, std::vector<double>> numbers = by_name(execution.outcome);
  for (std::size_t stage = 0; stage < execution.outcome.losses.size(); ++stage) {
    for (const auto& [batch, loss] : execution.outcome.losses[stage]) {
      numbers["loss " + std::to_string(stage)].push_back(loss);
    }
  }
  return numbers;
}

TrainingText in_flight(const std::string& strategy, int count, int every) {
  TrainingText text = {.model = kResidualMlp, .strategy = strategy, .devices = 4, .steps = 6};
  text.micro_batches = 2;
  text.schedule = R"({"kind": "eager", "in_flight": )" + std::to_string(count) +
                  R"(, "update_every": )" + std::to_string(every) + "}";
  return text;
}

TEST_CASE("trainings with micro-batches in flight come to the same bits however late threads are") {
  for (const std::string strategy : {R"("pairwise")", R"({"kind": "interlocking", "n_wise": 4})"}) {
    for (const int every : {1, 2}) {
      TrainingText text = in_flight(strategy, 3, every);
      const SmallTraining training = make_training(text);
      INFO(strategy, ", an update every ", every);
      REQUIRE(leaves_numbers_open(training.program));
      ExecutionOptions options = {.steps = 6, .descent = training.descent, .dump_step = 3};
      options.batches = [&](int batch) { return made_up_batch(training.network, 1, batch); };
      options.alone = true;
      const auto in_order = numbers_of(training, options);
      options.alone = false;
      for (std::uint64_t run = 0; run < 12; ++run) {
        options.batches = late_batches(training.network, run);
        CHECK(numbers_of(training, options) == in_order);
      }
    }
  }
}

TEST_CASE(
    "the staleness of a run is that of its simulation, and 0 without micro-batches in flight") {
  for (const int count : {1, 2, 3}) {
    TrainingText text = in_flight(R"({"kind": "interlocking", "n_wise": 4})", count, 1);
    const SmallTraining training = make_training(text);
    ExecutionOptions options = {.steps = 6, .descent = training.descent};
    options.batches = late_batches(training.network, 3);
    const Execution run = execute(training.plan, training.network, options);
    TraceLog simulated;
    run_native(training.program, log_sink(simulated));
    // Counted once more, from the spans of the simulation: updates before the own one, less those
    // before the forward.
    std::map<std::pair<int, int>, int> before;
    std::map<int, int> updates, most;
    for (const Span& span : simulated.spans) {
      const OpInfo& op = training.program.ops[static_cast<std::size_t>(span.op)];
      if (op.kind == OpKind::F) before[{op.stage, span.micro_batch}] = updates[op.stage];
      if (op.kind != OpKind::U) continue;
      const int missed = updates[op.stage]++ - before.at({op.stage, span.micro_batch});
      most[span.micro_batch] = std::max(most[span.micro_batch], missed);
    }
    std::map<int, std::int64_t> expected;
    for (const auto& [batch, missed] : most) ++expected[missed];
    INFO(count, " in flight");
    const TrainingCurve curve = training_curve(training.plan, run, options);
    CHECK(curve.staleness == expected);
    CHECK((expected.rbegin()->first > 0) == (count > 1));
  }
}

TEST_CASE("a dump of a step of two updates has the weights before it, and the mean of both") {
  // With SGD and no momentum: updated = weights - rate (g1 + g2), and gradients = (g1 + g2) / 2.
  TrainingText text = {.model = kResidualMlp, .devices = 1, .micro_batches = 4, .steps = 3};
  text.schedule = R"({"kind": "pipedream", "update_every": 2})";
  SmallTraining training = make_training(text);
  training.dump_step = 1;
  const Outcome own = train(training, RunMode::Sequential, {.doubles = true});
  training.dump_step = 0;
  const auto weights = part_of(own, "weights/"), gradients = part_of(own, "gradients/"),
             updated = part_of(own, "updated/");
  const auto before = part_of(train(training, RunMode::Sequential, {.doubles = true}), "updated/");
  REQUIRE(!weights.empty());
  for (const auto& [key, values] : weights) {
    const std::string& name = key;
    INFO(name);
    CHECK(values == before.at(name));
    std::vector<double> expected = values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      expected[i] -= 2 * training.descent.rate * gradients.at(name)[i];
    }
    CHECK(distance(updated.at(name), expected) <= 1e-14);
  }
}

}  // namespace
}  // namespace interlock::settled_order_test
