// --chakra and workloads through the program, with protobuf and without.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "tests/cli/child_program.h"

namespace interlock::chakra_commands_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const kWorkload = R"({
  "name": "again", "workload": {"chakra": "et/rank.%d.et"},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "8 GiB", "link": {"bandwidth": "1 GB/s"}}
})";

#ifdef INTERLOCK_HAS_PROTOBUF

/// The number behind `key` in a result.
std::string value_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\": ");
  REQUIRE(at != std::string::npos);
  return json.substr(at, json.find_first_of(",\n", at) - at);
}

TEST_CASE("traces are written for each device, and simulated as a workload give the same step") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  folder.file("again.json", kWorkload);
  const Outcome wrote =
      run_program({"simulate", "toy.json", "--json", "a.json", "--chakra", "et"}, folder.path());
  CHECK(wrote.exit_code == 0);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(contains(wrote.err, "wrote et/rank." + std::to_string(rank) + ".et"));
  }
  CHECK(run_program({"check", "again.json"}, folder.path()).out == "again.json: ok\n");
  const Outcome again =
      run_program({"simulate", "again.json", "--json", "b.json", "--report", "b.html", "--svg",
                   "b.svg", "--trace", "b.trace.json", "--kineto", "ranks", "--chakra", "et2"},
                  folder.path());
  CHECK(again.exit_code == 0);
  CHECK(contains(again.out, "et/rank.%d.et on 4 devices"));
  CHECK(contains(again.out, "execution traces of"));
  const std::string before = read_file(folder.path("a.json"));
  const std::string after = read_file(folder.path("b.json"));
  CHECK(value_of(before, "step_time_s") == value_of(after, "step_time_s"));
  CHECK(value_of(after, "strategy") == "\"strategy\": null");
  CHECK(run_program({"schedule", "again.json"}, folder.path()).exit_code == 0);
  for (const char* option : {"--csv", "--exact"}) {
    const Outcome refused = run_program({"schedule", "again.json", option, "x"}, folder.path());
    CHECK(refused.exit_code == 2);
  }
  const Outcome trained = run_program({"train", "again.json"}, folder.path());
  CHECK(trained.exit_code == 2);
  CHECK(contains(trained.err, "a trace has times, but no layers to run; expected a model"));
}

TEST_CASE("folders that cannot be, and devices that are left out, are refused") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const Outcome file = run_program({"simulate", "toy.json", "--chakra", "toy.json"}, folder.path());
  CHECK(file.exit_code == 2);
  CHECK(contains(file.err, "is a file; expected a folder"));
  const Outcome several = run_program(
      {"simulate", "toy.json", "--chakra", "et", "--set", "sweep={\"training.steps\": [1, 2]}"},
      folder.path());
  CHECK(several.exit_code == 2);
  CHECK(contains(several.err, "--chakra holds one scenario, and there are 2"));
}

#else

TEST_CASE("without protobuf traces are refused with what to install") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  folder.file("again.json", kWorkload);
  const Outcome wrote = run_program({"simulate", "toy.json", "--chakra", "et"}, folder.path());
  CHECK(wrote.exit_code == 2);
  CHECK(wrote.out == "");
  CHECK(contains(wrote.err, "apt-get install libprotobuf-dev protobuf-compiler"));
  CHECK(run_shell("mkdir et && touch et/rank.0.et", folder.path()).exit_code == 0);
  const Outcome again = run_program({"simulate", "again.json"}, folder.path());
  CHECK(again.exit_code == 2);
  CHECK(contains(again.err, "apt-get install libprotobuf-dev protobuf-compiler"));
}

#endif

}  // namespace
}  // namespace interlock::chakra_commands_test
