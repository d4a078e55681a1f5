// The window in which jobs are measured: its edges, and the steps of each job inside.
// SPDX-License-Identifier: Apache-2.0
#include "sim/jobs/shared_window.h"

#include <doctest/doctest.h>

#include "base/random.h"
#include "tests/support/cases.h"

namespace interlock::shared_window_test {
namespace {

JobSteps every(double seconds, int steps) {
  JobSteps job;
  for (int step = 1; step <= steps; ++step) job.ends.emplace_back(seconds * step);
  return job;
}

TEST_CASE("the window lies between the last job's fill and the first one to run dry") {
  // Takes the example of shared_window.h: [5, 15] of steps of 2 s and of 5 s.
  const std::vector<JobSteps> jobs = {every(2, 10), every(5, 4)};
  const SharedWindow window = shared_window(jobs);
  CHECK(window.begin == Seconds(5));
  CHECK(window.end == Seconds(15));
  CHECK(window.steps[0].first_step == 3);
  CHECK(window.steps[0].steps == 4);
  CHECK(window.steps[1].first_step == 1);
  CHECK(window.steps[1].steps == 2);
  CHECK(mean_step(jobs[0], window.steps[0]) == Seconds(2));
  CHECK(mean_step(jobs[1], window.steps[1]) == Seconds(5));
  CHECK(drift(jobs, window) == 0);
}

TEST_CASE("a job that slows down within the window drifts") {
  JobSteps slowing = every(1, 5);
  for (const double end : {7.0, 9.0, 11.0, 13.0, 15.0}) slowing.ends.emplace_back(end);
  // Steps 1 to 4 take 1 s, 5 to 8 take 2 s: of a mean of 1.5 s the halves are 1 s apart.
  const SharedWindow window = shared_window({slowing});
  CHECK(window.steps[0].first_step == 1);
  CHECK(window.steps[0].steps == 8);
  CHECK(drift({slowing}, window) == doctest::Approx(1 / 1.5));
}

TEST_CASE("all steps of a window lie in it, and no further one does") {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(300)); ++seed) {
    Random random(773, seed);
    std::vector<JobSteps> jobs;
    for (int j = random.integer(1, 4); j > 0; --j) {
      JobSteps job{.ends = {}, .fill = random.integer(1, 3), .dry = random.integer(1, 3)};
      double now = 0;
      const int steps = job.fill + job.dry + random.integer(1, 20);
      for (int step = 0; step < steps; ++step) {
        job.ends.emplace_back(now += random.integer(1, 9));
      }
      jobs.push_back(job);
    }
    const SharedWindow window = shared_window(jobs);
    INFO("seed " << seed);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const std::vector<Seconds>& ends = jobs[j].ends;
      int inside = 0;
      for (std::size_t step = 1; step < ends.size(); ++step) {
        const bool lies = ends[step - 1] >= window.begin && ends[step] <= window.end;
        const auto number = static_cast<int>(step) - window.steps[j].first_step;
        if (lies) CHECK((number >= 0 && number < window.steps[j].steps));
        inside += lies ? 1 : 0;
      }
      CHECK(inside == window.steps[j].steps);
      CHECK(window.begin >= ends[static_cast<std::size_t>(jobs[j].fill) - 1]);
      CHECK(window.end <= ends[ends.size() - 1 - static_cast<std::size_t>(jobs[j].dry)]);
    }
  }
}

}  // namespace
}  // namespace interlock::shared_window_test
