// Rings and pipelines on shared links against an independent simulation of fluid flows.
// SPDX-License-Identifier: Apache-2.0
#include "tests/jobs/support/fluid_jobs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/random.h"
#include "scenarios/jobs/jobs_question.h"
#include "scenarios/plan/lower_plan.h"
#include "sim/jobs/joined_program.h"
#include "sim/measure/steady.h"
#include "tests/support/cases.h"

namespace interlock::fluid_jobs_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBandwidth = 1e9;  // of a card

std::string text_of(double value, const char* unit) { return Json(value).dump() + " " + unit; }

/// A machine whose nodes have `per_node` devices behind one card; ports are never in the way.
Json machine(int per_node, std::size_t nodes) {
  return {{"kind", "machine"},
          {"name", "cards"},
          {"device", "a100-80g"},
          {"devices_per_node", per_node},
          {"nodes", nodes},
          {"port", {{"bandwidth", "1000 GB/s"}}},
          {"cards", {{"per_node", 1}, {"bandwidth", "1 GB/s"}}}};
}

/// The scenario that restates `job`. A ring of n sends 2 (n - 1) / n of the gradients over each of
/// its edges.
Json scenario_of(const FluidJob& job, int per_node) {
  const std::size_t devices = job.nodes.size();
  Json scenario = {{"cluster", machine(per_node, devices)}};
  scenario["cluster"]["devices"] = devices;
  const std::string compute = text_of(1e6 * job.compute, "us");
  const auto bytes = [](double count) { return std::to_string(std::llround(count)) + " B"; };
  if (job.ring) {
    const double n = static_cast<double>(devices);
    scenario["model"] = {
        {"kind", "profile"},
        {"modules",
         {{{"forward", compute}, {"parameters", bytes(job.bytes * n / (2 * (n - 1)))}}}}};
    scenario["parallel"] = {{"pipeline", 1}, {"data", devices}, {"overlap_gradients", false}};
    scenario["training"] = {{"strategy", "global"}, {"micro_batches", 1}};
    return scenario;
  }
  scenario["model"] = {
      {"kind", "profile"},
      {"modules", {{{"repeat", devices}, {"forward", compute}, {"output", bytes(job.bytes)}}}}};
  scenario["parallel"] = {{"pipeline", devices}};
  scenario["training"] = {{"strategy", "inference"},
                          {"micro_batches", job.micro_batches},
                          {"schedule", {{"queue", "unlimited"}}}};
  return scenario;
}

/// Returns the ends of steps by the joined program of `jobs`; device j of each node is of job j.
std::vector<std::vector<double>> simulated(const std::vector<FluidJob>& jobs, std::size_t nodes) {
  const int per_node = static_cast<int>(jobs.size());
  Json document = {{"cluster", machine(per_node, nodes)}, {"jobs", Json::array()}};
  for (int j = 0; j < per_node; ++j) {
    const FluidJob& job = jobs[static_cast<std::size_t>(j)];
    std::vector<int> devices;
    for (const int node : job.nodes) devices.push_back(node * per_node + j);
    document["jobs"].push_back({{"name", "job " + std::to_string(j)},
                                {"scenario", scenario_of(job, per_node)},
                                {"placement", {{"devices", devices}}}});
  }
  INFO(document.dump());
  std::vector<Program> programs;
  const auto question = load_jobs(parse_json(document.dump(), "jobs.json")).front();
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Plan plan = make_plan(question.jobs[j]);
    LowerInputs inputs = lower_inputs(plan);
    inputs.written_out = true;
    inputs.most_ticks_per_second = 1e12;
    programs.push_back(lower_plan(plan, inputs, jobs[j].steps));
  }
  const JoinedProgram joined = join(programs);
  std::vector<StepLog> logs(programs.begin(), programs.end());
  std::vector<TraceSink> sinks;
  for (StepLog& log : logs) sinks.push_back({.span = [&](const Span& span) { log.add(span); }});
  run_native(joined.program, parted(joined, sinks));
  std::vector<std::vector<double>> ends;
  for (const StepLog& log : logs) {
    ends.emplace_back();
    for (int step = 0; step < log.steps(); ++step) ends.back().push_back(log.end(step).value());
  }
  return ends;
}

/// Draws `count` different nodes in any order.
std::vector<int> drawn_nodes(Random& random, int nodes, int count) {
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  for (int i = 0; i < count; ++i) {
    std::swap(all[static_cast<std::size_t>(i)],
              all[static_cast<std::size_t>(random.integer(i, nodes - 1))]);
  }
  all.resize(static_cast<std::size_t>(count));
  return all;
}

FluidJob drawn_job(Random& random, int nodes) {
  FluidJob job{.ring = random.integer(0, 1) == 0};
  job.nodes = drawn_nodes(random, nodes, random.integer(2, nodes));
  job.compute = 1e-6 * random.integer(200, 5000);
  const auto n = static_cast<double>(job.nodes.size());
  job.bytes = std::round(1e6 * (0.2 + 4 * random.uniform()) / n) * n;  // whole parameters
  if (job.ring) job.bytes *= 2 * (n - 1) / n;
  job.micro_batches = random.integer(1, 4);
  job.steps = random.integer(3, 8);
  return job;
}

std::string described(const std::vector<FluidJob>& jobs) {
  Json text = Json::array();
  for (const FluidJob& job : jobs) {
    text.push_back({{"ring", job.ring},
                    {"nodes", job.nodes},
                    {"compute", job.compute},
                    {"bytes", job.bytes},
                    {"micro_batches", job.micro_batches},
                    {"steps", job.steps}});
  }
  return text.dump();
}

/// Compares every step. Returns whether some job is slower than alone.
bool compare(const std::vector<FluidJob>& jobs, std::size_t nodes) {
  const auto expected = ends_of_steps(jobs, kBandwidth);
  const auto got = simulated(jobs, nodes);
  INFO(described(jobs));
  REQUIRE(got.size() == expected.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    REQUIRE(got[j].size() == expected[j].size());
    for (std::size_t step = 0; step < got[j].size(); ++step) {
      INFO("job " << j << ", step " << step);
      CHECK(got[j][step] == doctest::Approx(expected[j][step]).epsilon(1e-7));
    }
  }
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const double alone = ends_of_steps({jobs[j]}, kBandwidth).front().back();
    if (expected[j].back() > 1.001 * alone) return true;
  }
  return false;
}

TEST_CASE("rings and pipelines that share cards end every step as fluid flows say") {
  int meet = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(120)); ++seed) {
    Random random(774, seed);
    const int nodes = random.integer(2, 6);
    std::vector<FluidJob> jobs;
    for (int j = random.integer(1, 3); j > 0; --j) jobs.push_back(drawn_job(random, nodes));
    INFO("seed " << seed);
    meet += compare(jobs, static_cast<std::size_t>(nodes)) ? 1 : 0;
  }
  CHECK(meet > met_by_cases(40));
}

}  // namespace
}  // namespace interlock::fluid_jobs_test
