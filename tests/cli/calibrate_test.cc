// Devices that were measured, as a user uses them: mistakes of calibrate, and runs on its files.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::calibrate_test {
namespace {

/// 1 us a kernel, 100 GFLOP/s, 10 GB/s. The table has the forward of a layer of 64 x 32 x 32.
constexpr const char* kDevice = R"({
  "memory": "8 GB", "memory_bandwidth": "10 GB/s", "peak": {"fp32": "100 GFLOP/s"},
  "calibration": {
    "format": "interlock-calibration/1",
    "stream": [{"bytes": 1e6, "seconds": 1e-4}],
    "rooflines": [
      {"class": "gemm", "precision": "fp32", "launch_s": 1e-6, "flops_per_s": 1e11},
      {"class": "elementwise", "precision": "fp32", "launch_s": 1e-6, "bytes_per_s": 1e10}],
    "kernels": [],
    "table": [
      {"class": "gemm", "role": "forward", "precision": "fp32", "m": 64, "n": 32, "k": 32,
       "flops": 131072, "bytes": 20480, "seconds": 0.25}]}})";

constexpr const char* kScenario = R"({
  "model": {"kind": "mlp", "input_size": 32, "layers": 2, "hidden_size": 32, "classes": 10},
  "cluster": {"kind": "uniform", "devices": 2, "device": "measured.json",
              "link": {"bandwidth": "1 GB/s"}},
  "training": {"precision": "fp32", "strategy": "global", "global_batch_size": 64,
               "micro_batch_size": 64}})";

void check_refused(const std::vector<std::string>& arguments, const std::string& said) {
  const Folder folder;
  const Outcome run = run_program(arguments, folder.path());
  CAPTURE(run.err);
  CHECK(run.exit_code == 2);
  CHECK(run.out == "");
  CHECK(run.err.find(said) != std::string::npos);
  CHECK(folder.files().empty());
}

TEST_CASE("what cannot be calibrated is told before anything is measured") {
  check_refused({"calibrate", "--device", "tpu"}, "--device tpu: expected cpu, cuda, or cuda:N");
  check_refused({"calibrate", "--device", "cuda:x"}, "expected cpu, cuda, or cuda:N");
  for (const char* device : {"cuda:", "cuda:-1", "cuda:0/", "cuda:0/1", "cuda:0/2x", "cudax"}) {
    check_refused({"calibrate", "--device", device}, "cuda:N/K: one of K equal partitions of it");
  }
  check_refused({"calibrate", "--device", "cuda:1000"}, "--device cuda:1000: ");
  check_refused({"calibrate", "--out", "nowhere/a.json"}, "there is no folder \"nowhere\"");
  check_refused({"calibrate", "--samples", "."}, "is a folder; expected a file");
}

TEST_CASE("a scenario runs on a measured device, and its result says what prices rest on") {
  const Folder folder;
  folder.file("measured.json", kDevice);
  folder.file("scenario.json", kScenario);
  const Outcome run = run_program({"simulate", "scenario.json", "--json", "-"}, folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const JsonValue result = parse_json(run.out, "stdout");
  const JsonValue* levels = result.find("priced_by");
  REQUIRE(levels);
  const JsonValue* gemm = levels->find("gemm");
  REQUIRE(gemm);
  // The first layers' forwards take 0.25 s each, all other products microseconds.
  CHECK(gemm->find("time_s")->number > 0.25);
  CHECK(gemm->find("table")->number > 0.99);
  CHECK(gemm->find("kernel")->number == 0);
  CHECK(gemm->find("roofline")->number > 0);
  CHECK(levels->find("optimizer")->find("datasheet")->number == 1);
  CHECK(result.find("step_time_s")->number > 0.25);
}

/// Returns the step time of two replicas, and checks that the run went well.
double step_of_replicas(const Folder& folder, const std::vector<std::string>& sets) {
  std::vector<std::string> arguments = {"simulate", "scenario.json", "--json", "-"};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  const Outcome run = run_program(arguments, folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_json(run.out, "stdout").find("step_time_s")->number;
}

TEST_CASE("measured collectives change the step of replicas by what a person adds up") {
  // Two layers of 32 x 32 and 32, and a readout of 32 x 10 and 10, in fp32.
  constexpr double kBytes = 4 * (2 * (32 * 32 + 32) + 32 * 10 + 10);
  std::string device = kDevice;
  const std::string where = "\"stream\": ";
  device.replace(device.find(where), where.size(), R"("network": [
      {"collective": "all-reduce", "members": 2, "latency_s": 0.5, "bytes_per_s": 1e5},
      {"collective": "reduce-scatter", "members": 2, "latency_s": 0.25, "bytes_per_s": 2e5},
      {"collective": "all-gather", "members": 2, "latency_s": 0.125, "bytes_per_s": 4e5}],
    "stream": )");
  const Folder folder;
  folder.file("measured.json", device);
  folder.file("scenario.json", kScenario);
  const std::vector<std::string> replicas = {
      "parallel={\"data\": 2, \"pipeline\": 1, \"overlap_gradients\": false}",
      "training.global_batch_size=128"};
  std::vector<std::string> calibrated = replicas;
  calibrated.emplace_back("cluster.collectives=calibrated");
  INFO("an all-reduce among two sends all bytes once; the links carry them at 1 GB/s");
  CHECK(step_of_replicas(folder, calibrated) - step_of_replicas(folder, replicas) ==
        doctest::Approx(0.5 + kBytes / 1e5 - kBytes / 1e9).epsilon(1e-9));
  std::vector<std::string> divided = replicas, measured = calibrated;
  for (auto* sets : {&divided, &measured}) sets->emplace_back("parallel.zero_stage=1");
  INFO("a reduce-scatter and an all-gather send half of them each");
  CHECK(step_of_replicas(folder, measured) - step_of_replicas(folder, divided) ==
        doctest::Approx(0.375 + kBytes / 2 * (1 / 2e5 + 1 / 4e5) - kBytes / 1e9).epsilon(1e-9));
}

TEST_CASE("collectives that were not measured, or that links are to imitate, are refused") {
  const Folder folder;
  folder.file("measured.json", kDevice);
  folder.file("scenario.json", kScenario);
  const Outcome none = run_program(
      {"check", "scenario.json", "--set", "cluster.collectives=calibrated"}, folder.path());
  CAPTURE(none.err);
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("/cluster/collectives: the device's calibration has no \"network\"") !=
        std::string::npos);
  const Outcome emulated =
      run_program({"check", "scenario.json", "--set", "cluster.collectives=calibrated", "--set",
                   R"(cluster.executor={"kind": "cpu", "links": "emulated"})"},
                  folder.path());
  CAPTURE(emulated.err);
  CHECK(emulated.exit_code == 2);
  CHECK(emulated.err.find("emulated links take what the scenario says") != std::string::npos);
}

TEST_CASE("devices without measurements, and precisions that were not, are told") {
  const Folder folder;
  folder.file("measured.json", kDevice);
  folder.file("scenario.json", kScenario);
  const Outcome none = run_program(
      {"check", "scenario.json", "--set", "cluster.device=calibrated/none"}, folder.path());
  CAPTURE(none.err);
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("/cluster/device: ") != std::string::npos);
  const Outcome half =
      run_program({"check", "scenario.json", "--set", "training.precision=bf16"}, folder.path());
  CAPTURE(half.err);
  CHECK(half.exit_code == 2);
  CHECK(half.err.find("fp32") != std::string::npos);
}

}  // namespace
}  // namespace interlock::calibrate_test
