// Jobs on one link, worked by hand.
// SPDX-License-Identifier: Apache-2.0
//
// Two nodes with one card of 1 GB/s each. A job has a device on each node: it computes for C, then
// reduces gradients of S bytes by a ring of two, which sends S over both cards in both directions,
// in T = S / (1 GB/s).
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/jobs/price_jobs.h"

namespace interlock::closed_forms_of_jobs_test {
namespace {

using Json = nlohmann::ordered_json;

struct DataParallel {
  double compute_ms = 1, transfer_ms = 1;
  int steps = 8;
  double start_ms = 0;
};

Json machine(int per_node) {
  return {{"kind", "machine"},
          {"name", "two cards"},
          {"device", "a100-80g"},
          {"devices_per_node", per_node},
          {"nodes", 2},
          {"port", {{"bandwidth", "1000 GB/s"}}},
          {"cards", {{"per_node", 1}, {"bandwidth", "1 GB/s"}}}};
}

Json document_of(const std::vector<DataParallel>& jobs) {
  const int each = static_cast<int>(jobs.size());
  Json document = {{"cluster", machine(each)}, {"jobs", Json::array()}};
  for (const DataParallel& job : jobs) {
    Json scenario = {
        {"cluster", machine(each)},
        {"model",
         {{"kind", "profile"},
          {"modules",
           {{{"forward", std::to_string(job.compute_ms) + " ms"},
             {"parameters", std::to_string(job.transfer_ms) + " MB"}}}}}},
        {"parallel", {{"pipeline", 1}, {"data", 2}, {"overlap_gradients", false}}},
        {"training", {{"strategy", "global"}, {"micro_batches", 1}, {"steps", job.steps}}}};
    scenario["cluster"]["devices"] = 2;
    scenario["cluster"]["nodes"] = each == 1 ? 2 : 1;
    document["jobs"].push_back({{"name", "job " + std::to_string(document["jobs"].size())},
                                {"scenario", scenario},
                                {"placement", {{"nodes", {0, 1}}}},
                                {"start", std::to_string(job.start_ms) + " ms"}});
  }
  return document;
}

JobsResult priced(const std::vector<DataParallel>& jobs) {
  return price_jobs(load_jobs(parse_json(document_of(jobs).dump(), "jobs.json")).front(), false);
}

double step_ms(const ScenarioResult& result) {
  return 1e3 * result.measurement.metrics.step_time.value();
}

TEST_CASE("k equal jobs on one card take C + k T a step, each alone C + T") {
  for (int k = 1; k <= 4; ++k) {
    for (const double transfer : {0.5, 3.0, 8.0}) {
      const double compute = 2;
      const JobsResult result =
          priced(std::vector<DataParallel>(static_cast<std::size_t>(k), {compute, transfer}));
      INFO(k << " jobs, C " << compute << " ms, T " << transfer << " ms");
      CHECK(result.steady);
      for (const PricedJob& job : result.jobs) {
        CHECK(step_ms(job.alone) == doctest::Approx(compute + transfer).epsilon(1e-9));
        CHECK(step_ms(job.together) == doctest::Approx(compute + k * transfer).epsilon(1e-9));
        CHECK(job.loss() ==
              doctest::Approx(1 - (compute + transfer) / (compute + k * transfer)).epsilon(1e-9));
      }
      REQUIRE_FALSE(result.links.empty());
      CHECK(result.links.front().jobs == k);
      CHECK(result.links.front().total ==
            doctest::Approx(k * transfer / (compute + k * transfer)).epsilon(1e-6));
    }
  }
}

// Job 0 always sends, so that job 1 has half of the card: its step is C + 2 T. In that time job 0
// has the whole card for C and half of it for 2 T, C + T of it in all, so that one of its own steps
// takes (C + 2 T) / (C + T) times as long as alone.
TEST_CASE("a job that always sends takes half of the other's link, and loses what it takes") {
  const DataParallel sender = {0, 0.1, 8}, other = {4, 3, 40};
  const JobsResult result = priced({sender, other});
  CHECK(result.steady);
  CHECK(step_ms(result.jobs[1].together) == doctest::Approx(4 + 2 * 3).epsilon(1e-6));
  CHECK(step_ms(result.jobs[0].alone) == doctest::Approx(0.1).epsilon(1e-6));
  CHECK(step_ms(result.jobs[0].together) == doctest::Approx(0.1 * 10 / 7).epsilon(2e-3));
  // The window holds the steps of the slower job, and as many of the quick one as lie in it.
  const int slow = result.jobs[1].together.measurement.metrics.measured_steps;
  const int quick = result.jobs[0].together.measurement.metrics.measured_steps;
  CHECK(slow >= 40);
  CHECK(quick == doctest::Approx(slow * 70.0).epsilon(0.05));
  CHECK((result.end - result.begin).value() * 1e3 == doctest::Approx(10.0 * slow).epsilon(0.1));
}

// The later one finds s of the other's transfer done. Both then have half of the card until that
// has ended, after s + 2 (T - s); the later one then sends its last s alone. Each takes C + 2 T - s
// from the start of its step, and stays s behind: until s = T, from where on they never meet.
TEST_CASE("equal jobs that begin s apart take C + 2 T - s, and C + T where they never meet") {
  const double compute = 5, transfer = 3;
  for (const double start : {0.0, 0.5, 1.75, 3.0, 4.0}) {
    const JobsResult result = priced({{compute, transfer}, {compute, transfer, 8, start}});
    INFO("start " << start << " ms");
    CHECK(result.steady);
    for (const PricedJob& job : result.jobs) {
      CHECK(step_ms(job.alone) == doctest::Approx(compute + transfer).epsilon(1e-9));
      CHECK(step_ms(job.together) ==
            doctest::Approx(compute + transfer + std::max(0.0, transfer - start)).epsilon(1e-9));
    }
  }
}

TEST_CASE("a job alone in a document of jobs has the step that simulate gives it") {
  const DataParallel job = {2, 3};
  Json scenario = document_of({job})["jobs"][0]["scenario"];
  const Question question = load_questions(parse_json(scenario.dump(), "job.json")).front();
  const double plain = step_ms(run_scenario(question, false));
  CHECK(plain == doctest::Approx(5).epsilon(1e-9));
  CHECK(step_ms(priced({job}).jobs.front().together) == doctest::Approx(plain).epsilon(1e-9));
}

}  // namespace
}  // namespace interlock::closed_forms_of_jobs_test
