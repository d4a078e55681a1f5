// interlock import kineto, as a user asks for it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "tests/cli/child_program.h"

namespace interlock::import_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Four stages whose messages take no time, so that op times are all there is to a step.
const char* const kFreeMessages = R"({
  "model": {"kind": "profile", "modules": [{"repeat": 3, "forward": "1.25 ms",
    "backward_input": "1.5 ms", "backward_weight": "1.125 ms", "update": "0.5 ms"},
    {"forward": "2 ms", "backward_input": "2 ms", "backward_weight": "2 ms"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
    "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "global", "schedule": "zb-h1", "micro_batches": 6, "steps": 2}})";

std::string line_with(const std::string& text, const std::string& words) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, words)) return line;
  }
  return "";
}

TEST_CASE("files of --kineto become a model whose step takes as long as the one they are of") {
  const Folder folder;
  folder.file("s.json", kFreeMessages);
  const auto run = [&](const std::string& command) {
    return run_shell("'" INTERLOCK_PROGRAM "' " + command, folder.path());
  };
  const Outcome first = run("simulate s.json --kineto ranks --json r.json");
  CHECK(first.exit_code == 0);
  const Outcome import = run("import kineto ranks/rank-*.json.gz --out table.json");
  CHECK(import.exit_code == 0);
  CHECK(import.err == "wrote table.json; in a scenario: \"model\": \"table.json\"\n");
  CHECK(contains(import.out, "4 modules from 4 traces"));
  CHECK(contains(import.out, "In ops"));
  const Outcome again = run("simulate s.json --set model=null --set model=table.json");
  CHECK(again.err == "");
  const std::string step = line_with(first.out, "Step time");
  CHECK(step != "");
  CHECK(line_with(again.out, "Step time") == step);
  CHECK(run("import kineto ranks/rank-0.json.gz --out quiet.json --quiet").out == "");
}

TEST_CASE("each bad trace is refused in one sentence, and nothing is written") {
  std::istringstream messages(read_file(BAD_TRACES_FOLDER "/messages.txt"));
  int files = 0;
  for (std::string expected; std::getline(messages, expected);) {
    CAPTURE(expected);
    const Folder folder;
    const std::string name = expected.substr(0, expected.find(':'));
    const Outcome run = run_program({"import", "kineto", name, "--out", folder.path("table.json")},
                                    BAD_TRACES_FOLDER);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err == expected + "\n");
    CHECK(folder.files().empty());
    ++files;
  }
  CHECK(files == 8);
}

TEST_CASE("targets that cannot be meant are refused before anything is read") {
  const Folder folder;
  folder.file("trace.json", "{}");
  const auto refusal = [&](const std::string& out) {
    const Outcome run =
        run_program({"import", "kineto", "trace.json", "--out", out}, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(folder.files() == std::vector<std::string>{"trace.json"});
    return run.err;
  };
  CHECK(refusal("trace.json") == "--out trace.json is one of the traces; expected another name\n");
  CHECK(refusal("table.csv") == "--out table.csv: expected a name that ends with .json\n");
  CHECK(refusal("none/table.json") == "--out none/table.json: there is no folder \"none\"\n");
  const Outcome nothing = run_program({"import", "kineto"}, folder.path());
  CHECK(nothing.exit_code == 2);
  const Outcome other = run_program({"import", "csv"}, folder.path());
  CHECK(other.exit_code == 2);
}

TEST_CASE("a trace that names no part of a model is refused with what to record") {
  const Folder folder;
  folder.file("t.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0,
    "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7, "device": 0, "correlation": 1}}]})");
  const Outcome run = run_program({"import", "kineto", "t.json", "--out", "m.json"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("t.json: no range names a forward or a backward") == 0);
  CHECK(run.err.find("record_function(\"forward layer 0\")") != std::string::npos);
  CHECK(folder.files() == std::vector<std::string>{"t.json"});
}

TEST_CASE("a compressed trace that is damaged or cut off is refused") {
  const Folder folder;
  folder.file("s.json", kFreeMessages);
  const std::string program = "'" INTERLOCK_PROGRAM "' ";
  run_shell(program + "simulate s.json --kineto ranks -q", folder.path());
  run_shell("head -c 700 ranks/rank-0.json.gz > cut.json.gz", folder.path());
  const Outcome cut = run_shell(program + "import kineto cut.json.gz --out t.json", folder.path());
  CHECK(cut.exit_code == 2);
  CHECK(cut.err == "cut.json.gz: compressed text is damaged or cut off\n");
  const std::vector<std::string> files = folder.files();
  CHECK(std::find(files.begin(), files.end(), "t.json") == files.end());
}

TEST_CASE("a folder of traces stands for the traces in it, in the order of their names") {
  const Folder folder;
  folder.file("s.json", kFreeMessages);
  const auto run = [&](const std::string& command) {
    return run_shell("'" INTERLOCK_PROGRAM "' " + command, folder.path());
  };
  CHECK(run("simulate s.json --kineto ranks -q").exit_code == 0);
  CHECK(run("import kineto ranks/rank-*.json.gz --out each.json -q").exit_code == 0);
  INFO("the model that is made of it is none of them, the second time, too");
  for (int time = 0; time < 2; ++time) {
    const Outcome whole = run("import kineto ranks --out ranks/table.json -q");
    CHECK(whole.err == "");
    CHECK(read_file(folder.path("ranks/table.json")) == read_file(folder.path("each.json")));
  }
  CHECK(run("import kineto . --out ranks/table.json").err.starts_with("./each.json: "));
  std::filesystem::create_directory(folder.path("none"));
  folder.file("none/notes.txt", "");
  const Outcome none = run("import kineto none --out m.json");
  CHECK(none.exit_code == 2);
  CHECK(none.err == "none: holds no trace; expected files that end with .json or .json.gz\n");
}

TEST_CASE("measured times without sizes leave memory unknown, in every table") {
  const Folder folder;
  folder.file("s.json", kFreeMessages);
  const auto run = [&](const std::string& command) {
    return run_shell("'" INTERLOCK_PROGRAM "' " + command, folder.path()).out;
  };
  const std::string table = run("simulate s.json");
  CHECK(line_with(table, "Peak memory  ") ==
        "Peak memory      unknown              the model has times only: no \"parameters\" or "
        "\"stash\" of "
        "its");
  CHECK(!contains(table, "fits"));
  CHECK(!contains(table, "Memory in use"));
  CHECK(contains(line_with(table, "     0  0 "), "–      –  –"));
  CHECK(contains(line_with(run("schedule s.json"), "Peak memory"), "unknown"));
  const std::string two = run("compare s.json s.json");
  CHECK(!contains(two, "100.0  "));
  INFO("messages alone are no peak; weights are");
  CHECK(contains(run("simulate s.json --set model.modules.0.output='8 MiB'"),
                 "Peak memory      unknown "));
  CHECK(contains(run("simulate s.json --set model.modules.0.parameters='8 MiB'"), "; fits, "));
}

}  // namespace
}  // namespace interlock::import_test
