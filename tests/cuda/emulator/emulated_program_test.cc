// The program beside the emulated module, as a user runs it: what results say of what ran.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::emulated_program_test {
namespace {

constexpr const char* kClassifier = R"({
  "name": "classifier",
  "model": {"kind": "residual-mlp", "input_size": 16, "layers": 4, "hidden_size": 32, "classes": 4},
  "cluster": {"kind": "uniform", "devices": 2, "link": {"bandwidth": "1 GB/s"},
    "device": {"memory": "1 GB", "memory_bandwidth": "10 GB/s", "peak": {"fp32": "10 GFLOP/s"}},
    "executor": {"kind": "cuda", "devices": "partitions"}},
  "parallel": {"pipeline": 2},
  "training": {"strategy": "local", "global_batch_size": 64, "micro_batch_size": 32,
    "precision": "fp32", "optimizer": "adam"}})";

double number_at(const JsonValue& value, const std::vector<std::string>& path) {
  const JsonValue* at = &value;
  for (const std::string& key : path) {
    at = at->find(key);
    REQUIRE_MESSAGE(at != nullptr, key);
  }
  return at->number;
}

/// Returns `kClassifier` with two replicas that divide their updates.
std::string two_classifiers() {
  std::string text = kClassifier;
  const auto put = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  put(R"("devices": 2)", R"("devices": 4)");
  put(R"("pipeline": 2)",
      R"("pipeline": 2, "data": 2, "overlap_gradients": false, "zero_stage": 1)");
  put(R"("global_batch_size": 64)", R"("global_batch_size": 128)");
  return text;
}

/// Runs the program on `kClassifier`, in a shell with `variables`.
Outcome run_with(const Folder& folder, const std::string& variables, const std::string& words) {
  folder.file("c.json", kClassifier);
  return run_shell(variables + " \"" INTERLOCK_PROGRAM "\" " + words, folder.path());
}

void check_execution(const JsonValue& execution) {
  CHECK(execution.find("driver")->text == "580.0-emulated");
  CHECK(execution.find("divided")->text == "green contexts");
  REQUIRE(execution.find("devices")->items.size() == 2);
  for (const JsonValue& device : execution.find("devices")->items) {
    CHECK(number_at(device, {"multiprocessors"}) == 64);  // 132 in eights, halved
  }
  CHECK(number_at(execution, {"link_multiprocessors"}) == 4);
  CHECK(number_at(execution, {"wall_s"}) > 0);
  CHECK(number_at(execution, {"workspace_bytes"}) >= 32 << 20);
  REQUIRE(!execution.find("products")->items.empty());
  for (const JsonValue& product : execution.find("products")->items) {
    CHECK(number_at(product, {"calls"}) > 0);
    CHECK(number_at(product, {"waves"}) == 1);
  }
  REQUIRE(execution.find("clocks")->items.size() == 1);
  const JsonValue& clocks = execution.find("clocks")->items.front();
  const double readings = number_at(clocks, {"readings"});
  CHECK(readings >= 2);
  CHECK(number_at(clocks, {"sm_mhz", "most"}) <= 1980);
  CHECK(number_at(clocks, {"sm_mhz", "least"}) < number_at(clocks, {"sm_mhz", "most"}));
  CHECK(number_at(clocks, {"power_w", "median"}) == doctest::Approx(699.5));
  CHECK(number_at(clocks, {"slowed_share", "power cap"}) > 0);
  for (const char* column : {"time_s", "gpu", "sm_mhz", "power_w", "reasons"}) {
    const auto count = execution.find("clock_readings")->find(column)->items.size();
    CHECK(static_cast<double>(count) == readings);
  }
}

TEST_CASE("a validation on GPUs says on what it ran, in its JSON, on its page and in its table") {
  const Folder folder;
  const Outcome run =
      run_with(folder, "", "validate run c.json --steps 3 --json v.json --report v.html");
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  check_execution(*read_json_file(folder.path("v.json")).items.front().find("execution"));
  CHECK(run.out.find("green contexts, 2 x 64 multiprocessors") != std::string::npos);
  const std::string page = read_file(folder.path("v.html"));
  CHECK(page.find("What ran") != std::string::npos);
  CHECK(page.find("power cap in ") != std::string::npos);
}

TEST_CASE("so does a training, which may ask for plain streams") {
  const Folder folder;
  const Outcome run = run_with(folder, "", "train c.json --steps 3 --json t.json --report t.html");
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  check_execution(*read_json_file(folder.path("t.json")).find("execution"));
  CHECK(read_file(folder.path("t.html")).find("What ran") != std::string::npos);
  const std::string streams = "train c.json --steps 3 --streams";
  CHECK(run_with(folder, "EMULATED_OLD_DRIVER=1", streams + " --json s.json").exit_code == 0);
  const JsonValue execution = *read_json_file(folder.path("s.json")).find("execution");
  CHECK(execution.find("divided")->text == "plain streams");
}

