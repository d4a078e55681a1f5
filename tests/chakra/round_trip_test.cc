// Scenarios simulated, written as Chakra traces, and simulated from these: the same step.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "reports/report.h"
#include "reports/traces/chakra_trace.h"
#include "tests/chakra/trace_folder.h"

namespace interlock::round_trip_test {
namespace {

struct Case {
  std::string cluster;  // a member of the document
  std::string rest;
};

const char* const kStages = R"("model": {"kind": "profile", "modules": [
  {"repeat": 3, "forward": "1.1 ms", "backward_input": "1.7 ms", "backward_weight": "0.9 ms",
   "update": "30 us", "head": "0.4 ms", "output": "1 MB", "stash": "4 MB", "parameters": "9 MB"},
  {"forward": "2.3 ms", "backward_input": "2.1 ms", "backward_weight": "1.3 ms"}]},
  "training": )";

const char* const kFourDevices =
    R"("cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
                   "link": {"latency": "7 us", "bandwidth": "3 GB/s"}})";
const char* const kMachine = R"("cluster": {"machine": "dgx-a100-80g", "devices": 8})";

std::string training(const std::string& words) { return kStages + words; }

std::vector<Case> cases() {
  const std::string network =
      R"("model": {"kind": "mlp", "input_size": 1024, "hidden_sizes": [2048, 2048, 1024, 512],
                   "classes": 10}, "simulate": {"fold": "none"}, )";
  return {
      {kFourDevices,
       training(R"({"strategy": "global", "schedule": "gpipe", "micro_batches": 6})")},
      {kFourDevices, training(R"({"strategy": "global", "schedule": "1f1b", "micro_batches": 6})")},
      {kFourDevices,
       training(R"({"strategy": "global", "schedule": "zb-h1", "micro_batches": 8, "steps": 1})")},
      {kFourDevices, training(R"({"strategy": "global", "schedule": "pipedream-2bw",
                                  "micro_batches": 4})")},
      {kFourDevices, training(R"({"strategy": {"kind": "interlocking", "n_wise": 2}})")},
      {kFourDevices, training(R"({"strategy": {"kind": "interlocking", "n_wise": 3},
                                  "micro_batches": 3})")},
      {kFourDevices, training(R"({"strategy": {"kind": "interlocking", "n_wise": 3},
         "schedule": {"kind": "eager", "queue": "rendezvous"}, "micro_batches": 2})")},
      {kFourDevices, training(R"({"strategy": "local", "micro_batches": 4})")},
      {kFourDevices, training(R"({"strategy": "local", "schedule": {"kind": "eager",
         "optimizer_sync": "barrier"}})")},
      {kMachine, network + R"("parallel": {"pipeline": 4, "data": 2},
         "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 512,
                      "micro_batch_size": 64})"},
      {kMachine, network + R"("parallel": {"pipeline": 2, "data": 4, "zero_stage": 3},
         "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 512,
                      "micro_batch_size": 32})"},
      {kMachine, network + R"("parallel": {"pipeline": 2, "data": 2, "tensor": 2},
         "training": {"strategy": {"kind": "interlocking", "n_wise": 2},
                      "global_batch_size": 512, "micro_batch_size": 64})"},
  };
}

using Op = std::tuple<int, OpKind, int, int, int>;  // rank, letter, stage, loss, micro-batch

std::map<Op, std::vector<double>> starts_of(const ScenarioResult& result,
                                            const std::vector<int>& devices) {
  std::map<Op, std::vector<double>> starts;
  for (const Span& span : result.measurement.log.spans) {
    const OpInfo& op = result.measurement.program.ops[span.op];
    starts[{devices[span.rank], op.kind, op.stage, op.loss, span.micro_batch}].push_back(
        span.start.value());
  }
  return starts;
}

std::vector<int> devices_of(const ScenarioResult& result) {
  std::vector<int> devices;
  const Mesh& mesh = result.plan.question.layout.mesh;
  for (const Coordinates& at : simulated_ranks(mesh, result.plan.unfolded)) {
    devices.push_back(device_of(mesh, at));
  }
  return devices;
}

