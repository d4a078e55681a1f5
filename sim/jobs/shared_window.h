// Shared window: the time in which all jobs of a cluster run, and the steps of each in it.
// SPDX-License-Identifier: Apache-2.0
//
// Steps of jobs have lengths of their own, so none of them divides the other's. The window begins
// when the last job has filled its pipeline and ends when the first one would need a step that it
// does not run. A job's step time is the mean of its steps that lie in the window as a whole.
//
// Example: steps of job 0 end at 2, 4, ..., 20 s, those of job 1 at 5, 10, 15, 20 s; one step of
// each fills it, and one runs dry. The window is from 5 s to 15 s. Job 0 has the steps of 6 to 14 s
// in it, four of 2 s; job 1 those of 5 to 15 s, two of 5 s.
#pragma once

#include <vector>

#include "sim/measure/steady.h"

namespace interlock {

/// The steps that a job ran.
struct JobSteps {
  std::vector<Seconds> ends;  // of each
  int fill = 1;               // first steps that are not measured
  int dry = 1;                // last steps that lack what later ones would do meanwhile
};

struct SharedWindow {
  Seconds begin, end;
  std::vector<StepWindow> steps;  // of each job: those that lie in it as a whole
};

/// Returns the window; its end is before its begin if the runs are too short for one.
/// REQUIRES: each job ran more steps than fill it and run dry.
SharedWindow shared_window(const std::vector<JobSteps>& jobs);

/// Returns the mean length of the steps of a job in `window`. REQUIRES: it has some.
Seconds mean_step(const JobSteps& job, const StepWindow& window);

/// Returns how far the first and the second half of the window are apart in what they say of a
/// job's mean step, relative to it: the most of all jobs. 0 for jobs with one step.
double drift(const std::vector<JobSteps>& jobs, const SharedWindow& window);

}  // namespace interlock
