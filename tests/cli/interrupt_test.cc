// Ctrl-C while a command thinks: what is done is kept; else one line and no file.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::interrupt_test {
namespace {

// Each takes seconds from when it can be interrupted.
TEST_CASE("init, explain and search end at an interrupt with one line, and write nothing") {
  const std::string large = SCENARIOS_FOLDER "/examples/gpt3-175b-64-a100.json";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"init", "--model", "gpt3-175b", "--machine", "dgx-a100-80g", "--devices", "100000",
            "--out", "s.json"},
           {"explain", large, "--json", "s.json"},
           {"search", large, "--jobs", "1", "--out", "s.json"}}) {
    CAPTURE(arguments.front());
    const Folder folder;
    const Outcome run = interrupt_program(arguments, folder.path());
    CHECK(run.exit_code == 130);
    CHECK(run.err == "interrupted: nothing was written\n");
    CHECK(run.out == "");
    CHECK(folder.files().empty());
  }
}

TEST_CASE("a terminal that is closed ends a search as an interrupt does") {
  const Folder folder;
  const Outcome run =
      interrupt_program({"search", SCENARIOS_FOLDER "/examples/gpt3-175b-64-a100.json", "--jobs",
                         "1", "--out", "s.json"},
                        folder.path(), SIGHUP);
  CHECK(run.exit_code == 130);
  CHECK(run.err == "interrupted: nothing was written\n");
  CHECK(folder.files().empty());
}

/// Interrupts a search on a terminal once it has looked at plans; the first simulation may prove
/// the best of them. Returns false if the search was done by then, as this process had to wait for
/// the processor.
bool interrupted_amid_search() {
  const Folder folder;
  const Outcome run =
      interrupt_on_terminal({"search", SCENARIOS_FOLDER "/examples/gpt3-175b-64-a100.json",
                             "--jobs", "1", "--json", "all.json", "--out", "best.json"},
                            folder.path(), " looked at, ");
  CAPTURE(run.err);
  CHECK((run.exit_code == 130 || run.exit_code == 0));
  if (run.exit_code == 0) return false;
  const JsonValue all = read_json_file(folder.path("all.json"));
  const bool proven = all.find("proven")->boolean;
  CHECK(all.find("stopped")->boolean);
  CHECK(!all.find("plans")->items.empty());
  CHECK(all.find("counts")->find("interrupted")->number > 0);
  CHECK(run_program({"check", "best.json"}, folder.path()).exit_code == 0);
  CHECK(run.err.find(proven ? "interrupted: plans that are worth having may be missing"
                            : "interrupted: the best plan is not proven") != std::string::npos);
  CHECK(run.out.find(proven ? "Interrupted: below it plans" : "Interrupted before the best was") !=
        std::string::npos);
  return true;
}

TEST_CASE("Ctrl-C in a search keeps the best plan of those that were looked at") {
  while (!interrupted_amid_search()) {
  }
}

/// A scenario whose simulation takes minutes for `seeds` of 10,000, and no time for one.
std::string varied(const std::string& seeds, const std::string& more = "") {
  return R"({"name": "toy",
    "model": {"kind": "profile", "modules": [{"repeat": 4, "forward": "1 ms",
      "backward_input": "1 ms", "backward_weight": "1 ms"}]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "1 GiB",
      "link": {"bandwidth": "100 GB/s"}},
    "training": {"strategy": "global", "schedule": "1f1b", "steps": 2, "micro_batches": 512},
    "variation": {"jitter": {"spread": 0.1}, "seeds": )" +
         seeds + "}" + more + "}";
}

/// Interrupts `arguments` when two of three scenarios are done. Returns false if all were by then.
bool interrupted_amid(const Folder& folder, const std::vector<std::string>& arguments) {
  const Outcome run = interrupt_on_terminal(arguments, folder.path(), "2 of 3 scenarios");
  CAPTURE(run.err);
  CHECK((run.exit_code == 130 || run.exit_code == 0));
  if (run.exit_code == 0) return false;
  CHECK(run.err.ends_with("interrupted: 1 of 3 scenarios are missing\r\n"));
  CHECK(read_json_file(folder.path("r.json")).items.size() == 2);
  CHECK(read_file(folder.path("r.html")).starts_with("<!DOCTYPE html>"));
  CHECK(run.out.find("toy") != std::string::npos);
  return true;
}

TEST_CASE("Ctrl-C in simulate and compare keeps the scenarios that are done") {
  const Folder folder;
  folder.file("swept.json", varied("1", R"(, "sweep": {"variation.seeds": [1, 2, 10000]})"));
  folder.file("a.json", varied("1"));
  folder.file("b.json", varied("2"));
  folder.file("c.json", varied("10000"));
  while (!interrupted_amid(folder,
                           {"simulate", "swept.json", "--json", "r.json", "--report", "r.html"})) {
  }
  while (!interrupted_amid(folder, {"compare", "a.json", "b.json", "c.json", "--json", "r.json",
                                    "--report", "r.html"})) {
  }
}

/// Interrupts `validate published` when one of two rows is done. Returns false if both were by
/// then.
bool interrupted_amid_rows(const Folder& folder) {
  const Outcome run = interrupt_on_terminal(
      {"validate", "published", "rows.json", "--jobs", "1", "--check", "--json", "r.json"},
      folder.path(), "1 of 2 rows");
  CAPTURE(run.err);
  CHECK((run.exit_code == 130 || run.exit_code == 0));
  if (run.exit_code == 0) return false;
  CHECK(run.err.ends_with("interrupted: 1 of 2 rows are missing\r\n"));
  const JsonValue json = read_json_file(folder.path("r.json"));
  const std::vector<JsonValue>& values = json.find("values")->items;
  REQUIRE(values.size() == 2);
  CHECK(values[0].find("predicted")->number > 0);
  CHECK(values[1].find("problem")->text == "interrupted before it was predicted");
  return true;
}

TEST_CASE("Ctrl-C in validate published keeps the rows that are done") {
  const Folder folder;
  folder.file("rows.json", R"({"kind": "measurements", "source": {"paper": "us"}, "tables": [
    {"name": "mine", "scenario": )" +
                               varied("1") +
                               R"(, "columns": ["id", "variation.seeds", "measured.step_time_s"],
     "rows": [["one", 1, 1.6], ["two", 10000, 1.6]]}]})");
  while (!interrupted_amid_rows(folder)) {
  }
}

TEST_CASE("Ctrl-C in simulate of one scenario, or before the first is done, writes nothing") {
  const Folder folder;
  folder.file("one.json", varied("10000"));
  folder.file("two.json", varied("1", R"(, "sweep": {"variation.seeds": [10000, 9999]})"));
  for (const char* name : {"one.json", "two.json"}) {
    CAPTURE(name);
    const Outcome run = interrupt_program({"simulate", name, "--json", "r.json"}, folder.path());
    CHECK(run.exit_code == 130);
    CHECK(run.err == "interrupted: nothing was written\n");
    CHECK(run.out == "");
    CHECK(folder.files() == std::vector<std::string>{"one.json", "two.json"});
  }
}

}  // namespace
}  // namespace interlock::interrupt_test
