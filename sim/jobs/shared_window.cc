// The window in which jobs run beside each other.
// SPDX-License-Identifier: Apache-2.0
#include "sim/jobs/shared_window.h"

#include <algorithm>
#include <cmath>

namespace interlock {

SharedWindow shared_window(const std::vector<JobSteps>& jobs) {
  SharedWindow window{.begin = Seconds(0), .end = Seconds(kInfinity), .steps = {}};
  for (const JobSteps& job : jobs) {
    const auto fill = static_cast<std::size_t>(job.fill);
    const auto last = job.ends.size() - 1 - static_cast<std::size_t>(job.dry);
    window.begin = std::max(window.begin, fill > 0 ? job.ends[fill - 1] : Seconds(0));
    window.end = std::min(window.end, job.ends[last]);
  }
  for (const JobSteps& job : jobs) {
    // A step begins when the one before it ends.
    const auto edges = std::lower_bound(job.ends.begin(), job.ends.end(), window.begin);
    const auto first = static_cast<int>(edges - job.ends.begin()) + 1;
    const auto after = std::upper_bound(job.ends.begin(), job.ends.end(), window.end);
    const auto end = static_cast<int>(after - job.ends.begin());
    const bool from_start = window.begin == Seconds(0);
    const int begin = from_start ? 0 : first;
    window.steps.push_back({.first_step = begin, .steps = std::max(0, end - begin)});
  }
  return window;
}

namespace {

/// Returns the time from the start of step `first` to the end of the one before step `end`.
Seconds time_of(const JobSteps& job, int first, int end) {
  const auto at = [&](int step) {
    return step < 0 ? Seconds(0) : job.ends[static_cast<std::size_t>(step)];
  };
  return at(end - 1) - at(first - 1);
}

}  // namespace

Seconds mean_step(const JobSteps& job, const StepWindow& window) {
  const int end = window.first_step + window.steps;
  return time_of(job, window.first_step, end) / window.steps;
}

double drift(const std::vector<JobSteps>& jobs, const SharedWindow& window) {
  double most = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const StepWindow& steps = window.steps[j];
    const int half = steps.steps / 2, end = steps.first_step + steps.steps;
    if (half == 0) continue;
    const Seconds early = time_of(jobs[j], steps.first_step, steps.first_step + half) / half;
    const Seconds late = time_of(jobs[j], end - half, end) / half;
    const Seconds mean = mean_step(jobs[j], steps);
    if (mean > Seconds(0)) most = std::max(most, std::abs((late - early) / mean));
  }
  return most;
}

}  // namespace interlock
