// The library's answers against those of the program, which is another process and another build.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <interlock/interlock.h>
#include <interlock/interlock_c.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/child_program.h"

namespace interlock::answers_of_library_test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns `json` without the one number that differs between runs.
std::string without_wall_time(const std::string& json) {
  std::istringstream lines(json);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"wall_time_s\"") == std::string::npos) rest += line + "\n";
  }
  return rest;
}

std::string said_by_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-", "--quiet"});
  const Outcome outcome = run_program(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome.out;
}

TEST_CASE("simulate answers what the program answers, to the last digit") {
  // The second shares links, which the program would leave to SimGrid.
  for (const char* name : {"examples/gpt2-xl-1f1b", "examples/in-flight", "examples/zero-bubble",
                           "examples/own-model", "examples/failures", "quickstart/local"}) {
    const std::string file = std::string(SCENARIOS_FOLDER) + "/" + name + ".json";
    INFO(file);
    Options options;
    options.file = file;
    options.set = {"sweep=null", "simulate.engine=native"};
    const Result result = simulate(text_of(file), options);
    const std::string said = said_by_program(
        {"simulate", file, "--set", "sweep=null", "--set", "simulate.engine=native"});
    CHECK(without_wall_time(result.json()) == without_wall_time(said));
  }
}

TEST_CASE("shipped scenarios that share links have the program's results by SimGrid, to the byte") {
  int by_simgrid = 0;
  std::vector<std::string> files;
  for (const char* folder : {"examples", "papers", "quickstart", "validation"}) {
    const std::string path = std::string(SCENARIOS_FOLDER) + "/" + folder;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      // One lays its devices out by its sweep alone.
      const bool whole = entry.path().stem() != "price-of-tokens";
      if (whole && entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
  }
  for (const std::string& file : files) {
    INFO(file);
    const std::string said =
        said_by_program({"simulate", file, "--set", "sweep=null", "--set", "simulate.engine=auto"});
    if (said.find("\"engine\": \"simgrid\"") == std::string::npos) continue;
    ++by_simgrid;
    Options options;
    options.file = file;
    options.set = {"sweep=null"};
    options.engine = "auto";
    const Result result = simulate(text_of(file), options);
    CHECK(without_wall_time(result.json()) == without_wall_time(said));
  }
  CHECK(by_simgrid >= 30);
}

TEST_CASE("in C, a sweep by SimGrid has the program's results, laid out in another way") {
  const std::string file = std::string(SCENARIOS_FOLDER) + "/examples/asynchronous.json";
  const std::string options = R"({"file": ")" + file + R"(", "engine": "simgrid"})";
  char* answer = nullptr;
  REQUIRE(interlock_simulate(text_of(file).c_str(), options.c_str(), &answer) == INTERLOCK_OK);
  const auto plain = [](const std::string& json) {
    std::string text = without_wall_time(json);
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return std::isspace(c); }),
               text.end());
    return text;
  };
  const std::string told = plain(answer);
  interlock_free(answer);
  const std::string said =
      plain(said_by_program({"simulate", file, "--set", "simulate.engine=simgrid"}));
  CHECK(told.size() == said.size());
  CHECK((told == said));  // a thousand lines are not shown
}

TEST_CASE("every scenario of a sweep is simulated, and its row has the numbers of its result") {
  const std::string text = R"({
    "model": {"kind": "profile", "modules": [{"repeat": 8, "forward": "1 ms",
      "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MB"}]},
    "cluster": {"kind": "uniform", "devices": 8, "memory": "1 GB",
                "link": {"bandwidth": "1 GB/s"}},
    "training": {"strategy": "global", "micro_batches": 8},
    "sweep": {"parallel.pipeline": [1, 2, 3, 9], "training.schedule": ["gpipe", "1f1b"]}})";
  Options options;
  options.set = {"sweep={\"parallel.pipeline\": [1, 2, 3]}"};
  const std::vector<Result> results = simulate_all(text, options);
  REQUIRE(results.size() == 6);
  const SweepResult swept = sweep(text);
  CHECK(swept.paths == std::vector<std::string>{"parallel.pipeline", "training.schedule"});
  REQUIRE(swept.rows.size() == 8);
  for (std::size_t i = 0; i < 6; ++i) {
    const SweepRow& row = swept.rows[i];
    CHECK(row.error.empty());
    CHECK(row.values[0] == std::to_string(i / 2 + 1));
    CHECK(row.values[1] == (i % 2 == 0 ? "\"gpipe\"" : "\"1f1b\""));
    REQUIRE(row.metrics.size() == metrics().size());
    for (std::size_t k = 0; k < metrics().size(); ++k) {
      if (metrics()[k].key == "wall_time_s") continue;
      INFO(metrics()[k].key);
      CHECK(row.metrics[k] == results[i].metric(metrics()[k].key));
      CHECK(row.metric(metrics()[k].key) == row.metrics[k]);
    }
  }
  // Nine ranks on eight devices.
  CHECK(swept.rows[6].error.find("more ranks than devices") != std::string::npos);
  CHECK(swept.rows[7].metrics.empty());
  CHECK_FALSE(swept.rows[7].metric("step_time_s").has_value());
}

TEST_CASE("a text with a sweep is no single scenario") {
  const std::string text = R"({"model": "gpt2-xl", "cluster": "dgx-a100-80g",
                               "training": {"strategy": "global"},
                               "sweep": {"training.global_batch_size": [1, 2, 4]}})";
  CHECK(check(text) == 3);
  CHECK_THROWS_WITH_AS(simulate(text), doctest::Contains("makes 3 scenarios"), Error);
}

TEST_CASE("search, explain and plan answer what the program answers") {
  const std::string file = std::string(SCENARIOS_FOLDER) + "/examples/gpt2-xl-1f1b.json";
  Options options;
  options.file = file;
  options.threads = 2;
  const SearchResult found = search(text_of(file), options);
  CHECK(found.json == said_by_program({"search", file}));
  REQUIRE(!found.plans.empty());
  Options alone;
  alone.timeline = false;
  // A plan takes what its scenario gives.
  CHECK(simulate(found.plans.front().scenario, alone).step_time_s() ==
        doctest::Approx(found.plans.front().step_time_s).epsilon(1e-9));

  const Explanation why = explain(text_of(file), options);
  CHECK(why.json == said_by_program({"explain", file}));
  REQUIRE(!why.changes.empty());
  const Change& best = why.changes.front();
  alone.file = file;
  alone.set = best.set;
  CHECK(simulate(text_of(file), alone).step_time_s() ==
        doctest::Approx(best.step_time_s).epsilon(1e-9));

  PlanQuestion question;
  question.model = "gpt2-xl";
  question.machines = {"dgx-a100-80g"};
  question.devices = {8, 16};
  question.tokens = 1e9;
  const PlanResult sizes = plan(question);
  CHECK(sizes.json == said_by_program({"plan", "--model", "gpt2-xl", "--machines", "dgx-a100-80g",
                                       "--devices", "8,16", "--tokens", "1e9"}));
  REQUIRE(sizes.rows.size() == 2);
  CHECK(sizes.rows[1].devices == 16);
}

}  // namespace
}  // namespace interlock::answers_of_library_test
