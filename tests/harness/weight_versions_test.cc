// Pipelines that never flush: which weights a micro-batch meets, against a loop by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "sim/engines/engines.h"
#include "tests/harness/support/training.h"
#include "validate/cpu/cpu_steps.h"
#include "validate/network/job_plan.h"

namespace interlock::weight_versions_test {
namespace {

using Weights = std::vector<std::vector<double>>;

/// A stage whose every version of its weights is kept.
struct HandStage {
  StageJob planned;
  std::vector<Weights> versions;
  Weights gradients;
  std::vector<std::vector<double>> blocks;
};

char* address(std::vector<double>& numbers) { return reinterpret_cast<char*>(numbers.data()); }

std::vector<char*> pointers(Weights& weights) {
  std::vector<char*> begins;
  for (auto& weight : weights) begins.push_back(address(weight));
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

StageTensors tensors_of(HandStage& stage, const Job& job) {
  StageTensors tensors;
  for (std::size_t p = 0; p < stage.blocks.size(); ++p) {
    tensors.places[p] = address(stage.blocks[p]);
  }
  tensors.samples = job.network.samples_per_micro_batch;
  tensors.rows_per_sample = job.network.rows_per_sample;
  return tensors;
}

std::vector<double>& block(HandStage& stage, Place place) {
  return stage.blocks[static_cast<std::size_t>(place)];
}

/// A version of a stage's weights.
using VersionOf = std::function<int(int stage)>;

/// One micro-batch through all stages and back, with versions of each one's weights. Its loss.
double go_through(std::vector<HandStage>& stages, const Job& job, int micro_batch,
                  const VersionOf& forward, const VersionOf& backward) {
  const Batch data = job.batch(micro_batch);
  double loss = 0;
  std::vector<StageTensors> tensors;
  std::vector<std::vector<char*>> weights, later_weights, gradients;
  for (HandStage& stage : stages) {
    const int s = static_cast<int>(weights.size());
    weights.push_back(pointers(stage.versions.at(static_cast<std::size_t>(forward(s)))));
    later_weights.push_back(pointers(stage.versions.at(static_cast<std::size_t>(backward(s)))));
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
    loss += run_steps<double>(stages[s].planned.plan.forward, tensors[s], data.targets.data());
  }
  for (std::size_t s = stages.size(); s-- > 0;) {
    if (s + 1 < stages.size()) {
      block(stages[s], Place::OutputGradient) = block(stages[s + 1], Place::InputGradient);
      tensors[s].places[static_cast<std::size_t>(Place::OutputGradient)] =
          address(block(stages[s], Place::OutputGradient));
    }
    tensors[s].weights = &later_weights[s];
    run_steps<double>(stages[s].planned.plan.backward, tensors[s], data.targets.data());
  }
  return loss;
}

/// Steps down by the mean of the `count` gradients since the last step.
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

/// Which weights of a stage micro-batches meet: updates before their forwards, and those that their
/// backwards use.
struct StageOrder {
  std::vector<int> forwards, backwards;
};

/// The order of every stage in a simulated run whose backwards use the weights of their forwards.
std::vector<StageOrder> orders_of(const Program& program) {
  std::vector<StageOrder> orders(static_cast<std::size_t>(program.stages));
  std::vector<int> updates(orders.size());
  run_native(program, {.span = [&](const Span& span) {
               const OpInfo& op = program.ops[static_cast<std::size_t>(span.op)];
               const auto s = static_cast<std::size_t>(op.stage);
               if (op.kind == OpKind::F) orders[s].forwards.push_back(updates[s]);
               if (op.kind != OpKind::U) return;
               CHECK(span.micro_batch / program.update_every == updates[s]);  // in order
               ++updates[s];
             }});
  for (StageOrder& order : orders) order.backwards = order.forwards;
  return orders;
}

/// The losses of a run against those of a loop in which every stage meets each micro-batch with the
/// weights that its order says, and update k is that of micro-batches k * update_every and on.
void check_versions(const SmallTraining& training, const std::vector<StageOrder>& orders) {
  const Job job = job_of(training);
  const auto losses = train(training, RunMode::Sequential, {.doubles = true}).losses.back();
  if (!chooses_order(training.program)) {
    CHECK(train(training, RunMode::Threads, {.doubles = true}).losses.back() == losses);
  }
  std::vector<HandStage> stages;
  stages.reserve(static_cast<std::size_t>(training.program.stages));
  for (int s = 0; s < training.program.stages; ++s) stages.push_back(make_hand_stage(job, s));
  const int every = training.program.update_every;
  for (int b = 0; b < static_cast<int>(losses.size()); ++b) {
    const auto batch = static_cast<std::size_t>(b);
    const double loss = go_through(
        stages, job, b, [&](int s) { return orders[static_cast<std::size_t>(s)].forwards[batch]; },
        [&](int s) { return orders[static_cast<std::size_t>(s)].backwards[batch]; });
    INFO("micro-batch ", b, ": ", losses.at(b), ", by hand ", loss);
    CHECK(losses.at(b) == doctest::Approx(loss).epsilon(1e-12));
    if ((b + 1) % every != 0) continue;
    for (HandStage& stage : stages) descend(stage, training.descent.rate, every);
  }
}

/// As above, of three stages of which stage `s` meets micro-batch `b` with forward(s, b), and goes
/// back with backward(s, b).
using VersionOfBatch = std::function<int(int s, int b)>;
void check_versions(const std::string& schedule, int micro_batches, const VersionOfBatch& forward,
                    const VersionOfBatch& backward) {
  TrainingText text = {
      .model = kResidualMlp, .devices = 3, .micro_batches = micro_batches, .steps = 4};
  text.schedule = schedule;
  INFO(schedule);
  const SmallTraining training = make_training(text);
  std::vector<StageOrder> orders(3);
  for (int s = 0; s < 3; ++s) {
    for (int b = 0; b < text.steps * micro_batches; ++b) {
      orders[static_cast<std::size_t>(s)].forwards.push_back(forward(s, b));
      orders[static_cast<std::size_t>(s)].backwards.push_back(backward(s, b));
    }
  }
  check_versions(training, orders);
}

TEST_CASE("backwards of PipeDream use the weights of their forwards") {
  // Stage s is 2 - s forwards ahead: that many updates come between a forward and its backward.
  for (const int every : {1, 2}) {
    const auto version = [&](int s, int b) { return std::max(0, b - (2 - s)) / every; };
    check_versions(R"({"kind": "pipedream", "update_every": )" + std::to_string(every) + "}", 2,
                   version, version);
  }
}

TEST_CASE("PipeDream-2BW uses the weights before the newest on every stage") {
  const auto version = [](int, int b) { return std::max(0, b / 4 - 1); };
  check_versions(R"({"kind": "pipedream-2bw", "update_every": 4})", 4, version, version);
}

TEST_CASE("pipelined backpropagation goes back with the weights that it has then") {
  // The order of PipeDream, but of one version: all updates before that of the micro-batch.
  for (const std::string kind : {"pipelined-backprop", "ddg"}) {
    check_versions(R"({"kind": ")" + kind + R"(", "update_every": 1})", 2,
                   [](int s, int b) { return std::max(0, b - (2 - s)); },
                   [](int, int b) { return b; });
  }
}

TEST_CASE("with two micro-batches in flight a backward uses the weights of its forward") {
  // One module a stage: the first keeps its input alone.
  TrainingText text = {.model = kResidualMlp, .devices = 5, .steps = 6};
  text.strategy = R"({"kind": "interlocking", "n_wise": 5})";
  text.schedule = R"({"kind": "eager", "in_flight": 2})";
  const SmallTraining training = make_training(text);
  const std::vector<StageOrder> orders = orders_of(training.program);
  int behind = 0;
  for (const StageOrder& order : orders) {
    for (std::size_t b = 0; b < order.forwards.size(); ++b) {
      if (order.forwards[b] < static_cast<int>(b)) ++behind;
    }
  }
  INFO(behind, " forwards with weights that are behind");
  CHECK(behind > 6);
  check_versions(training, orders);
}

/// Returns the sums of the updates of a training that learns nothing: a step is an update.
std::vector<std::map<std::string, std::vector<double>>> sums_of(const TrainingText& text) {
  std::vector<std::map<std::string, std::vector<double>>> sums;
  for (int step = 0; step < text.steps; ++step) {
    SmallTraining training = make_training(text);
    training.descent.rate = 0;
    training.dump_step = step;
    sums.push_back(part_of(train(training, RunMode::Clock, {.doubles = true}), "gradients/"));
  }
  return sums;
}

TEST_CASE("an update covers its own micro-batches, however many are in flight") {
  // Weights stay, so that gradients of a micro-batch are the same whenever they are made: alone, or
  // while others, older and younger, go through the stage and its head.
  int crossed = 0;  // heads and weight gradients before the update of an older micro-batch
  for (const std::string strategy :
       {R"("local")", R"("pairwise")", R"({"kind": "interlocking", "n_wise": 3})"}) {
    for (const int every : {1, 2}) {
      TrainingText text = {.model = kResidualMlp, .strategy = strategy, .devices = 4, .steps = 4};
      text.micro_batches = every;
      text.more = R"(, "partition": "uniform")";  // a balanced one is another with one in flight
      const auto alone = sums_of(text);
      for (const int in_flight : {2, 3}) {
        text.schedule = R"({"kind": "eager", "in_flight": )" + std::to_string(in_flight) + "}";
        INFO(strategy, ", ", in_flight, " in flight, an update every ", every);
        const Program program = make_training(text).program;
        std::vector<int> updates(4);
        run_native(program, {.span = [&](const Span& span) {
                     const OpInfo& op = program.ops[static_cast<std::size_t>(span.op)];
                     int& done = updates[static_cast<std::size_t>(op.stage)];
                     const bool adds = op.kind == OpKind::H || op.kind == OpKind::W;
                     if (adds && done < span.micro_batch / every) ++crossed;
                     if (op.kind == OpKind::U) ++done;
                   }});
        const auto together = sums_of(text);
        for (std::size_t step = 0; step < alone.size(); ++step) {
          REQUIRE(together[step].size() == alone[step].size());
          for (const auto& entry : alone[step]) {
            INFO(entry.first);
            CHECK(distance(together[step].at(entry.first), entry.second) <= 1e-12);
          }
        }
      }
    }
  }
  INFO(crossed, " ops that add gradients before an older update");
  CHECK(crossed > 20);
}

}  // namespace
}  // namespace interlock::weight_versions_test
