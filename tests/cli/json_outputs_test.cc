// --json of every subcommand: there, parsed, and alone on standard output.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::json_outputs_test {
namespace {

const JsonValue& at(const JsonValue& value, const std::string& key) {
  const JsonValue* member = value.find(key);
  REQUIRE_MESSAGE(member, key);
  return *member;
}

/// Returns the standard output of a command, which must be JSON and nothing else.
JsonValue written(const std::vector<std::string>& arguments, const std::string& folder = ".") {
  const Outcome run = run_program(arguments, folder);
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
  return parse_json(run.out, "stdout");
}

bool has_option(const JsonValue& command, const std::string& wanted) {
  for (const JsonValue& option : at(command, "options").items) {
    for (const JsonValue& name : at(option, "names").items) {
      if (name.text == wanted) return true;
    }
  }
  return false;
}

/// Commands without `option` that have none below them.
void find_without(const JsonValue& command, const std::string& option,
                  std::vector<std::string>& found) {
  const auto& below = at(command, "commands").items;
  for (const JsonValue& one : below) find_without(one, option, found);
  if (below.empty() && !has_option(command, option)) found.push_back(at(command, "command").text);
}

TEST_CASE("every command has --json, --quiet and -q") {
  const JsonValue tree = written({"man", "--json", "-"});
  for (const char* option : {"--json", "--quiet", "-q"}) {
    CAPTURE(option);
    std::vector<std::string> without;
    find_without(tree, option, without);
    std::erase(without, "studio");  // it answers in its page
    CHECK(without == std::vector<std::string>{});
  }
  CHECK(at(tree, "commands").items.size() >= 15);
}

TEST_CASE("commands that print words take --quiet, which silences what else they say") {
  const Folder folder;
  for (const std::vector<std::string>& command : {std::vector<std::string>{"list", "machines"},
                                                  {"schema"},
                                                  {"man"},
                                                  {"completion", "bash"},
                                                  {"schedule", "--list"},
                                                  {"help", "sweep"}}) {
    CAPTURE(command.front());
    std::vector<std::string> quiet = command;
    quiet.emplace_back("-q");
    CHECK(run_program(quiet).out == run_program(command).out);
    quiet.insert(quiet.end(), {"--json", folder.path("x.json")});
    const Outcome run = run_program(quiet);
    CHECK(run.exit_code == 0);
    CHECK(run.out + run.err == "");
    CHECK_NOTHROW(read_json_file(folder.path("x.json")));
  }
}

TEST_CASE("completion as JSON has the script's lines, help the options of a command") {
  const JsonValue completion = written({"completion", "fish", "--json", "-"});
  std::string script;
  for (const JsonValue& line : at(completion, "lines").items) script += line.text + "\n";
  CHECK(script == run_program({"completion", "fish"}).out);
  const JsonValue help = written({"help", "validate", "run", "--json", "-"});
  CHECK(at(help, "command").text == "validate run");
  CHECK(has_option(help, "--clock"));
}

TEST_CASE("list says names and facts") {
  const JsonValue all = written({"list", "--json", "-"});
  CHECK(at(all, "format").text == "interlock-list/1");
  CHECK(at(all, "models").items.size() > 20);
  const JsonValue machines = written({"list", "machines", "--json", "-"});
  CHECK(machines.find("models") == nullptr);
  const JsonValue& first = at(machines, "machines").items.front();
  CHECK(at(first, "name").text == "a3-highgpu-8g");
  CHECK(at(first, "devices_per_node").number == 8);
  CHECK(at(at(written({"schedule", "--list", "--json", "-"}), "schedules").items.front(), "name")
            .text == "naive");
}

TEST_CASE("check says of each file whether it is right, and what is wrong") {
  const Folder folder;
  folder.file("good.json", kPairwise);
  folder.file("bad.json", "{\"stepz\": 1}");
  const Outcome run = run_program({"check", "good.json", "bad.json", "--json", "-"}, folder.path());
  CHECK(run.exit_code == 2);
  const JsonValue files = at(parse_json(run.out, "stdout"), "files");
  CHECK(at(files.items[0], "right").boolean);
  CHECK_FALSE(at(files.items[1], "right").boolean);
  CHECK(at(files.items[1], "mistakes").items.size() >= 2);
  CHECK(at(files.items[1], "mistakes").items[0].text.starts_with("bad.json:1: "));
}

TEST_CASE("schedule, schema and report say it, too") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  CHECK(at(written({"schedule", "toy.json", "--json", "-"}, folder.path()), "format").text ==
        "interlock-result/1");
  CHECK(written({"schema", "--json", "-"}).find("definitions") != nullptr);
  const JsonValue drawn =
      written({"report", "toy.json", "--figure", "utilisation", "--out", "u.svg", "--json", "-"},
              folder.path());
  CHECK(at(drawn, "wrote").items.front().text == "u.svg");
  CHECK(at(drawn, "results").number == 1);
}

TEST_CASE("schedule --table is Markdown, and says so where JSON is asked for") {
  const Outcome run = run_program({"schedule", "--table", "--json", "-"});
  CHECK(run.exit_code == 2);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("--table prints a page of Markdown"));
}

TEST_CASE("a file that cannot be written is told before anything is done") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"list"}, {"schema"}, {"man"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--json", "nowhere/x.json"});
    const Outcome run = run_program(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err.find("there is no folder") != std::string::npos);
  }
}

}  // namespace
}  // namespace interlock::json_outputs_test
