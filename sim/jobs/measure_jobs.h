// measure_jobs: programs of several jobs to the metrics of each, alone and beside the others.
// SPDX-License-Identifier: Apache-2.0
//
// Every job begins at its start and repeats its step for as long as it takes until a common
// window (shared_window.h) holds as many steps of each as are to be measured. The window is doubled
// until its halves agree on the mean step of every job, or it is long enough. Then each job is run
// by itself, with the same steps in the same ticks: jobs that share no link
// lose nothing, to the tick.
#pragma once

#include <string>
#include <vector>

#include "sim/jobs/shared_window.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// A job: its programs by their number of steps, written out and of all its ranks (see
/// LowerInputs), and what is measured of them.
struct JobToRun {
  std::string name;  // in messages
  ProgramOfSteps programs;
  Seconds start;         // when it begins
  MeasureInputs inputs;  // `steps` at least in the window; engine and explain are not asked
};

struct MeasuredJob {
  Measurement alone, together;  // of the same steps
};

/// Load of the jobs on one link, over their steps in the window.
struct JobsLink {
  std::string name;
  std::vector<double> utilisation;  // by each job
  double total = 0;
  int jobs = 0;  // that use it
};

struct MeasuredJobs {
  SharedWindow window;
  double drift = 0;     // see drift()
  bool steady = false;  // drift is below kMostDrift
  std::vector<MeasuredJob> jobs;
  std::vector<JobsLink> links;  // that carry anything, the busiest first
};

/// The most that the halves of a steady window differ.
inline constexpr double kMostDrift = 0.005;

/// Runs and measures `jobs`. `keep_logs`: of the whole runs.
/// Throws: Error if a window takes too many tasks, or on deadlock.
MeasuredJobs measure_jobs(const std::vector<JobToRun>& jobs, EngineKind engine, bool keep_logs);

}  // namespace interlock
