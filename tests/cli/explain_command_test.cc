// interlock explain as a user runs it: what it promises is what simulate says.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"
#include "tests/support/cases.h"

namespace interlock::explain_command_test {
namespace {

const JsonValue& at(const JsonValue& value, const std::string& key) {
  const JsonValue* member = value.find(key);
  REQUIRE_MESSAGE(member, key);
  return *member;
}

using Settings = std::vector<std::string>;  // of --set

Settings with(Settings arguments, const Settings& given) {
  for (const std::string& setting : given) arguments.insert(arguments.end(), {"--set", setting});
  return arguments;
}

JsonValue explained(const std::string& file, const Settings& given) {
  const Outcome run = run_program(with({"explain", file, "--json", "-"}, given), SCENARIOS_FOLDER);
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
  return parse_json(run.out, "explain");
}

/// Runs each change by its settings and compares to the last digit. Returns how many there are.
int check_promises(const std::string& file, std::size_t every, const Settings& given = {}) {
  const JsonValue answers = explained(file, given);
  const double before = at(answers, "step_time_s").number;
  int checked = 0;
  const auto& changes = at(answers, "changes").items;
  for (std::size_t i = 0; i < changes.size(); i += every) {
    Settings arguments = with({"simulate", file, "--json", "-"}, given);
    for (const JsonValue& setting : at(changes[i], "set").items) {
      arguments.insert(arguments.end(), {"--set", setting.text});
    }
    CAPTURE(arguments.back());
    const Outcome run = run_program(arguments, SCENARIOS_FOLDER);
    REQUIRE(run.exit_code == 0);
    const JsonValue result = parse_json(run.out, "simulate");
    const double after = at(result, "step_time_s").number;
    CHECK(after == at(changes[i], "step_time_s").number);
    CHECK(at(result, "fits_in_memory").boolean == at(changes[i], "fits_in_memory").boolean);
    if (at(changes[i], "work").number == 1) {
      CHECK(at(changes[i], "gain_s").number == before - after);
    }
    ++checked;
  }
  return checked;
}

TEST_CASE("promised gains equal separate runs of simulate with the printed settings") {
  CHECK(check_promises("examples/gpt2-xl-1f1b.json", is_soak() ? 1 : 3) > 8);
  CHECK(check_promises("examples/four-equal-stages.json", 1) > 8);
  const Settings fewer = {"cluster.nodes=16", "parallel.data=2", "training.global_batch_size=64"};
  CHECK(check_promises("examples/gpt3-175b-1024-a100.json", 9, fewer) > 4);
}

TEST_CASE("the text names the limit, what every change saves and what to type") {
  const Outcome run = run_program({"explain", "examples/four-equal-stages.json"}, SCENARIOS_FOLDER);
  CHECK(run.exit_code == 0);
  for (const char* words :
       {"Limited by", "Along the critical path", "One step better", "\n   saves        step\n",
        "--set training.strategy.kind=interlocking"}) {
    CAPTURE(words);
    CHECK(run.out.find(words) != std::string::npos);
  }
}

TEST_CASE("what cannot be explained is said or refused") {
  const Outcome sweep = run_program({"explain", "examples/four-equal-stages.json", "--set",
                                     R"(sweep={"training.steps": [2, 3]})"},
                                    SCENARIOS_FOLDER);
  CHECK(sweep.exit_code == 2);
  CHECK(sweep.out == "");
  CHECK(sweep.err.find("explain takes one scenario") != std::string::npos);
  const Outcome varied = run_program({"explain", "examples/four-equal-stages.json", "--set",
                                      "variation={\"jitter\": {\"spread\": 0.1}, \"seeds\": 2}"},
                                     SCENARIOS_FOLDER);
  CHECK(varied.exit_code == 0);
  CHECK(varied.out.find("No critical path: steps differ") != std::string::npos);
  const Outcome two = run_program({"explain", "a.json", "b.json"});
  CHECK(two.exit_code == 2);
}

}  // namespace
}  // namespace interlock::explain_command_test
