// interlock validate published as a user runs it.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::validate_published_test {
namespace {

/// One pipeline of two stages and four micro-batches: (4 + 1) x 3 ms.
std::string measured(const std::string& step_time) {
  return R"({"kind": "measurements", "source": {"paper": "us"}, "tables": [
    {"name": "mine", "target": {"step_time_s": {"mape": 0.01}},
     "scenario": {"model": {"kind": "profile", "modules": [{"repeat": 2, "forward": "1 ms",
        "backward_input": "1 ms", "backward_weight": "1 ms"}]},
      "cluster": {"kind": "uniform", "devices": 2, "memory": "1 GiB",
        "link": {"bandwidth": "1 GB/s"}},
      "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": 4, "steps": 1}},
     "columns": ["id", "measured.step_time_s"], "rows": [["one", )" +
         step_time + "]]}]}";
}

TEST_CASE("rows of one's own are judged, and --check fails when a target is missed") {
  const Folder folder;
  folder.file("right.json", measured("0.015"));
  folder.file("wrong.json", measured("0.010"));
  const Outcome right = run_program({"validate", "published", "right.json", "--check", "--json",
                                     "a.json", "--markdown", "a.md", "--html", "a.html"},
                                    folder.path());
  CAPTURE(right.err);
  REQUIRE(right.exit_code == 0);
  CHECK(right.out.find("right: mine") != std::string::npos);
  CHECK(read_json_file(folder.path("a.json")).find("values")->items.size() == 1);
  CHECK(read_file(folder.path("a.md")).find("interlock validate published right.json --check") !=
        std::string::npos);
  CHECK(read_file(folder.path("a.html")).starts_with("<!DOCTYPE html>"));
  CHECK(run_program({"validate", "published", "wrong.json"}, folder.path()).exit_code == 0);
  const Outcome wrong =
      run_program({"validate", "published", "wrong.json", "--check", "-q"}, folder.path());
  CHECK(wrong.exit_code == 1);
  CHECK(wrong.out.empty());
  CHECK(wrong.err == "missed: wrong: mine: step_time_s: mean over 1.0 %\n");
}

TEST_CASE("bad measurements and unknown sources are the user's mistakes, all told at once") {
  const Folder folder;
  folder.file("a.json", R"({"kind": "measurements"})");
  folder.file("b.json", "{");
  const Outcome bad = run_program({"validate", "published", "a.json", "b.json"}, folder.path());
  CHECK(bad.exit_code == 2);
  CHECK(bad.err.find("a.json:1: ") != std::string::npos);
  CHECK(bad.err.find("b.json:1: ") != std::string::npos);
  const Outcome unknown =
      run_program({"validate", "published", "--source", "vtrain-a10"}, folder.path());
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("did you mean \"vtrain-a100\"?") != std::string::npos);
}

}  // namespace
}  // namespace interlock::validate_published_test
