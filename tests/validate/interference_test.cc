// Kernels slowed down by communication beside them: hand-worked steps, and the work in every trace.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scenarios/plan/lower_plan.h"
#include "sim/engines/engines.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::interference_test {
namespace {

constexpr double kMs = 1e-3;

/// A device of which everything waits for arithmetic, or everything for memory.
std::string device(bool computes, const std::string& shares = "") {
  const std::string slow = R"("peak": {"fp32": "1 GFLOP/s"}, "memory_bandwidth": "900 TB/s")";
  const std::string narrow = R"("peak": {"fp32": "900 PFLOP/s"}, "memory_bandwidth": "1 TB/s")";
  return R"({"name": "device", "memory": "80 GiB", "efficiency": "peak", )" +
         (computes ? slow : narrow) + shares + "}";
}

std::string mesh(int devices, const std::string& device, const std::string& link = "1 GB/s") {
  return R"({"kind": "uniform", "link": {"bandwidth": ")" + link + R"("}, "devices": )" +
         std::to_string(devices) + R"(, "device": )" + device + "}";
}

double step_ms(const LayoutTrial& trial) {
  return run(trial).measurement.metrics.step_time.value() / kMs;
}

TEST_CASE("gradients on their way take their share of the multiprocessors from the last backward") {
  constexpr double kForward = 2, kBackward = 4, kGradients = 24;
  for (const double share : {0.0, 0.2, 0.5}) {
    for (const int buckets : {1, 2, 8, 24}) {
      const double each = kGradients / buckets;  // ms: half there, half back
      double now = 4 * kForward, free = 0;
      for (int bucket = 0; bucket < buckets; ++bucket) {
        double work = 4 * kBackward / buckets;
        if (free > now) {  // slow for as long as gradients are on their way
          const double beside = std::min(work, (free - now) * (1 - share));
          now += beside / (1 - share);
          work -= beside;
        }
        now += work;
        free = std::max(free, now) + each;
      }
      INFO("2 devices, " << buckets << " buckets of " << each << " ms, kernels beside them "
                         << 1 - share << " times as fast: " << free << " ms");
      const LayoutTrial trial = {
          .model = R"({"kind": "profile", "modules": [{"repeat": 4, "forward": "2 ms",
                       "backward_input": "3 ms", "backward_weight": "1 ms",
                       "parameters": "6 MB"}]})",
          .cluster = mesh(2, device(true, R"(, "collective_sms": )" + std::to_string(share))),
          .parallel =
              R"("pipeline": 1, "data": 2, "bucket": ")" + std::to_string(24 / buckets) + R"( MB")",
          .training = R"("strategy": "global", "schedule": "1f1b", "steps": 4,
                         "micro_batches": 1)"};
      CHECK(step_ms(trial) == doctest::Approx(free).epsilon(1e-9));
    }
  }
}

TEST_CASE("a message costs both its ends a share of the time that it is on its way") {
  // Forwards of f ms and messages of t <= f ms. While a message is on its way a kernel runs 1 - s
  // times as fast; the second of three ranks sends one and receives one at the same time.
  for (const double share : {0.1, 0.25}) {
    constexpr double kForward = 5, kMessage = 3;
    constexpr int kMicroBatches = 6;
    const LayoutTrial trial = {
        .model = R"({"kind": "profile", "modules": [{"repeat": 3, "forward": "5 ms",
                     "backward_input": "1 ms", "backward_weight": "1 ms", "output": "3 MB"}]})",
        .cluster = mesh(3, device(true, R"(, "message_sms": )" + std::to_string(share))),
        .parallel = R"("pipeline": 3)",
        .training = R"("strategy": "inference", "schedule": "gpipe", "steps": 20,
                       "micro_batches": )" +
                    std::to_string(kMicroBatches)};
    const Metrics metrics = run(trial).measurement.metrics;
    // In the steady state all three begin together, as each waits for the slowest: the middle one.
    const double beside = kMessage * (1 - 2 * share), middle = kForward + kMessage * 2 * share;
    INFO("share " << share << ": beside two messages " << beside << " of " << kForward
                  << " ms are done in " << kMessage << ", the rest follows: " << middle << " ms");
    CHECK(metrics.step_time.value() / kMs == doctest::Approx(kMicroBatches * middle).epsilon(1e-9));
  }
}

/// A chain of equal layers of which the middle rank has most, that only goes forward.
double forward_ms(bool computes, bool contends) {
  return step_ms({.model = R"({"kind": "mlp", "input_size": 1024, "hidden_size": 1024, "layers": 8,
                               "classes": 1024})",
                  .cluster = mesh(3, device(computes), "100 GB/s"),
                  .parallel = R"("pipeline": 3)",
                  .training = R"("strategy": "inference", "schedule": "gpipe", "steps": 20,
                                 "precision": "fp32", "global_batch_size": 800,
                                 "micro_batches": 8)",
                  .partition = "[3, 4, 2]",
                  .memory_contention = contends});
}

TEST_CASE("what links bring and take is memory bandwidth that kernels lack") {
  const double alone = forward_ms(false, false), beside = forward_ms(false, true);
  // 100 samples of 1024 numbers in and out of the middle rank, for each of 8 micro-batches.
  const double late = 8 * 2 * (100 * 1024 * 4) / 1e12 / kMs;
  INFO("kernels that wait for memory take " << alone << " ms, and wait " << late
                                            << " ms for messages at 1 TB/s");
  CHECK(beside == doctest::Approx(alone + late).epsilon(1e-9));
  INFO("kernels that wait for arithmetic do not");
  CHECK(forward_ms(true, true) == doctest::Approx(forward_ms(true, false)).epsilon(1e-12));
}

