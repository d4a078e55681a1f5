// Trainings on a GPU: gradients against a CPU in double, schedules and links against each other.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "sim/engines/engines.h"
#include "sim/program/issue_order.h"
#include "tests/harness/support/training.h"
#include "validate/cuda/device/nccl.h"
#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/stage/gpu_run.h"
#include "validate/executors/executor.h"

using namespace interlock;

namespace {

SmallTraining training_of(const std::string& model, const std::string& strategy, int devices,
                          const std::string& recompute = "none") {
  // Several modules of a stage that are computed again go back in one.
  const bool eager = strategy != R"("global")" && recompute != "none";
  SmallTraining training =
      make_training({.model = model,
                     .strategy = strategy,
                     .schedule = eager ? R"({"kind": "eager", "backward": "fused"})" : "",
                     .devices = devices,
                     .samples = 4,
                     .steps = 3,
                     .more_training = R"(, "recompute": ")" + recompute + "\"",
                     .more = R"(, "partition": "uniform")",
                     .optimizer = "adam"});
  training.descent.rate = 1e-2;
  training.dump_step = 1;
  if (chooses_order(training.program)) {
    training.program = freeze(training.program, EngineKind::Native);
  }
  return training;
}

bool on_emulator() { return std::getenv("EMULATED_GPUS") != nullptr; }

CudaRun run_on_gpu(const SmallTraining& training, const CudaOptions& options) {
  CudaRun run;
  cuda::run_job(job_of(training), options, {}, run);
  for (const std::string& note : run.record.notes) INFO(note);
  return run;
}

/// Partitions of the first GPU, whose products are planned as if they had 16 multiprocessors each:
/// the same algorithms however it is split.
CudaOptions partitions(const SmallTraining& training) {
  CudaOptions options;
  options.partitions = static_cast<int>(training.program.ranks.size());
  options.planned_sms = 16;
  return options;
}

const std::vector<std::string> kStrategies = {R"("global")", R"("local")",
                                              R"({"kind": "interlocking", "n_wise": 2})",
                                              R"({"kind": "interlocking", "n_wise": 3})"};

}  // namespace

TEST_CASE("gradients and losses on a GPU in fp32 are those of a CPU in double") {
  for (const std::string& model : {kResidualMlp, kTransformer, kResNet}) {
    for (const std::string& strategy : kStrategies) {
      const SmallTraining training = training_of(model, strategy, 3);
      const Outcome exact = train(training, RunMode::Sequential, {.doubles = true});
      const CudaRun run = run_on_gpu(training, partitions(training));
      for (std::size_t stage = 0; stage < exact.losses.size(); ++stage) {
        for (const auto& [micro_batch, loss] : exact.losses[stage]) {
          CHECK(run.outcome.losses[stage].at(micro_batch) == doctest::Approx(loss).epsilon(1e-4));
        }
      }
      const auto made = part_of(run.outcome, "gradients/");
      for (const auto& entry : part_of(exact, "gradients/")) {
        const std::string& name = entry.first;
        const double off = distance(made.at(name), entry.second);
        INFO(model, " ", strategy, ", ", name, ": ", off);
        CHECK(off <= 1e-3);  // the second step's, behind weights that have moved apart
      }
    }
  }
}

TEST_CASE("how a GPU is split, what its links are, and a graph change no bit; nor do repeats") {
  for (const std::string& strategy : kStrategies) {
    const SmallTraining training = training_of(kTransformer, strategy, 4);
    CudaOptions options = partitions(training);
    options.split = CudaSplit::Streams;
    const auto expected = by_name(run_on_gpu(training, options).outcome);
    for (const CudaLink link : {CudaLink::Zero, CudaLink::CopyEngine, CudaLink::Paced}) {
      for (const bool graph : {false, true}) {
        options.split = CudaSplit::Auto;
        options.link = link;
        options.graph = graph;
        CHECK(by_name(run_on_gpu(training, options).outcome) == expected);
      }
    }
    options.link = CudaLink::CopyEngine;
    options.graph = false;
    options.poison = true;
    for (int repeat = 0; repeat < 20; ++repeat) {
      CHECK(by_name(run_on_gpu(training, options).outcome) == expected);
    }
  }
}

TEST_CASE("what is computed again comes to the same bits") {
  for (const std::string& model : {kResidualMlp, kTransformer, kResNet}) {
    for (const std::string& strategy : kStrategies) {
      const Outcome kept =
          run_on_gpu(training_of(model, strategy, 2), {.partitions = 2, .planned_sms = 16}).outcome;
      for (const std::string recompute : {"selective", "full"}) {
        if (recompute == "selective" && model != kTransformer) continue;
        const SmallTraining training = training_of(model, strategy, 2, recompute);
        CudaOptions options = partitions(training);
        options.poison = true;
        for (const bool graph : {false, true}) {
          INFO(model, " ", strategy, ", ", recompute, ", graph ", graph);
          options.graph = graph;
          const Outcome again = run_on_gpu(training, options).outcome;
          CHECK(by_name(again) == by_name(kept));
          CHECK(again.losses == kept.losses);
        }
      }
    }
  }
}

