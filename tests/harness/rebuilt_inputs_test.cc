// PETRA: losses, gradients and weights against the update equations of the paper, in plain loops.
// SPDX-License-Identifier: Apache-2.0
//
// arXiv 2406.02052, section 3. Stage j of J keeps no activations and one version of its weights
// w_j. At each turn it runs x_j = F_j(x_(j-1); w_j) forward, and takes from above (y_j, d_j), an
// output of J - j turns before as the stage above has computed it back, and its gradient:
//   y_(j-1) = F_j^-1(y_j; w_j),   d_(j-1) = d <d_j, F_j(y_(j-1); w_j)> / d y_(j-1),
//   w_j <- w_j - rate * d <d_j, F_j(y_(j-1); w_j)> / d w_j,   (y_(j-1), d_(j-1)) goes down,
// all by today's w_j. What is not reversible: the last stage goes back at once from the input that
// it has just run forward from, and hands that down; the first module reads its batch again.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "tests/harness/support/training.h"
#include "tests/harness/support/written_network.h"
#include "validate/training/execution.h"

namespace interlock::rebuilt_inputs_test {
namespace {

constexpr int kSteps = 9;

TrainingText reversible_text(int devices, const std::string& more = "") {
  TrainingText text = {.model = kReversible, .devices = devices, .steps = kSteps};
  text.schedule = R"({"kind": "petra")" + more + "}";
  return text;
}

/// Holds the message that a stage sends down.
struct Message {
  written::Vector output, slope;
};

struct ByHand {
  std::vector<double> losses;
  written::Weights slopes;  // of the last micro-batch
  double moved = 0;         // the furthest that a rebuilt input is from that of its forward
};

/// Goes back through all modules of a stage that rebuilds; returns what goes down.
Message go_back(const written::Stage& stage, const Message& from_above, const Batch& data,
                written::Weights& slopes) {
  Message message = from_above;
  for (std::size_t m = stage.modules.size(); m-- > 0;) {
    written::Stage one = stage;
    one.modules = {stage.modules[m]};
    const written::Vector x = one.modules[0] == "input"
                                  ? written::Vector(data.features.begin(), data.features.end())
                                  : written::rebuilt(one, message.output);
    const written::Slopes own = written::backward(one, x, message.slope, data.targets);
    for (const auto& [name, values] : own.weights) {
      if (name.rfind(one.modules[0] + ".", 0) == 0) slopes[name] = values;
    }
    message = {x, own.input};
  }
  return message;
}

/// `stages` end with the last weights.
ByHand run_by_hand(std::vector<written::Stage>& stages, const Job& job) {
  std::vector<std::vector<written::Weights>> versions(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) versions[s] = {stages[s].weights};
  ByHand result;
  const int last = static_cast<int>(stages.size()) - 1;
  for (int b = 0; b < kSteps; ++b) {
    const Batch data = job.batch(b);
    std::vector<written::Vector> inputs = {{data.features.begin(), data.features.end()}};
    for (int s = 0; s <= last; ++s) {
      written::Stage forward = stages[static_cast<std::size_t>(s)];
      const int version = std::max(0, b - (last - s));
      forward.weights = versions[static_cast<std::size_t>(s)][static_cast<std::size_t>(version)];
      inputs.push_back(written::forward(forward, inputs.back(), data.targets));
    }
    result.losses.push_back(inputs.back()[0].real());
    result.slopes.clear();
    Message message;
    for (int s = last; s >= 0; --s) {
      written::Stage& stage = stages[static_cast<std::size_t>(s)];
      const written::Vector& input = inputs[static_cast<std::size_t>(s)];
      written::Weights slopes;
      if (s == last) {
        written::Slopes own = written::backward(stage, input, {1}, data.targets);
        message = {input, own.input};
        slopes = own.weights;
      } else {
        message = go_back(stage, message, data, slopes);
      }
      for (std::size_t i = 0; i < input.size(); ++i) {
        result.moved = std::max(result.moved, std::abs(message.output[i] - input[i]));
      }
      written::descend(stage.weights, slopes, job.descent.rate);
      result.slopes.insert(slopes.begin(), slopes.end());
      versions[static_cast<std::size_t>(s)].push_back(stage.weights);
    }
  }
  return result;
}

void check_numbers(const std::map<std::string, std::vector<double>>& own,
                   const written::Weights& by_hand) {
  CHECK(!by_hand.empty());
  for (const auto& [key, values] : by_hand) {
    const std::string& name = key;
    std::vector<double> expected;
    for (const written::Number value : values) expected.push_back(value.real());
    INFO(name);
    CHECK(distance(own.at(name), expected) <= 1e-11);
  }
}

TEST_CASE("reversible stages learn what the equations of PETRA say") {
  for (const int devices : {1, 2, 3, 5}) {
    SmallTraining training = make_training(reversible_text(devices));
    training.dump_step = 0;
    const auto first = part_of(train(training, RunMode::Sequential, {.doubles = true}), "weights/");
    training.dump_step = kSteps - 1;
    const Job job = job_of(training);
    const Outcome own = train(training, RunMode::Threads, {.doubles = true, .poison = true});
    std::vector<written::Stage> stages = written::stages_of(job, first);
    const ByHand by_hand = run_by_hand(stages, job);
    INFO(devices, " stages; rebuilt inputs are up to ", by_hand.moved, " from those of forwards");
    CHECK((by_hand.moved > 1e-4) == (devices > 2));  // with two, the first rebuilds only its own
    for (int b = 0; b < kSteps; ++b) {
      const double loss = by_hand.losses[static_cast<std::size_t>(b)];
      INFO("micro-batch ", b, ": ", own.losses.back().at(b), ", by hand ", loss);
      CHECK(own.losses.back().at(b) == doctest::Approx(loss).epsilon(1e-11));
    }
    check_numbers(part_of(own, "gradients/"), by_hand.slopes);
    for (const written::Stage& stage : stages) {
      check_numbers(part_of(own, "updated/"), stage.weights);
    }
  }
}

TEST_CASE("reversible stages hold what they were simulated to hold, to the byte") {
  for (const int devices : {1, 2, 3, 5}) {
    for (const int samples : {1, 4}) {
      for (const char* more : {"", R"(, "backward": "split")", R"(, "update_every": 2)"}) {
        TrainingText text = reversible_text(devices, more);
        text.samples = samples;
        text.micro_batches = 2;
        INFO(devices, " stages, ", samples, " samples", more);
        const SmallTraining training = make_training(text);
        const std::vector<double> simulated = simulated_peaks(training.program);
        const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
        for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
          INFO("rank ", rank, ": ", outcome.memory[rank].peak, ", simulated ", simulated[rank]);
          CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
        }
        const Outcome threads = train(training, RunMode::Threads, {.poison = true});
        CHECK(threads.losses == outcome.losses);
      }
    }
  }
}

TEST_CASE("reversible stages come to the same bits however late threads are") {
  const SmallTraining training = make_training(reversible_text(5));
  ExecutionOptions options = {.steps = kSteps, .descent = training.descent};
  options.batches = [&](int b) { return made_up_batch(training.network, 1, b); };
  const auto losses = execute(training.plan, training.network, options).outcome.losses;
  for (int run = 0; run < 8; ++run) {
    options.batches = [&, run](int b) {
      std::this_thread::sleep_for(std::chrono::microseconds((b * 7919 + run * 104729) % 3000));
      return made_up_batch(training.network, 1, b);
    };
    CHECK(execute(training.plan, training.network, options).outcome.losses == losses);
  }
}

TEST_CASE("reversible stages, and reversible blocks under other schedules, are refused on GPUs") {
  for (const bool petra : {true, false}) {
    TrainingText text = reversible_text(3);
    if (!petra) text.schedule = "";
    SmallTraining training = make_training(text);
    training.plan.question.cluster.executor.kind = RealDevices::Kind::Cuda;
    const std::string expected =
        petra ? "/training/schedule: stages that run forwards again, or learn from old inputs, are "
                "trained on CPUs; expected "
              : "/model/reversible: reversible blocks are trained on CPUs; expected ";
    std::string message;
    try {
      plan_training(training.plan.question, training.network, false);
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK(message.find(expected + R"("executor": "cpu")") != std::string::npos);
  }
}

}  // namespace
}  // namespace interlock::rebuilt_inputs_test
