// Jobs whose ranks divide their stages each in its own way: a message is many flows at once.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "scenarios/jobs/price_jobs.h"
#include "tests/sim/support/realised.h"

namespace interlock::stage_layouts_of_jobs_test {
namespace {

using Json = nlohmann::ordered_json;

Json machine(int per_node, int nodes, const char* card) {
  return {{"kind", "machine"},
          {"name", "flops alone"},
          {"device",
           {{"name", "100 TFLOP/s"},
            {"memory", "80 GB"},
            {"memory_bandwidth", "1000000 TB/s"},
            {"peak", {{"bf16", "100 TFLOP/s"}}},
            {"efficiency", "peak"}}},
          {"devices_per_node", per_node},
          {"nodes", nodes},
          {"port", {{"bandwidth", "300 GB/s"}}},
          {"cards", {{"per_node", 1}, {"latency", "0 us"}, {"bandwidth", card}}}};
}

Json scenario_of(const Json& layouts, const Json& cluster) {
  return {{"model",
           {{"kind", "mlp"},
            {"input_size", 4096},
            {"layers", 7},
            {"hidden_size", 4096},
            {"classes", 4096}}},
          {"cluster", cluster},
          {"parallel", {{"stage_layouts", layouts}}},
          {"partition", "uniform"},
          {"training",
           {{"strategy", "global"},
            {"global_batch_size", 16384},
            {"micro_batch_size", 2048},
            {"steps", 2}}}};
}

/// Two equal jobs on `cluster`.
JobsResult priced(const Json& scenario, const Json& cluster, const std::vector<Json>& placements,
                  const char* engine = "native") {
  Json document = {{"cluster", cluster}, {"simulate", {{"engine", engine}}}};
  for (const Json& placement : placements) {
    document["jobs"].push_back({{"name", "job " + std::to_string(document["jobs"].size())},
                                {"scenario", scenario},
                                {"placement", placement}});
  }
  return price_jobs(load_jobs(parse_json(document.dump(), "jobs.json")).front(), true);
}

Realised run(const Measurement& measured) {
  return realised(
      measured.log,
      {.engine = "", .tasks = measured.metrics.tasks, .makespan = measured.metrics.makespan});
}

const Json kInTurns = Json::array({{{"tensor", 4}}, {{"data", 4}}, {{"tensor", 4}}, {{"data", 4}}});

TEST_CASE("on nodes of their own such jobs lose nothing, to the tick") {
  const Json scenario = scenario_of(kInTurns, machine(4, 4, "12.5 GB/s"));
  const JobsResult result = priced(scenario, machine(4, 8, "12.5 GB/s"), {"packed", "packed"});
  for (const PricedJob& job : result.jobs) {
    CHECK(difference(run(job.alone.measurement), run(job.together.measurement)) == "");
    CHECK(job.loss() == 0);
  }
}

TEST_CASE("on shared cards such jobs lose the same natively and by SimGrid") {
  const Json scenario = scenario_of(kInTurns, machine(4, 4, "12.5 GB/s"));
  const Json shared = {{"nodes", {0, 1, 2, 3, 4, 5, 6, 7}}};
  const auto by = [&](const char* engine) {
    return priced(scenario, machine(4, 8, "12.5 GB/s"), {shared, shared}, engine);
  };
  const JobsResult native = by("native"), simgrid = by("simgrid");
  for (std::size_t j = 0; j < 2; ++j) {
    CHECK(difference(run(native.jobs[j].together.measurement),
                     run(simgrid.jobs[j].together.measurement)) == "");
    CHECK(native.jobs[j].loss() > 0.01);
  }
}

// Exchanges inside of kernels whose links carry nothing else are not written out for one job: they
// are known beforehand. Beside another job they are not.
TEST_CASE("what tensor devices exchange takes twice as long on links of two jobs") {
  const auto step = [](const char* card, const std::vector<Json>& placements) {
    const Json scenario = scenario_of(Json::array({{{"tensor", 2}}}), machine(2, 1, card));
    const JobsResult result = priced(scenario, machine(2, 2, card), placements);
    return result.jobs.front().together.measurement.metrics.step_time.value();
  };
  const Json across = {{"nodes", {0, 1}}};
  const double kernels = step("1000000000 GB/s", {across}), alone = step("12.5 GB/s", {across});
  CHECK(alone > 1.1 * kernels);
  const double expected = kernels + 2 * (alone - kernels);
  CHECK(step("12.5 GB/s", {across, across}) == doctest::Approx(expected).epsilon(1e-6));
}

}  // namespace
}  // namespace interlock::stage_layouts_of_jobs_test