void check_same_starts(const ScenarioResult& first, const ScenarioResult& second) {
  const auto starts = starts_of(first, devices_of(first));
  const auto again = starts_of(second, devices_of(second));
  REQUIRE(starts.size() == again.size());
  const double end = first.measurement.metrics.makespan.value();
  for (auto one = starts.begin(), other = again.begin(); one != starts.end(); ++one, ++other) {
    INFO("rank " << std::get<0>(one->first) << ", stage " << std::get<2>(one->first) << " "
                 << letter(std::get<1>(one->first)) << ", micro-batch " << std::get<4>(one->first));
    REQUIRE(one->first == other->first);
    REQUIRE(one->second.size() == other->second.size());
    for (std::size_t i = 0; i < one->second.size(); ++i) {
      REQUIRE(std::abs(one->second[i] - other->second[i]) <= 1e-9 * end);
    }
  }
}

TEST_CASE("a scenario, written and read on the same cluster, has the same step and every start") {
  int number = 0;
  for (const Case& one : cases()) {
    ++number;
    CAPTURE(number);
    const std::string text = "{" + one.cluster + ", " + one.rest + "}";
    const ScenarioResult first =
        run_scenario(load_questions(parse_json(text, "test.json")).front(), true);
    const TraceFolder folder;
    const std::vector<std::string> files = chakra_files(first);
    CHECK(files.size() == first.measurement.program.ranks.size());
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
      folder.write(static_cast<int>(rank), files[rank]);
    }
    const ScenarioResult second = run_scenario(folder.load(one.cluster), true);
    const Metrics &a = first.measurement.metrics, &b = second.measurement.metrics;
    INFO("step " << a.step_time.value() << " s, then " << b.step_time.value() << " s, engines "
                 << a.engine << " and " << b.engine);
    CHECK(b.step_time.value() == doctest::Approx(a.step_time.value()).epsilon(1e-9));
    CHECK(b.makespan.value() == doctest::Approx(a.makespan.value()).epsilon(1e-9));
    // The clock cuts steps that overlap, as a trace shows them; our own run knows that they repeat.
    const Metrics by_clock = measure_trace(first.measurement.program, first.measurement.log,
                                           a.fill_steps, {.steps = a.measured_steps})
                                 .metrics;
    CHECK(b.busy == doctest::Approx(by_clock.busy).epsilon(1e-9));
    CHECK(b.useful == doctest::Approx(by_clock.useful).epsilon(1e-9));
    CHECK(b.measured_steps == a.measured_steps);
    check_same_starts(first, second);
    CHECK(chakra_files(second).size() == files.size());
  }
}

TEST_CASE("traces on another cluster take its time: twice the bandwidth, half of each message") {
  const auto run = [](const std::string& cluster, const TraceFolder& folder) {
    return run_scenario(folder.load(cluster), false).measurement.metrics.step_time.value();
  };
  const std::string slow =
      R"("cluster": {"kind": "uniform", "devices": 2, "memory": "8 GiB",
                   "link": {"bandwidth": "1 GB/s"}})";
  const std::string fast =
      R"("cluster": {"kind": "uniform", "devices": 2, "memory": "8 GiB",
                   "link": {"bandwidth": "2 GB/s"}})";
  const std::string text = "{" + slow + R"(, "model": {"kind": "profile", "modules": [
    {"repeat": 2, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
     "output": "1 MB"}]}, "training": {"strategy": "global", "steps": 1}})";
  const ScenarioResult first =
      run_scenario(load_questions(parse_json(text, "test.json")).front(), true);
  const TraceFolder folder;
  const std::vector<std::string> files = chakra_files(first);
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    folder.write(static_cast<int>(rank), files[rank]);
  }
  // Forward, message, forward, backward (2 ms), message, backward: 6 ms and 2 messages of 1 ms.
  CHECK(run(slow, folder) == doctest::Approx(8e-3));
  CHECK(run(fast, folder) == doctest::Approx(7e-3));
}

TEST_CASE("what traces cannot say, and devices that are left out, is refused") {
  const auto refusal = [](const std::string& rest) {
    const std::string text = "{" + std::string(kMachine) + ", " + rest + "}";
    const ScenarioResult result =
        run_scenario(load_questions(parse_json(text, "test.json")).front(), true);
    try {
      chakra_files(result);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string network = R"("model": "vgg-16", "training": {"strategy": "global",
      "global_batch_size": 64, "micro_batch_size": 8})";
  CHECK(refusal(network + R"(, "parallel": {"pipeline": 1, "data": 8})")
            .ends_with("--chakra: only some devices are simulated, which stand for the others; "
                       "expected --set simulate.fold=none"));
  CHECK(refusal(network + R"(, "parallel": {"pipeline": 4, "spatial": 2},
                              "simulate": {"fold": "none"})")
            .find("halos") != std::string::npos);
}

}  // namespace
}  // namespace interlock::round_trip_test
