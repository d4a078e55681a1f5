// price_jobs: a JobsQuestion answered: each job alone and beside the others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "scenarios/jobs/jobs_question.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/jobs/measure_jobs.h"

namespace interlock {

/// A job as it is alone on its devices, and beside the others: of the same steps.
struct PricedJob {
  ScenarioResult alone, together;
  /// Returns the share of the steps done alone in a time that are not done beside the others.
  double loss() const {
    const Seconds longer = together.measurement.metrics.step_time;
    return longer > Seconds(0) ? 1 - alone.measurement.metrics.step_time / longer : 0;
  }
};

struct JobsResult {
  JobsQuestion question;
  std::vector<PricedJob> jobs;
  Seconds begin, end;  // of the shared window
  double drift = 0;    // see sim/jobs/shared_window.h
  bool steady = false;
  std::vector<JobsLink> links;  // that carry anything, the busiest first
};

/// Plans the jobs of `question`, each by itself, and simulates them. `keep_logs`: for pictures.
/// Throws: Error, which names the file, if a job cannot be planned or a run does not end.
JobsResult price_jobs(const JobsQuestion& question, bool keep_logs);

}  // namespace interlock