/// Kernels of small models mostly wait for memory; here some of each op waits for arithmetic.
Program bound_by_arithmetic(Program program) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    program.ops[i].compute_bound = 0.3 + 0.1 * static_cast<double>(i % 5);
    program.ops[i].memory_bound = 0.2;
  }
  return program;
}

/// The work that each op of a trace did, by the loads that its trace shows, against what it takes
/// alone.
void check_work(const Program& program, const TraceLog& log) {
  struct Load {
    double begin, end, sms;
  };
  std::vector<std::vector<Load>> loads(program.ranks.size());
  for (const Transfer& t : log.transfers) {
    const Channel& channel = program.channels[t.channel];
    if (channel.wire < 0) continue;
    for (const int rank : {channel.from_rank, channel.to_rank}) {
      loads[rank].push_back(
          {t.start.value(), t.end.value(), program.interference[rank].message_sms});
    }
  }
  for (const CollectiveSpan& c : log.collectives) {
    for (const int rank :
         program.communicators[program.collectives[c.collective].communicator].ranks) {
      loads[rank].push_back(
          {c.start.value(), c.end.value(), program.interference[rank].collective_sms});
    }
  }
  for (const Span& span : log.spans) {
    const OpInfo& op = program.ops[span.op];
    std::vector<double> cuts = {span.start.value(), span.end.value()};
    for (const Load& load : loads[span.rank]) {
      for (const double cut : {load.begin, load.end}) {
        if (cut > cuts[0] && cut < cuts[1]) cuts.push_back(cut);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    double work = 0;
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      const double middle = (cuts[i - 1] + cuts[i]) / 2;
      double sms = 0;
      for (const Load& load : loads[span.rank]) {
        if (load.begin < middle && middle < load.end) sms += load.sms;
      }
      sms = std::min(sms, 0.9);
      work += (cuts[i] - cuts[i - 1]) / (1 - op.compute_bound + op.compute_bound / (1 - sms));
    }
    CHECK(work == doctest::Approx(op.duration.value()).epsilon(1e-6));
  }
}

TEST_CASE("the trace of every engine does the work of its ops at the rates that its loads leave") {
  int programs = 0, shared = 0, differing = 0;
  for (int seed = 2000; seed < 2100; ++seed) {
    LayoutTrial trial = random_layout(static_cast<std::uint64_t>(seed));
    Question scenario;
    try {
      scenario = load(trial);
    } catch (const Error&) {
      continue;
    }
    if (scenario.layout.mesh.devices() > 16) continue;
    scenario.cluster.machines.front().device.collective_sms = 0.15;
    scenario.cluster.machines.front().device.message_sms = 0.05;
    Program program = bound_by_arithmetic(lower_plan(make_plan(scenario), 2));
    if (program.channels.empty() && program.collectives.empty()) continue;
    CAPTURE(seed);
    TraceLog log;
    const EngineKind engine = choose_engine(EngineKind::Auto, program);
    const RunSummary summary = run_program(program, engine, log_sink(log));
    if (log.transfers.empty() && log.collectives.empty()) continue;
    ++programs;
    shared += shares_links(program) ? 1 : 0;
    check_work(program, log);
    program.interference = {};
    const RunSummary undisturbed = run_program(program, engine, {});
    differing += summary.makespan > undisturbed.makespan * 1.001 ? 1 : 0;
  }
  MESSAGE(programs << " programs, " << shared << " of them with shared links; " << differing
                   << " take longer for it");
  CHECK(programs > 20);
  CHECK(differing > 5);
}

TEST_CASE("ranks that stand for others on one card slow kernels down by their own bytes alone") {
  for (const char* parallel :
       {R"("data": 3, "tensor": 4, "bucket": "1 MiB")", R"("pipeline": 3, "data": 4)",
        R"("pipeline": 3, "data": 2, "tensor": 2)",
        R"("data": 3, "context": 4, "zero_stage": 3)"}) {
    LayoutTrial trial = {
        .model = divisible_transformer(6),
        .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 4, "nodes": 3,
                       "port": {"latency": "2 us", "bandwidth": "200 GB/s"},
                       "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "100 GB/s"}})",
        .parallel = parallel,
        .training = R"("strategy": "global", "micro_batches": 3, "steps": 2,
                       "global_batch_size": 36)",
        .memory_contention = true};
    INFO(document(trial));
    const ScenarioResult folded = run(trial);
    trial.fold = "\"none\"";
    const ScenarioResult whole = run(trial);
    CHECK(folded.measurement.metrics.devices.size() < 12);
    CHECK(difference(folded, whole, 1e-9) == "");
  }
}

TEST_CASE("SimGrid and the native loop tell the same of kernels that are slowed down") {
  int compared = 0;
  for (int seed = 2000; seed < 2100; ++seed) {
    Question scenario;
    try {
      scenario = load(random_layout(static_cast<std::uint64_t>(seed), RandomCluster::Mesh));
    } catch (const Error&) {
      continue;
    }
    if (scenario.layout.mesh.devices() > 16) continue;
    scenario.cluster.machines.front().device.collective_sms = 0.15;
    scenario.cluster.machines.front().device.message_sms = 0.05;
    scenario.simulation.memory_contention = true;
    const Program program = bound_by_arithmetic(lower_plan(make_plan(scenario), 2));
    if (shares_links(program)) continue;
    CAPTURE(seed);
    const RunSummary native = run_program(program, EngineKind::Native, {});
    const RunSummary simgrid = run_program(program, EngineKind::SimGrid, {});
    CHECK(native.makespan.value() == doctest::Approx(simgrid.makespan.value()).epsilon(1e-12));
    ++compared;
  }
  CHECK(compared > 10);
}

}  // namespace
}  // namespace interlock::interference_test
