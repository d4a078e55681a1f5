// Replicas of a model: what they train together is what one copy trains on all of their samples.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "scenarios/plan/lower_plan.h"
#include "tests/harness/support/training.h"
#include "validate/executors/executor.h"
#include "validate/executors/settled_program.h"
#include "validate/training/execution.h"

namespace interlock::replicas_test {
namespace {

using Numbers = std::map<std::string, std::vector<double>>;

/// A training, and what came out of it.
struct Trained {
  Numbers numbers;  // of its last step
  Losses losses;
  std::vector<HeldMemory> memory;
};

Trained trained(const TrainingText& text, RunMode mode = RunMode::Sequential,
                const CpuOptions& options = {.doubles = true}) {
  SmallTraining training = make_training(text);
  training.program = settled(training.program, EngineKind::Native);
  REQUIRE(training.program.replicas == text.replicas);
  training.dump_step = text.steps - 1;
  const Outcome outcome = train(training, mode, options);
  return {by_name(outcome), outcome.losses, outcome.memory};
}

/// A strategy with a schedule, in the words of a scenario.
struct Way {
  std::string strategy, schedule;
  bool divides = true;  // replicas may divide updates: one micro-batch of a stage is in flight
};
const std::vector<Way> kWays = {
    {R"("global")", R"("1f1b")"},
    {R"("global")", R"("gpipe")"},
    {R"("global")", R"("zb-h1")"},
    {R"("global")", R"("pipedream-2bw")"},
    {R"("global")", R"("pipedream")"},
    {R"("global")", R"("features-replay")"},
    {R"("local")", R"("eager")"},
    {R"("pairwise")", R"({"kind": "eager", "in_flight": 2})", false},
    {R"({"kind": "interlocking", "n_wise": 3})", ""},
    {R"({"kind": "chunked", "chunks": 2})", ""},
    {R"("greedy")", ""},
};

TEST_CASE("replicas come to what one copy comes to whose micro-batches hold all their samples") {
  int trainings = 0;
  double worst = 0;
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    for (const Way& way : kWays) {
      for (const auto& [replicas, zero_stage] : {std::pair(2, 0), {3, 0}, {2, 1}, {3, 1}}) {
        if (zero_stage > 0 && !way.divides) continue;
        TrainingText text = {.model = model,
                             .strategy = way.strategy,
                             .schedule = way.schedule,
                             .devices = 2,
                             .samples = 2 * replicas,
                             .micro_batches = 4,
                             .steps = 3,
                             .optimizer = "adam"};
        const Trained one = trained(text);
        text.devices = 2 * replicas;
        text.replicas = replicas;
        text.zero_stage = zero_stage;
        text.samples = 2;
        const Trained all = trained(text);
        CAPTURE(model);
        CAPTURE(way.strategy);
        CAPTURE(way.schedule);
        CAPTURE(replicas);
        CAPTURE(zero_stage);
        CHECK(worst_mean_loss(all.losses, one.losses, replicas) <= 1e-11);
        REQUIRE(all.numbers.size() == one.numbers.size());
        for (const auto& [name, values] : one.numbers) {
          const double error = distance(all.numbers.at(name), values);
          worst = std::max(worst, error);
          INFO(name);
          CHECK(error <= 1e-8);  // rounding, which Adam makes larger
        }
        ++trainings;
      }
    }
  }
  MESSAGE(trainings, " trainings; weights, gradients and batches are at most ", worst, " off");
}

TEST_CASE("replicas on threads come to what one thread comes to, bit for bit") {
  for (std::size_t i = 0; i < 2 * kWays.size(); ++i) {
    const Way& way = kWays[i / 2];
    const int zero_stage = static_cast<int>(i % 2);
    if (zero_stage > 0 && !way.divides) continue;
    TrainingText text = {.model = kResidualMlp,
                         .strategy = way.strategy,
                         .schedule = way.schedule,
                         .devices = 6,
                         .replicas = 3,
                         .zero_stage = zero_stage,
                         .micro_batches = 4,
                         .steps = 2};
    const Trained sequential = trained(text, RunMode::Sequential, {.poison = true});
    CAPTURE(way.strategy);
    CAPTURE(way.schedule);
    CAPTURE(zero_stage);
    for (int repeat = 0; repeat < 8; ++repeat) {
      const Trained threads = trained(text, RunMode::Threads, {.poison = true});
      CHECK(threads.numbers == sequential.numbers);
      CHECK(threads.losses == sequential.losses);
    }
  }
}

TEST_CASE("replicas hold what each would hold alone") {
  for (const Way& way : kWays) {
    TrainingText text = {.model = kTransformer,
                         .strategy = way.strategy,
                         .schedule = way.schedule,
                         .devices = 2,
                         .micro_batches = 4,
                         .steps = 2};
    const Trained one = trained(text, RunMode::Sequential, {});
    text.devices = 4;
    text.replicas = 2;
    const Trained two = trained(text, RunMode::Sequential, {});
    CAPTURE(way.strategy);
    CAPTURE(way.schedule);
    REQUIRE(two.memory.size() == 4);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      CHECK(two.memory[rank].peak == one.memory[rank % 2].peak);
    }
  }
}

