// interlock import megatron, on the sets of arguments that Megatron-LM tests itself with.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <sstream>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::megatron_sets_test {
namespace {

/// A line of the file.
struct ArgumentSet {
  int runs = 0;
  std::string devices, names, arguments;
};

std::vector<ArgumentSet> argument_sets() {
  std::istringstream lines(read_file(MEGATRON_SETS));
  std::vector<ArgumentSet> sets;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream parts(line);
    std::string runs, devices, names, arguments;
    std::getline(parts, runs, '|');
    std::getline(parts, devices, '|');
    std::getline(parts, names, '|');
    std::getline(parts, arguments);
    sets.push_back({std::stoi(runs), std::to_string(std::stoi(devices)), names, arguments});
  }
  return sets;
}

/// "a.sh:1: --name: why" as "name".
std::string refused_name(const std::string& message) {
  const std::size_t from = message.find("--") + 2;
  return message.substr(from, message.find(':', from) - from);
}

TEST_CASE("every set of arguments is simulated, but for kinds that are refused by name") {
  std::map<std::string, int> refused;
  int simulated = 0, all = 0;
  for (const ArgumentSet& set : argument_sets()) {
    CAPTURE(set.names);
    const Folder folder;
    folder.file("a.sh", set.arguments);
    const bool eight = set.arguments.find("--fp8") != std::string::npos;
    std::vector<std::string> words = {"import",
                                      "megatron",
                                      "a.sh",
                                      "--devices",
                                      set.devices,
                                      "--cluster",
                                      eight ? "dgx-b200" : "dgx-h100",
                                      "--out",
                                      "s.json"};
    if (set.arguments.find("vocab-size ") == std::string::npos) {
      words.insert(words.end(), {"--vocab-size", "50257"});  // GPT-2's tokenizer
    }
    const Outcome import = run_program(words, folder.path());
    all += set.runs;
    if (import.exit_code == 2) {
      refused[refused_name(import.err)] += set.runs;
      continue;
    }
    REQUIRE(import.exit_code == 0);
    CHECK(import.out.find("unknown") == std::string::npos);
    const Outcome step = run_program({"simulate", "s.json"}, folder.path());
    CHECK(step.err == "");
    CHECK(step.exit_code == 0);
    if (step.exit_code == 0) simulated += set.runs;
  }
  CHECK(all == 339);
  const std::map<std::string, int> expected = {
      {"dataset-provider", 5},             // images and text
      {"expert-model-parallel-size", 2},   // 64 ranks of experts, on the 8 devices of the table
      {"expert-tensor-parallel-size", 2},  // tensor ranks that hold the same tokens
      {"img-h", 6},                        // images and text
      {"perform-rl-step", 3}};
  CHECK(refused == expected);
  CHECK(simulated == 339 - 18);
}

TEST_CASE("a hybrid's arguments are as large and as fast as the configuration of its weights") {
  // Nemotron 3 Nano, of 31.6 G weights: its config.json is held to the published count.
  for (const ArgumentSet& set : argument_sets()) {
    if (set.names.find("nemotron3_5_lightning") == std::string::npos) continue;
    const Folder folder;
    folder.file("a.sh", set.arguments);
    REQUIRE(run_program({"import", "megatron", "a.sh", "--devices", "8", "--cluster", "dgx-h100",
                         "--vocab-size", "131072", "--out", "s.json"},
                        folder.path())
                .exit_code == 0);
    const auto simulated = [&](const std::string& model) {
      const Outcome run = run_program({"simulate", "s.json", "--set", model, "--set",
                                       "model.multi_token_prediction=null", "--json", "-"},
                                      folder.path());
      REQUIRE_MESSAGE(run.exit_code == 0, run.err);
      const JsonValue result = parse_json(run.out, "result");
      return std::pair(result.find("step_time_s")->number,
                       result.find("devices")->items[0].find("peak_memory_bytes")->number);
    };
    const std::string config =
        data_folder("tests/models/configs") + "/nemotron-3-nano-30b-a3b.json";
    CHECK(simulated("model.name=Nano") ==
          simulated(R"(model={"base": ")" + config + R"(", "sequence_length": 8192})"));
    return;
  }
  FAIL("no such set");
}

}  // namespace
}  // namespace interlock::megatron_sets_test