TEST_CASE("replicas train on parts of a GPU, and results say by what they exchanged") {
  const Folder folder;
  folder.file("r.json", two_classifiers());
  const Outcome run =
      run_with(folder, "", "validate run r.json --steps 3 --json v.json --report v.html");
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const std::string words = "kernels of each member inside the GPU: 2 groups of 2 devices";
  const JsonValue validation = read_json_file(folder.path("v.json")).items.front();
  CHECK(validation.find("execution")->find("replicas")->text == words);
  CHECK(read_file(folder.path("v.html")).find("Exchanges of replicas") != std::string::npos);
  for (const std::string graph : {"", " --graph"}) {
    const Outcome train = run_with(folder, "", "train r.json --steps 3 --json t.json" + graph);
    CAPTURE(train.err);
    REQUIRE(train.exit_code == 0);
    const JsonValue training = read_json_file(folder.path("t.json"));
    CHECK(training.find("execution")->find("replicas")->text == words);
    REQUIRE(training.find("loss")->items.size() == 3);
    CHECK(training.find("loss")->items[2].number < training.find("loss")->items[0].number);
  }
  // One copy tells that there is none.
  REQUIRE(run_with(folder, "", "train c.json --steps 1 --json one.json").exit_code == 0);
  const JsonValue one = read_json_file(folder.path("one.json"));
  CHECK(one.find("execution")->find("replicas")->kind == JsonValue::Kind::Null);
}

TEST_CASE("replicas on GPUs of their own are refused where NCCL cannot be opened") {
  const Folder folder;
  std::string text = two_classifiers();
  const std::string parts = R"("partitions")";
  folder.file("g.json", text.replace(text.find(parts), parts.size(), R"("gpus")"));
  folder.file("libnccl.so.2", "no library");
  const Outcome run = run_with(folder, "EMULATED_GPUS=4 LD_LIBRARY_PATH=.:$LD_LIBRARY_PATH",
                               "train g.json --steps 1");
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("/parallel/data: replicas on several GPUs exchange by NCCL") !=
        std::string::npos);
  CHECK(run.err.find("libnccl.so.2 cannot be opened (./libnccl.so.2: ") != std::string::npos);
  CHECK(run.err.find(R"(expected it installed, or "devices": "partitions")") != std::string::npos);
}

TEST_CASE("more replicas than a kernel takes are refused on parts of one GPU") {
  const Folder folder;
  for (const int replicas : {128, 129}) {
    const std::string n = std::to_string(replicas);
    const std::string words = "train c.json --steps 1 --set cluster.devices=" + n +
                              " --set training.global_batch_size=" + n + "00" +
                              " --set training.micro_batch_size=25 --set 'parallel={\"pipeline\": 1"
                              ", \"data\": " +
                              n + ", \"overlap_gradients\": false}'";
    const Outcome run = run_with(folder, "", words);
    CAPTURE(run.err);
    CHECK(run.exit_code == 2);  // the GPU has too few multiprocessors for either
    const std::string said = "/parallel/data: one GPU has at most 128 replicas; expected fewer";
    CHECK((run.err.find(said) != std::string::npos) == (replicas == 129));
  }
}

TEST_CASE("a driver without partitions, and a GPU without kernels, end a run with a sentence") {
  const Folder folder;
  const Outcome driver = run_with(folder, "EMULATED_OLD_DRIVER=1", "train c.json --steps 3");
  CHECK(driver.exit_code == 2);
  CHECK(driver.err.find("--streams") != std::string::npos);
  for (const char* command : {"train c.json --steps 3", "calibrate --device cuda --quick"}) {
    const Outcome old = run_with(folder, "EMULATED_CAPABILITY=75", command);
    CHECK(old.exit_code == 2);
    CHECK(old.err.find("compute capability 7.5") != std::string::npos);
  }
}

TEST_CASE("whatever a machine refuses, the program trains or ends with a sentence") {
  const Folder folder;
  int trained = 0;
  for (int seed = 9; seed <= 26; ++seed) {
    CAPTURE(seed);
    const Outcome run =
        run_with(folder, "EMULATED_REFUSALS=" + std::to_string(seed), "train c.json --steps 2");
    CAPTURE(run.err);
    trained += run.exit_code == 0 ? 1 : 0;
    if (run.exit_code == 0) continue;
    CHECK(run.exit_code == 2);
    CHECK(run.err.size() > 20);
  }
  CHECK(trained > 0);
  CHECK(trained < 18);
}

}  // namespace
}  // namespace interlock::emulated_program_test
