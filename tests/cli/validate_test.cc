// interlock validate run as a user runs it.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/checksum.h"
#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::validate_test {
namespace {

constexpr const char* kTwoStrategies = R"({
  "name": "classifier",
  "model": {"kind": "residual-mlp", "input_size": 16, "layers": 4, "hidden_size": 32, "classes": 4},
  "cluster": {"kind": "uniform", "devices": 2, "link": {"bandwidth": "1 GB/s"},
    "device": {"memory": "1 GB", "memory_bandwidth": "10 GB/s", "peak": {"fp32": "10 GFLOP/s"}}},
  "parallel": {"pipeline": 2},
  "training": {"strategy": "local", "global_batch_size": 64, "micro_batch_size": 64,
    "precision": "fp32", "optimizer": "adam"},
  "sweep": {"training.strategy": ["local", "global"]}})";

TEST_CASE("the measured timeline is written for other tools, of one scenario") {
  const Folder folder;
  folder.file("c.json", kTwoStrategies);
  const std::vector<std::string> words = {"validate", "run",    "c.json",  "--steps", "2",
                                          "--trace",  "t.json", "--clock", "wall"};
  const Outcome several = run_program(words, folder.path());
  CHECK(several.exit_code == 2);
  CHECK(several.err.find("--trace holds one scenario, and there are 2") != std::string::npos);
  std::vector<std::string> one = words;
  one.insert(one.end(), {"--set", "sweep=null"});
  const Outcome run = run_program(one, folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const JsonValue trace = read_json_file(folder.path("t.json"));
  CHECK(trace.find("otherData")->find("scenario")->text == "measured, wall clock | classifier");
  CHECK(trace.find("traceEvents")->items.size() > 40);  // 2 devices, 4 steps, F B U each, names
}

TEST_CASE("a validation says for each scenario what was predicted, measured and replayed") {
  for (const char* clock : {"wall", "processor"}) {
    CAPTURE(clock);
    const Folder folder;
    folder.file("c.json", kTwoStrategies);
    const Outcome run =
        run_program({"validate", "run", "c.json", "--steps", "6", "--clock", clock, "--prediction",
                     "p.json", "--json", "v.json", "--report", "v.html"},
                    folder.path());
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(run.out.find("Kendall's tau") != std::string::npos);
    const JsonValue predictions = read_json_file(folder.path("p.json"));
    const JsonValue validations = read_json_file(folder.path("v.json"));
    REQUIRE(predictions.items.size() == 2);
    REQUIRE(validations.items.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const JsonValue& one = validations.items[i];
      const double predicted = one.find("predicted_step_time_s")->number;
      const double measured = one.find("measured_step_time_s")->number;
      const double replayed = one.find("replayed_step_time_s")->number;
      CHECK(one.find("prediction_sha256")->text == sha256(read_file(folder.path("p.json"))));
      CHECK(one.find("from_alone_step_time_s")->number > 0);
      CHECK(predicted == predictions.items[i].find("step_time_s")->number);
      CHECK(measured > 0);
      CHECK(one.find("end_to_end_error")->number == doctest::Approx(predicted / measured - 1));
      CHECK(replayed > 0);
      if (std::string(clock) == "processor") CHECK(replayed == measured);
      CHECK(one.find("devices")->items.size() == 2);
      for (const JsonValue& op : one.find("ops")->items) {
        CHECK(op.find("measured_s")->number >= 0);
        CHECK(op.find("alone_s")->number >= 0);
      }
    }
    const std::string page = read_file(folder.path("v.html"));
    CHECK(page.find(">Predicted</h3>") != std::string::npos);
    CHECK(page.find("Measured, " + std::string(clock) + " clock") != std::string::npos);
  }
}

TEST_CASE("what was compared before a loss was not a number is written") {
  const Folder folder;
  folder.file("c.json", kTwoStrategies);
  // AdamW's steps are as long as the rate, SGD's grow with the gradients.
  const Outcome run =
      run_program({"validate", "run", "c.json", "--steps", "30", "--rate", "1e3", "--set",
                   R"(sweep={"training.optimizer": ["adam", "sgd"]})", "--json", "v.json"},
                  folder.path());
  CAPTURE(run.err);
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("is not a number at step") != std::string::npos);
  CHECK(read_file(folder.path("v.json")).find("optimizer=adam") != std::string::npos);
  CHECK(read_file(folder.path("v.json")).find("optimizer=sgd") == std::string::npos);
}

TEST_CASE("what cannot be run is refused before anything is written") {
  const Folder folder;
  folder.file("c.json", kTwoStrategies);
  const Outcome run = run_program({"validate", "run", "c.json", "--prediction", "p.json", "--set",
                                   R"(model={"kind": "profile", "modules": [{"repeat": 4}]})"},
                                  folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("profile") != std::string::npos);
  CHECK_THROWS(read_file(folder.path("p.json")));
  CHECK(run_program({"validate"}, folder.path()).exit_code == 2);
}

}  // namespace
}  // namespace interlock::validate_test
