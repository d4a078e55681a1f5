// Plans of jobs, and the programs that are joined.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/jobs/price_jobs.h"

#include <utility>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"

namespace interlock {
namespace {

JobToRun job_of(const Plan& plan, Seconds start) {
  LowerInputs inputs = lower_inputs(plan);
  inputs.written_out = true;
  return {.name = plan.question.name,
          .programs = programs_of(plan, std::move(inputs)),
          .start = start,
          .inputs = measure_inputs(plan)};
}

ScenarioResult result_of(Plan plan, const std::string& words, Measurement measurement) {
  plan.question.name += words;
  plan.question.document.reset();  // it says nothing of the others, nor of where the job lies
  add_memory(plan, measurement.metrics);
  return {.plan = std::move(plan), .measurement = std::move(measurement)};
}

}  // namespace

JobsResult price_jobs(const JobsQuestion& question, bool keep_logs) {
  std::vector<Plan> plans;
  std::vector<JobToRun> jobs;
  for (std::size_t j = 0; j < question.jobs.size(); ++j) {
    plans.push_back(make_plan(question.jobs[j]));
    jobs.push_back(job_of(plans.back(), question.starts[j]));
  }
  MeasuredJobs measured;
  try {
    measured = measure_jobs(jobs, question.engine, keep_logs);
  } catch (const Error& error) {
    throw Error(question.file + ": " + question.name + ": " + error.what());
  }
  JobsResult result{.question = question,
                    .jobs = {},
                    .begin = measured.window.begin,
                    .end = measured.window.end,
                    .drift = measured.drift,
                    .steady = measured.steady,
                    .links = std::move(measured.links)};
  for (std::size_t j = 0; j < plans.size(); ++j) {
    ScenarioResult alone = result_of(plans[j], ", alone", std::move(measured.jobs[j].alone));
    result.jobs.push_back({std::move(alone), result_of(std::move(plans[j]), ", beside the others",
                                                       std::move(measured.jobs[j].together))});
  }
  return result;
}

}  // namespace interlock
