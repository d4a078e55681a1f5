// Who sends what, and when, so that the last of several jobs ends soonest.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two jobs, each of which keeps link 0 or link 1 busy for 2 ms. First come: both take link
// 0, and the last ends after 4 ms. Balanced: each has a link of its own, and both end after 2 ms.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware/networks/cluster.h"

namespace interlock {

/// One way to do a job: it keeps its links to itself for a while, and is done somewhat later.
struct JobOption {
  std::vector<LinkId> links;
  Seconds occupied;
  Seconds done;  // after the start, at least `occupied`
};

struct SenderJob {
  std::vector<JobOption> options;  // at least one
};

struct JobTimetable {
  std::vector<int> option;     // by job
  std::vector<Seconds> start;  // by job
  Seconds end;                 // the last job's
  bool exact = false;          // no timetable ends sooner
};

/// Returns the first option of each job, in order.
JobTimetable first_come(const std::vector<SenderJob>& jobs);
/// Returns the best found: greedy in several orders, then, if there are few jobs, all orders and
/// options.
JobTimetable balance(const std::vector<SenderJob>& jobs, std::uint64_t seed);

}  // namespace interlock