TEST_CASE("replicas that divide updates hold states of their shard, a number more at most") {
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    for (const int replicas : {2, 3}) {
      TrainingText text = {.model = model,
                           .devices = 2 * replicas,
                           .replicas = replicas,
                           .steps = 2,
                           .optimizer = "adam"};
      std::vector<std::array<std::int64_t, kMemoryClasses>> held;
      for (const int zero_stage : {0, 1}) {
        text.zero_stage = zero_stage;
        for (const HeldMemory& memory : trained(text, RunMode::Sequential, {}).memory) {
          held.push_back(memory.at_peak);
        }
      }
      const auto ranks = static_cast<std::size_t>(2 * replicas);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t c = 0; c < kMemoryClasses; ++c) {
          const std::int64_t whole = held[rank][c], own = held[ranks + rank][c];
          CAPTURE(rank);
          if (c != static_cast<std::size_t>(MemoryClass::Optimizer)) {
            CHECK(own == whole);
          } else {
            MESSAGE(whole, " bytes of states, ", own, " of each of ", replicas, " replicas");
            CHECK(own * replicas >= whole);
            CHECK(own * replicas <= whole + 8 * (replicas - 1));  // two floats of one weight
          }
        }
      }
    }
  }
}

TEST_CASE("where links are emulated, gradients take as long as their links say") {
  const TrainingText text = {
      .model = kTransformer, .devices = 4, .replicas = 2, .micro_batches = 2, .steps = 3};
  const SmallTraining training = make_training(text);
  Program program = training.program;
  for (Collective& collective : program.collectives) collective.latency = Seconds(2e-3);
  const Job job = job_of(training);
  const CpuRun run = make_cpu_run(job, {});
  TraceLog log;
  run_threads(program, run.workload, {.emulate_links = true}, log_sink(log));
  REQUIRE(log.collectives.size() == 2 * 3);  // of each stage, each step
  for (const CollectiveSpan& span : log.collectives) {
    const Collective& collective = program.collectives[static_cast<std::size_t>(span.collective)];
    const Seconds least = collective.occupancy + collective.latency;
    CHECK((span.end - span.start).value() >= least.value() - 2e-9);
    int updates = 0;
    for (const Span& op : log.spans) {
      const OpInfo& info = program.ops[static_cast<std::size_t>(op.op)];
      const bool waits = info.kind == OpKind::U && op.micro_batch == span.micro_batch &&
                         model_stage(program, info.stage) == collective.stage;
      if (!waits) continue;
      ++updates;
      CHECK(op.start >= span.end);
    }
    CHECK(updates == 2);
  }
}

/// Returns why a scenario cannot be trained on four devices; empty if it can.
std::string refusal(const std::string& parallel, const std::string& training) {
  const std::string document =
      R"({"model": )" + kTransformer +
      R"(, "cluster": {"kind": "uniform", "devices": 4, "device": "v100-32g", "executor": "cpu",
            "link": {"latency": "3 us", "bandwidth": "1 GB/s"}},
          "parallel": {)" +
      parallel + R"(}, "training": {"micro_batch_size": 2, "precision": "fp32", "steps": 1,
            "optimizer": "adam", )" +
      training + "}}";
  const Question question = load_questions(parse_json(document, "t.json")).front();
  try {
    plan_training(question, network_of(question), false);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("exchanges that kernels do not do are refused with what to write instead") {
  struct Refused {
    std::string parallel, words, training = R"("strategy": "global", "global_batch_size": 16)";
  };
  const std::string behind = R"("overlap_gradients": false, )";
  const std::string two = behind + R"("pipeline": 2, "data": 2)";
  const std::string one = two + R"(, "zero_stage": 1)";
  CHECK(refusal(two, Refused().training) == "");
  CHECK(refusal(one, Refused().training) == "");
  const std::vector<Refused> refused = {
      {R"("pipeline": 2, "data": 2)", "/parallel/overlap_gradients: gradients of a step"},
      {two + R"(, "zero_stage": 2)", "/parallel/zero_stage: replicas keep whole weights"},
      {one + R"(, "overlap_weights": true)", "/parallel/overlap_weights: "},
      {behind + R"("pipeline": 1, "data": 4, "zero_stage": 1, "shard": 2)", "/parallel/shard: "},
      {two + R"(, "bucket": "1 kB")", "/parallel/bucket: "},
      {two + R"(, "gradient_density": 0.1)", "/parallel/gradient_density: "},
      {two + R"(, "gradient_reduction": "micro_batch")", "/parallel/gradient_reduction: "},
      {R"("pipeline": 2, "tensor": 2)", "devices that share a module's tensors are not executable"},
      {behind + R"("pipeline": 2, "stage_layouts": [{"data": 2}, {"data": 2}])",
       "only engines run"},
      {two, "/training/replica_micro_batches: ",
       R"("strategy": "global", "global_batch_size": 16, "replica_micro_batches": [5, 3])"},
      {two, "/training/schedule: turns on old inputs",
       R"("strategy": "local", "schedule": "dgl", "global_batch_size": 4)"},
      // One micro-batch a step: several are in flight all the same.
      {one, "/parallel/zero_stage: weights of replicas come together",
       R"("strategy": "local", "schedule": {"kind": "eager", "in_flight": 2},
          "global_batch_size": 4)"}};
  for (const Refused& one_of_them : refused) {
    CAPTURE(one_of_them.parallel);
    CAPTURE(one_of_them.training);
    const std::string said = refusal(one_of_them.parallel, one_of_them.training);
    INFO(said);
    CHECK(said.find(one_of_them.words) != std::string::npos);
    CHECK(said.find("expected") != std::string::npos);
  }
}

}  // namespace
}  // namespace interlock::replicas_test