TEST_CASE("several GPUs change no bit either; one graph of them is refused") {
  int devices = 0;
  cuda::require(cudaGetDeviceCount(&devices), "count devices");
  if (devices < 3) {
    MESSAGE("there are fewer than three GPUs: left out");
    return;
  }
  for (const std::string& strategy : kStrategies) {
    const SmallTraining training = training_of(kTransformer, strategy, 3);
    CudaOptions options = partitions(training);
    const auto expected = by_name(run_on_gpu(training, options).outcome);
    options.device = 1;  // partitions of another than the first
    CHECK(by_name(run_on_gpu(training, options).outcome) == expected);
    options.device = 0;
    options.partitions = 0;
    for (const CudaLink link : {CudaLink::Zero, CudaLink::CopyEngine, CudaLink::Paced}) {
      options.link = link;
      CHECK(by_name(run_on_gpu(training, options).outcome) == expected);
    }
    options.nccl = !cuda::nccl_version().empty();
    CHECK((options.nccl || !on_emulator()));  // which has one
    CHECK(by_name(run_on_gpu(training, options).outcome) == expected);
    options.graph = true;
    CHECK_THROWS_WITH_AS(run_on_gpu(training, options), doctest::Contains("no single graph"),
                         Error);
  }
}

TEST_CASE("what a GPU has no room for is named, and a trace has every op once") {
  const SmallTraining training = training_of(kTransformer, R"("global")", 2);
  CudaOptions options = partitions(training);
  std::size_t spans = 0, ops = 0;
  TraceLog log;
  TraceSink sink = log_sink(log);
  sink.span = [&](const Span&) { ++spans; };
  CudaRun run;
  cuda::run_job(job_of(training), options, sink, run);
  for (const Issue& issue : issue_order(training.program)) {
    if (issue.instruction.code == Opcode::Compute) ++ops;
  }
  CHECK(spans == ops);
  double left = 0;
  for (const MemoryChange& change : log.memory) left += change.bytes;
  CHECK(!log.memory.empty());
  CHECK(left == doctest::Approx(0));  // what is taken is given back
  options.memory = 1 << 14;
  CHECK_THROWS_WITH_AS(run_on_gpu(training, options), doctest::Contains("has no room for"), Error);
}

TEST_CASE("a run says on what it ran, what its GPU did meanwhile, and all of its bytes") {
  const SmallTraining training = training_of(kTransformer, R"("local")", 4);
  for (const bool graph : {false, true}) {
    CudaOptions options = partitions(training);
    options.graph = graph;
    const ExecutionRecord record = run_on_gpu(training, options).record;
    CHECK(record.graph == graph);
    CHECK(record.divided.starts_with("green contexts"));
    REQUIRE(record.gpus.size() == 1);
    const ExecutedGpu& gpu = record.gpus.front();
    int sms = record.link_multiprocessors;
    for (const ExecutedDevice& device : record.devices) sms += device.multiprocessors;
    CHECK(record.devices.size() == 4);
    CHECK(sms == gpu.multiprocessors);
    CHECK(record.products.size() > 3);
    for (const ExecutedProduct& product : record.products) CHECK(product.calls > 0);
    CHECK(record.wall > Seconds(0));
    CHECK(gpu.asked <= gpu.used);
    CHECK(gpu.used <= gpu.memory);
    if (!on_emulator()) continue;
    CHECK(gpu.asked == gpu.used);  // no library takes any there
    REQUIRE(record.clocks.size() >= 2);
    CHECK(record.clocks.front().time < record.clocks.back().time);
    for (const ClockReading& reading : record.clocks) CHECK(reading.sm_clock >= 1200);
  }
}

TEST_CASE("a loss that is not a number ends a run at its step, and a run that is stopped says so") {
  SmallTraining training = training_of(kTransformer, R"("local")", 2);
  training.descent.rate = 1e30;
  CHECK_THROWS_WITH_AS(run_on_gpu(training, partitions(training)),
                       doctest::Contains("is not a number at step"), Error);
  const std::atomic<bool> stop = true;
  CudaOptions options = partitions(training);
  options.stop = &stop;
  const CudaRun run = run_on_gpu(training, options);
  CHECK(run.stopped);
  CHECK(run.summary.tasks == 0);
}

TEST_CASE("a dump has the samples of its step, the same as a CPU's") {
  const SmallTraining training = training_of(kTransformer, R"("global")", 2);
  const Outcome cpu = train(training, RunMode::Sequential, {.doubles = true});
  const Outcome gpu = run_on_gpu(training, partitions(training)).outcome;
  for (const char* name : {"inputs", "targets"}) {
    CHECK(part_of(gpu, name).begin()->second == part_of(cpu, name).begin()->second);
  }
}
