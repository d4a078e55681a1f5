// Jobs reports: what several jobs on one cluster lose to each other, told to people and programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "scenarios/jobs/price_jobs.h"

namespace interlock {

/// Returns a row for each job: where it lies, its step alone and beside the others, what it loses;
/// for one result, the shared window and the links that several jobs load, too.
/// REQUIRES: results is not empty.
std::string jobs_table(const std::vector<JobsResult>& results, const TableStyle& style);

/// Returns "interlock-jobs/1" (docs/result.md); an array of them for several results.
std::string jobs_json(const std::vector<JobsResult>& results);

/// Returns the runs of all jobs, alone and beside the others in turn, for pages and pictures.
std::vector<ScenarioResult> runs_of_jobs(const std::vector<JobsResult>& results);

}  // namespace interlock
