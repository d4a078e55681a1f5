// Decoupled greedy learning: turns on old inputs against the algorithm of the paper in plain loops.
// SPDX-License-Identifier: Apache-2.0
//
// Belilovsky et al., arXiv 1901.08164, algorithm 2: a stage draws an input from its buffer, runs it
// forward, and steps down the slope of its own loss. Here every new input is learnt from when it
// comes, and while none is there a turn takes, of the last d inputs, the least used one, the newest
// of equal ones. How many turns that are is what the simulated run says.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "sim/engines/engines.h"
#include "tests/harness/support/training.h"
#include "tests/harness/support/written_network.h"
#include "validate/executors/settled_program.h"
#include "validate/training/execution.h"

namespace interlock::old_inputs_test {
namespace {

constexpr int kSteps = 10;

/// Three stages of which the first has most of the work, so that the others wait.
TrainingText waiting_text(int depth) {
  TrainingText text = {.model = kResidualMlp, .strategy = R"("local")", .devices = 3};
  text.steps = kSteps;
  text.schedule = R"({"kind": "dgl", "queue": {"buffered": )" + std::to_string(depth) + "}}";
  text.more = R"(, "partition": [3, 1, 1])";
  return text;
}

struct Kept {
  written::Vector input;
  std::vector<std::int32_t> targets;
  int turns = 1;
};

/// Turns of every stage as the simulated run has them: a micro-batch, or -1 for an old input.
std::vector<std::vector<int>> turns_of(const Program& program) {
  std::vector<std::vector<int>> turns(static_cast<std::size_t>(program.stages));
  run_native(program, {.span = [&](const Span& span) {
               const OpInfo& op = program.ops[static_cast<std::size_t>(span.op)];
               auto& own = turns[static_cast<std::size_t>(op.stage)];
               if (op.replay) own.push_back(-1);
               if (op.kind == OpKind::F) own.push_back(span.micro_batch);
             }});
  return turns;
}

/// Losses of every stage, by micro-batch; `stages` end with the last weights.
std::vector<std::vector<double>> losses_by_hand(std::vector<written::Stage>& stages, const Job& job,
                                                std::size_t depth) {
  const auto turns = turns_of(job.program);
  std::vector<std::vector<double>> losses(stages.size());
  std::vector<written::Vector> inputs;
  for (int b = 0; b < kSteps; ++b) {
    const Batch data = job.batch(b);
    inputs.emplace_back(data.features.begin(), data.features.end());
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    written::Stage& stage = stages[s];
    std::deque<Kept> kept;  // oldest first
    std::vector<written::Vector> outputs;
    for (const int turn : turns[s]) {
      Kept* on = nullptr;
      if (turn >= 0) {
        kept.push_back({inputs[static_cast<std::size_t>(turn)], job.batch(turn).targets});
        if (kept.size() > depth) kept.pop_front();
        on = &kept.back();
        losses[s].push_back(written::loss_of(stage, on->input, on->targets).real());
        outputs.push_back(written::forward(stage, on->input, on->targets));
      } else {
        on = &kept.back();
        for (auto one = kept.rbegin(); one != kept.rend(); ++one) {
          if (one->turns < on->turns) on = &*one;
        }
        ++on->turns;
      }
      const written::Weights slopes = written::slopes_of_loss(stage, on->input, on->targets);
      written::descend(stage.weights, slopes, job.descent.rate);
    }
    inputs = outputs;
  }
  return losses;
}

TEST_CASE("stages that learn from old inputs come to what the algorithm comes to") {
  for (const int depth : {1, 2, 4}) {
    SmallTraining training = make_training(waiting_text(depth));
    const Program settled_program = settled(training.program, EngineKind::Native);
    int old = 0;
    for (const auto& stage : turns_of(training.program)) {
      old += static_cast<int>(std::count(stage.begin(), stage.end(), -1));
    }
    INFO(depth, " inputs kept, ", old, " turns on old ones");
    CHECK(old >= 10);
    const auto run = [&](int dump_step) {
      training.dump_step = dump_step;
      const Job raw = job_of(training);
      Job job{.program = settled_program,
              .network = raw.network,
              .first_module = raw.first_module,
              .strategy = raw.strategy,
              .roles = raw.roles,
              .recompute = raw.recompute,
              .recompute_parts = raw.recompute_parts,
              .stash = raw.stash,
              .precision = raw.precision,
              .descent = raw.descent,
              .seed = raw.seed,
              .batch = raw.batch,
              .dump_step = raw.dump_step};
      const CpuRun cpu = make_cpu_run(job, {.doubles = true, .poison = true});
      run_threads(settled_program, cpu.workload, {}, {});
      return cpu.outcome();
    };
    const auto first = part_of(run(0), "weights/");
    const Outcome own = run(kSteps - 1);
    const Job job = job_of(training);
    std::vector<written::Stage> stages = written::stages_of(job, first);
    const auto by_hand = losses_by_hand(stages, job, static_cast<std::size_t>(depth));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      REQUIRE(own.losses[s].size() == static_cast<std::size_t>(kSteps));
      for (int b = 0; b < kSteps; ++b) {
        const double loss = by_hand[s][static_cast<std::size_t>(b)];
        INFO("stage ", s, ", micro-batch ", b, ": ", own.losses[s].at(b), ", by hand ", loss);
        CHECK(own.losses[s].at(b) == doctest::Approx(loss).epsilon(1e-11));
      }
    }
  }
}

TEST_CASE("turns on old inputs come to the same bits however late threads are") {
  const SmallTraining training = make_training(waiting_text(2));
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

TEST_CASE("turns on old inputs take no memory that was not simulated") {
  int most = 0;
  for (const std::string& model : {kResidualMlp, kReversible, kTransformer, kResNet}) {
    for (const int depth : {1, 2, 4}) {
      for (const char* cut : {"[3, 1, 1]", "[2, 1, 2]", "[1, 2, 2]"}) {
        TrainingText text = waiting_text(depth);
        text.model = model;
        text.more = std::string(R"(, "partition": )") + cut;
        if (model == kTransformer || model == kResNet)
          text.more = R"(, "partition": [2, 1, 1])";  // four modules
        SmallTraining training = make_training(text);
        const std::vector<double> simulated = simulated_peaks(training.program);
        training.program = settled(training.program, EngineKind::Native);
        const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
        for (std::size_t rank = 0; rank < 3; ++rank) {
          INFO(model, ", ", depth, " inputs kept, ", text.more, ", rank ", rank);
          CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
          most += outcome.memory[rank].peak > 0 ? 1 : 0;
        }
      }
    }
  }
  CHECK(most == 108);
}

}  // namespace
}  // namespace interlock::old_inputs_test
