// Several jobs on the command line: answered by simulate and check, refused by the rest.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::jobs_command_test {
namespace {

/// Two jobs of two devices on one switch, each on nodes of its own unless `placement` says other.
std::string jobs(const std::string& placement = "\"packed\"") {
  const std::string cluster =
      R"({"kind": "machine", "device": "a100-80g", "devices_per_node": 1, "nodes": 4,
          "port": {"bandwidth": "100 GB/s"}, "cards": {"bandwidth": "1 GB/s"}})";
  std::string own = cluster;
  own.replace(own.find("4,"), 2, "2,");
  const std::string scenario = R"({"model": {"kind": "profile", "modules": [
      {"forward": "2 ms", "parameters": "3 MB"}]}, "cluster": )" +
                               own + R"(, "parallel": {"pipeline": 1, "data": 2},
      "training": {"strategy": "global", "micro_batches": 1, "steps": 2}})";
  return R"({"name": "two", "cluster": )" + cluster + R"(, "jobs": [
    {"name": "a", "scenario": )" +
         scenario + R"(},
    {"name": "b", "placement": )" +
         placement + R"(, "scenario": "own.json"}]})";
}

struct Jobs {
  Folder folder;
  explicit Jobs(const std::string& placement = "\"packed\"") {
    const std::string text = jobs(placement);
    folder.file("jobs.json", text);
    const std::size_t begin = text.find(R"("scenario": {)") + 12;
    folder.file("own.json", text.substr(begin, text.find("},\n    {\"name\": \"b\"") - begin));
  }
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin() + 1, "jobs.json");
    return run_program(words, folder.path());
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("simulate answers several jobs, one of them from a file: table, JSON, page, picture") {
  const Jobs two;
  const Outcome run =
      two.run({"simulate", "--json", "r.json", "--report", "r.html", "--svg", "r.svg"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(contains(run.out, "2 jobs on 4 devices of"));
  CHECK(contains(run.out, "nodes 2, 3"));
  const JsonValue json = read_json_file(two.folder.path("r.json"));
  CHECK(json.find("format")->text == "interlock-jobs/1");
  CHECK(json.find("jobs")->items.size() == 2);
  CHECK(contains(read_file(two.folder.path("r.html")), "b, beside the others"));
  CHECK(contains(read_file(two.folder.path("r.svg")), "a, alone"));
  const Outcome piped = run_program({"simulate", "-", "--json", "-"}, two.folder.path(), jobs());
  CHECK(piped.exit_code == 0);
  CHECK(contains(piped.out, "\"interlock-jobs/1\""));
  CHECK_FALSE(contains(piped.out, "2 jobs on"));
}

TEST_CASE("check reads several jobs, and the mistakes in the file of one") {
  const Jobs two;
  const Outcome right = two.run({"check"});
  CHECK(right.exit_code == 0);
  CHECK(right.out == "jobs.json: ok\n");
  const Jobs wrong(R"({"nodes": [0, 3]})");
  CHECK(wrong.run({"check"}).err.empty());  // a then has 1 and 2
  wrong.folder.file("own.json", "{\n\"modl\": 1}");
  const Outcome run = wrong.run({"check"});
  CHECK(run.exit_code == 2);
  CHECK(contains(run.err, "own.json:2: /modl: unknown key; did you mean \"model\"?"));
}

TEST_CASE("options and commands of one scenario refuse several jobs in a sentence") {
  const Jobs two;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"simulate", "--trace", "t.json"},
        {"simulate", "--memory-snapshot", "m.pickle"},
        {"simulate", "--kineto", "k"},
        {"simulate", "--ranges", "30"}}) {
    const Outcome run = two.run(words);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CAPTURE(run.err);
    CHECK(contains(run.err, words[1] + " is for one scenario, and there are several jobs; "));
  }
  const Outcome swept = two.run({"simulate", "--report", "r.html", "--set",
                                 "sweep={\"jobs.1.start\": {\"from\": \"1 ms\", \"to\": \"20 ms\","
                                 " \"step\": \"1 ms\"}}"});
  CHECK(swept.exit_code == 2);
  CHECK(contains(swept.err, "draws at most 48 runs, and there are 80"));
  for (const char* command : {"compare", "explain", "search", "schedule", "train"}) {
    const Outcome run = two.run({command});
    CAPTURE(command);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(contains(run.err,
                   "jobs.json:2: /jobs: several jobs on one cluster are a question to "
                   "interlock simulate; expected one scenario"));
  }
  CHECK(two.folder.files() == std::vector<std::string>{"jobs.json", "own.json"});
}

TEST_CASE("jobs that cannot be had in memory are told, and refused if they must fit") {
  const Jobs two;
  const std::string much = "jobs.0.scenario.model.modules.0.parameters=100 GB";
  const Outcome told = two.run({"simulate", "--set", much});
  CHECK(told.exit_code == 0);
  CHECK(contains(told.out, "a, alone: Does not fit"));
  const Outcome refused = two.run({"simulate", "--set", much, "--require-fit"});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "does not fit in memory"));
}

}  // namespace
}  // namespace interlock::jobs_command_test
