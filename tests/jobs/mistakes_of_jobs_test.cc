// Mistakes in documents of several jobs: one clear sentence each, where it was written.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/jobs/jobs_question.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock::mistakes_of_jobs_test {
namespace {

const std::string kJob = R"({
  "model": "gpt2", "cluster": "dgx-a100-80g", "parallel": {"pipeline": 8},
  "training": {"strategy": "global", "global_batch_size": 32}})";

std::string two_jobs(const std::string& more = "", const std::string& first = "",
                     const std::string& second = "") {
  return R"({"cluster": {"machine": "dgx-a100-80g", "nodes": 2}, )" + more +
         "\n\"jobs\": [\n{\"name\": \"a\", \"scenario\": " + kJob + first +
         "},\n{\"name\": \"b\", \"scenario\": " + kJob + second + "}]}";
}

/// Returns the mistakes of a document, with `overrides`; "" if it is right.
std::string mistakes_in(const std::string& text, const std::vector<std::string>& overrides = {}) {
  JsonValue document = parse_json(text, "jobs.json");
  for (const std::string& override : overrides) {
    const std::size_t equals = override.find('=');
    set_json(document, override.substr(0, equals),
             parse_override(override.substr(equals + 1), "set"), "set");
  }
  try {
    load_jobs(document);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void check_says(const std::string& mistakes, const std::string& part) {
  INFO("got: " << mistakes << "\nexpected: " << part);
  CHECK(mistakes.find(part) != std::string::npos);
}

TEST_CASE("two jobs side by side are right") { CHECK(mistakes_in(two_jobs()) == ""); }

TEST_CASE("jobs that find no devices are told which lacks how many") {
  check_says(
      mistakes_in(two_jobs(), {"cluster.nodes=1"}),
      "jobs.json:6: /jobs/1: job \"b\" needs 8 devices, and 0 free ones can be had; expected "
      "a cluster of more devices, or a smaller job");
  check_says(mistakes_in(two_jobs("", R"(, "placement": "spread")"), {"cluster.nodes=1"}),
             "job \"a\" needs 8 devices");
  const std::string overlap =
      two_jobs("", R"(, "placement": {"devices": [0, 1, 2, 3, 4, 5, 6, 7]})",
               ",\n\"placement\": {\"devices\": [8, 9, 10, 11, 12, 13, 14, 7]}");
  check_says(mistakes_in(overlap),
             "jobs.json:9: /jobs/1/placement: device 7 belongs to job \"a\"; expected devices that "
             "no other job has");
  check_says(mistakes_in(two_jobs("", R"(, "placement": {"nodes": [1]})",
                                  R"(, "placement": {"nodes": [1]})")),
             "node 1 has 0 free devices of the 8 that job \"b\" needs there");
}

TEST_CASE("places that the cluster lacks, or that do not suit a job, are told") {
  const auto placed = [](const std::string& placement) {
    return mistakes_in(two_jobs("", ", \"placement\": " + placement));
  };
  check_says(placed(R"({"nodes": [2]})"), "there is no node 2; expected 0 to 1");
  check_says(placed(R"({"devices": [0, 1, 2, 3, 4, 5, 6, 16]})"),
             "there is no device 16; expected 0 to 15");
  check_says(placed(R"({"nodes": [1, 1]})"), "node 1 stands twice; expected it once");
  check_says(placed(R"({"devices": [0, 1]})"),
             "job \"a\" has 8 devices; expected as many numbers, got 2");
  check_says(placed("{}"), "says no place; expected \"nodes\" or \"devices\"");
  check_says(placed(R"({"nodes": [0], "devices": [0]})"),
             "given by \"nodes\" and by \"devices\"; expected one of the two");
  check_says(placed(R"({"racks": [0]})"), "unknown key");
  check_says(placed(R"("packd")"), "did you mean \"packed\"");
  check_says(placed(R"({"nodes": []})"), "wrong list of nodes");
  check_says(placed(R"({"nodes": [-1]})"), "/jobs/0/placement/nodes/0");
  check_says(
      mistakes_in(two_jobs(), {"cluster.nodes=3", "jobs.0.placement={\"nodes\": [0, 1, 2]}"}),
      "the 8 devices of job \"a\" cannot be divided evenly among 3 nodes");
}

TEST_CASE("a job of another machine is refused with both") {
  check_says(
      mistakes_in(two_jobs(), {"jobs.1.scenario.cluster=dgx-h100"}),
      "job \"b\" is made for \"dgx-h100\" (H100-SXM5-80GB, 8 a node); expected the machine of "
      "the shared cluster, \"dgx-a100-80g\" (A100-SXM4-80GB, 8 a node)");
}

TEST_CASE("mistakes inside of a job's scenario are told where they were written") {
  check_says(mistakes_in(two_jobs(), {"jobs.1.scenario.training.strategy=globl"}),
             "/training/strategy: unknown name \"globl\"");
  check_says(mistakes_in(two_jobs("", R"(, "set": {"training.micro_batchs": 8})")),
             "/training/micro_batchs: unknown key");
  check_says(mistakes_in(two_jobs("", R"(, "set": 3)")), "/jobs/0/set: wrong settings");
  check_says(mistakes_in(two_jobs(), {"jobs.0.scenario=not-there.json"}), "not-there.json");
}

TEST_CASE("what one job cannot have beside others is refused in a sentence") {
  const auto with = [](const std::string& override) { return mistakes_in(two_jobs(), {override}); };
  check_says(with(R"(jobs.0.scenario.sweep={"training.micro_batch_size": [1, 2]})"),
             "a job is one scenario; expected no \"sweep\"");
  check_says(with(R"(jobs.0.scenario.run={"steps": 1000})"),
             "expected no \"run\" and no \"swarm\"");
  check_says(with(R"(jobs.0.scenario.variation={"jitter": {"spread": 0.1}})"),
             "expected no \"variation\"");
  check_says(with("jobs.0.scenario.simulate.engine=simgrid"),
             "expected no \"simulate.engine\" in the scenario of a job");
  const std::vector<std::string> slower = {
      "jobs.0.scenario.cluster=null",
      R"(jobs.0.scenario.cluster={"machine": "dgx-a100-80g", "nodes": 1,
                                  "device": {"base": "a100-80g", "memory_bandwidth": "1 TB/s"}})"};
  check_says(mistakes_in(two_jobs(), slower),
             "job \"a\" has a machine with other memory bandwidth of devices than that of "
             "the shared cluster");
  check_says(with("jobs.1.name=a"), "two jobs have the name \"a\"");
  check_says(with("jobs.1.nam=a"), "/jobs/1/nam: unknown key");
  check_says(with("jobs=[]"), "wrong list of jobs; expected 1 to 64 objects with a \"scenario\"");
  check_says(with("jobs=3"), "wrong list of jobs");
  check_says(with("jobs.0=3"), "/jobs/0: expected an object");
}

TEST_CASE("beside jobs stand cluster, name, simulate and sweep only") {
  const auto with = [](const std::string& override) { return mistakes_in(two_jobs(), {override}); };
  check_says(with("model=gpt2"),
             "/model: each of the jobs says that itself; expected no \"model\"");
  check_says(with("parallel={}"), "/parallel: each of the jobs says that itself");
  check_says(with("simulate.fold=none"), "/simulate/fold: means nothing for several jobs");
  check_says(with("jbs=1"), "unknown key");
  check_says(with("cluster=null"), "missing key \"cluster\"");
  check_says(mistakes_in(two_jobs(), {"cluster=null", R"(cluster={"machines": ["dgx-a100-80g",
                                                      "dgx-h100"]})"}),
             "several jobs share a cluster of one machine");
  CHECK(with("simulate.engine=simgrid") == "");
}

TEST_CASE("a sweep over placements is a document for each") {
  const std::string swept =
      two_jobs(R"("sweep": {"jobs.0.placement, jobs.1.placement": ["packed", "spread"]}, )");
  const auto questions = load_jobs(parse_json(swept, "jobs.json"));
  REQUIRE(questions.size() == 2);
  CHECK(questions[0].name == "jobs | placement=packed");
  CHECK(questions[1].name == "jobs | placement=spread");
  CHECK(questions[1].jobs[1].layout.mesh.placed.front() == 8);
}

TEST_CASE("all else that loads scenarios refuses jobs in one sentence") {
  const auto refusal = [](const auto& load) -> std::string {
    try {
      load(parse_json(two_jobs(), "jobs.json"));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string expected =
      "jobs.json:2: /jobs: several jobs on one cluster are a question to interlock simulate; "
      "expected one scenario";
  CHECK(refusal([](const JsonValue& document) { load_questions(document); }) == expected);
  CHECK(refusal([](const JsonValue& document) { request_of(document); }) == expected);
  CHECK(refusal([](const JsonValue& document) {
          load_point(std::make_shared<const JsonValue>(document));
        }) == expected);
}

}  // namespace
}  // namespace interlock::mistakes_of_jobs_test
