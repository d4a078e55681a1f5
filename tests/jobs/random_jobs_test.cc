// Random pairs of scenarios on one cluster: every strategy, schedule, layout and ZeRO stage.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/random.h"
#include "scenarios/jobs/price_jobs.h"
#include "tests/properties/random_scenario.h"
#include "tests/sim/support/realised.h"
#include "tests/support/cases.h"

namespace interlock::random_jobs_test {
namespace {

using Json = nlohmann::ordered_json;

Json drawn_machine(Random& random) {
  const int per_node = 1 << random.integer(0, 2);
  return {{"kind", "machine"},
          {"name", "drawn"},
          {"device",
           {{"name", "small"},
            {"memory", "80 GiB"},
            {"memory_bandwidth", "400 GB/s"},
            {"launch_overhead", "2 us"},
            {"peak", {{"fp32", "10 TFLOP/s"}, {"bf16", "80 TFLOP/s"}}},
            {"efficiency", {{"gemm", {{"compute", 0.7}, {"memory", 0.8}}}}}}},
          {"devices_per_node", per_node},
          {"port", {{"latency", "2 us"}, {"bandwidth", "60 GB/s"}}},
          {"host", {{"bandwidth", "20 GB/s"}, {"latency", "5 us"}}},
          {"cards",
           {{"per_node", random.integer(0, 1) == 0 ? 1 : per_node},
            {"latency", "4 us"},
            {"bandwidth", random.integer(0, 1) == 0 ? "2 GB/s" : "10 GB/s"}}}};
}

Json with_size(Json machine, int devices) {
  const int per_node = machine["devices_per_node"].get<int>();
  machine["nodes"] = (devices + per_node - 1) / per_node;
  machine["devices"] = devices;
  return machine;
}

/// A random scenario on `machine`, and its number of devices; nothing where the loader refuses it.
struct DrawnJob {
  Json scenario;
  int devices = 1;
  double step = 0;  // seconds, alone
};
std::optional<DrawnJob> drawn_job(std::uint64_t seed, const Json& machine) {
  DrawnJob job{random_scenario(seed)};
  job.scenario.erase("variation");
  job.scenario.erase("simulate");
  job.scenario["training"]["steps"] = 3;
  const Json& parallel = job.scenario["parallel"];
  for (const char* key : {"pipeline", "data", "tensor", "context"}) {
    job.devices *= parallel.value(key, 1);
  }
  job.scenario["cluster"] = with_size(machine, job.devices);
  try {
    const auto questions = load_questions(parse_json(job.scenario.dump(), "job"));
    if (questions.front().layout.data_parallel.outer.any()) return std::nullopt;
    job.devices = questions.front().layout.mesh.devices();
    const ScenarioResult alone = run_scenario(questions.front(), false);
    job.step = alone.measurement.metrics.step_time.value();
  } catch (const Error&) {
    return std::nullopt;
  }
  return job;
}

struct DrawnPair {
  Json machine, document;
  std::vector<DrawnJob> jobs;
};

/// Two jobs on a machine of their own; nothing where one is refused.
std::optional<DrawnPair> drawn_pair(std::uint64_t seed, Random& random) {
  DrawnPair pair{.machine = drawn_machine(random), .document = {{"name", "pair"}}, .jobs = {}};
  for (int j = 0; j < 2; ++j) {
    const auto job = drawn_job(2 * seed + static_cast<std::uint64_t>(j), pair.machine);
    if (!job) return std::nullopt;
    pair.jobs.push_back(*job);
    pair.document["jobs"].push_back(
        {{"name", "job " + std::to_string(j)}, {"scenario", job->scenario}});
  }
  const auto [shorter, longer] = std::minmax(pair.jobs[0].step, pair.jobs[1].step);
  if (longer > 30 * shorter) return std::nullopt;  // thousands of steps of one
  return pair;
}

void place(Json& job, const std::vector<int>& devices) {
  job["placement"] = {{"devices", devices}};
}

std::vector<int> numbers(int first, int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// Returns nothing for jobs whose steps are too unlike in length.
std::optional<JobsResult> priced(const Json& document) {
  const auto question = load_jobs(parse_json(document.dump(), "jobs.json")).front();
  try {
    return price_jobs(question, true);
  } catch (const Error& error) {
    REQUIRE(std::string(error.what()).find("million tasks") != std::string::npos);
    return std::nullopt;
  }
}

/// Says what a job does otherwise beside others than alone; "" if nothing.
std::string difference_of(const PricedJob& job) {
  const auto run = [](const Measurement& measured) {
    return realised(
        measured.log,
        {.engine = "", .tasks = measured.metrics.tasks, .makespan = measured.metrics.makespan});
  };
  return difference(run(job.alone.measurement), run(job.together.measurement));
}

TEST_CASE("jobs on nodes of their own below one switch lose nothing, to the tick") {
  int held = 0, equal = 0;
  std::map<std::string, int> strategies;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(60)); ++seed) {
    Random random(775, seed);
    auto pair = drawn_pair(seed, random);
    if (!pair) continue;
    const int per_node = pair->machine["devices_per_node"].get<int>();
    const int first = pair->jobs[0].devices;
    const int second = (first + per_node - 1) / per_node * per_node;
    place(pair->document["jobs"][0], numbers(0, first));
    place(pair->document["jobs"][1], numbers(second, pair->jobs[1].devices));
    pair->document["cluster"] = with_size(pair->machine, second + pair->jobs[1].devices);
    INFO("seed " << seed << ": " << pair->document.dump());
    const auto found = priced(pair->document);
    if (!found) continue;
    const JobsResult& result = *found;
    for (const JobsLink& link : result.links) CHECK(link.jobs == 1);
    for (std::size_t j = 0; j < result.jobs.size(); ++j) {
      const PricedJob& job = result.jobs[j];
      if (chooses_order(job.alone.measurement.program)) {  // ties between its streams may differ
        CHECK(job.loss() == doctest::Approx(0).scale(1).epsilon(0.02));
      } else {
        CHECK(difference_of(job) == "");
        CHECK(job.loss() == 0);
      }
      // And alone it is what simulate says, if that settles.
      const ScenarioResult plain = run_scenario(
          load_questions(parse_json(pair->jobs[j].scenario.dump(), "job")).front(), false);
      const Metrics& metrics = plain.measurement.metrics;
      if (metrics.steady && result.steady && !chooses_order(plain.measurement.program)) {
        // Over the same steps as beside the other, which need not be whole cycles of it.
        const double own = job.alone.measurement.metrics.step_time.value();
        const double simulated = metrics.step_time.value();
        CHECK(own == doctest::Approx(simulated).epsilon(0.01));
        equal += own == doctest::Approx(simulated).epsilon(1e-6) ? 1 : 0;
        ++held;
      }
      ++strategies[name_of(plain.plan.question.training().strategy)];
    }
  }
  MESSAGE(held << " jobs have the step that simulate says; " << strategies.size() << " strategies");
  CHECK(equal * 10 >= held * 9);
  CHECK(held > met_by_cases(20));
  CHECK(strategies.size() > static_cast<std::size_t>(met_by_cases(6)));
}

TEST_CASE("random pairs on any devices of a network cost natively what they cost by SimGrid") {
  int shared = 0, lost = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(40)); ++seed) {
    Random random(776, seed);
    auto pair = drawn_pair(seed + 1000, random);
    if (!pair) continue;
    const int all = pair->jobs[0].devices + pair->jobs[1].devices + random.integer(0, 3);
    Json cluster = with_size(pair->machine, all);
    if (random.integer(0, 1) == 0) {
      cluster["nodes"] = (cluster["nodes"].get<int>() + 1) / 2 * 2;  // leaves are full
      cluster["network"] = {{"kind", "fat-tree"}, {"nodes_per_leaf", 2}, {"oversubscription", 2}};
    }
    std::vector<int> devices = numbers(0, all);
    for (int i = all - 1; i > 0; --i) {
      std::swap(devices[static_cast<std::size_t>(i)],
                devices[static_cast<std::size_t>(random.integer(0, i))]);
    }
    auto next = devices.begin();
    for (std::size_t j = 0; j < 2; ++j) {
      place(pair->document["jobs"][j], {next, next + pair->jobs[j].devices});
      next += pair->jobs[j].devices;
    }
    pair->document["cluster"] = cluster;
    INFO("seed " << seed << ": " << pair->document.dump());
    pair->document["simulate"] = {{"engine", "native"}};
    const auto natively = priced(pair->document);
    if (!natively) continue;
    pair->document["simulate"] = {{"engine", "simgrid"}};
    const auto by_simgrid = priced(pair->document);
    REQUIRE(by_simgrid.has_value());
    const JobsResult &native = *natively, &simgrid = *by_simgrid;
    for (std::size_t j = 0; j < 2; ++j) {
      const auto run = [&](const JobsResult& result) {
        const Measurement& measured = result.jobs[j].together.measurement;
        return realised(
            measured.log,
            {.engine = "", .tasks = measured.metrics.tasks, .makespan = measured.metrics.makespan});
      };
      CHECK(difference(run(native), run(simgrid)) == "");
      CHECK(native.jobs[j].loss() == simgrid.jobs[j].loss());
      lost += native.jobs[j].loss() > 1e-3 ? 1 : 0;
    }
    const bool meets = std::any_of(native.links.begin(), native.links.end(),
                                   [](const JobsLink& link) { return link.jobs > 1; });
    shared += meets ? 1 : 0;
  }
  MESSAGE(shared << " pairs share links, " << lost << " jobs lose by it");
  CHECK(shared > met_by_cases(5));
  CHECK(lost > met_by_cases(5));
}

}  // namespace
}  // namespace interlock::random_jobs_test
