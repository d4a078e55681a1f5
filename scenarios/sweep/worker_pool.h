// Jobs run on all processors: by forked processes, or by threads in a host that is not forked.
// SPDX-License-Identifier: Apache-2.0
//
// A process that dies takes one job along.
//
// Example: five jobs and two workers. Each takes a job; who is done first takes the third; `done`
// hears of all five, perhaps of job 1 before job 0.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "sim/processes/unavailable.h"

namespace interlock {

/// The result of a job.
struct JobResult {
  std::size_t job = 0;
  std::string bytes;    // that `work` returned
  std::string problem;  // told_failure() of what it threw, or how its process died; empty: none
  /// Memory, threads or an engine were lacking, or the process died: no problem of the job's own.
  bool unanswered = false;
};

/// Throws: Unavailable if `result` is unanswered, for what is decided among all jobs together.
inline void refuse_unanswered(const JobResult& result) {
  if (result.unanswered) throw Unavailable(result.problem);
}

/// The workers of a pool.
struct Workers {
  int count = 1;
  bool threads = false;  // of this process; else processes of their own
  /// Called here while threads work, ten times a second or more often, if not empty. What it
  /// throws ends the run.
  std::function<void()> meanwhile;

  Workers(int processes) : count(processes) {}  // NOLINT(google-explicit-constructor)
  static Workers of_threads(int count) {
    Workers workers(count);
    workers.threads = true;
    return workers;
  }
};

/// The jobs of a pool.
struct Jobs {
  std::function<std::optional<std::size_t>()> next;  // asked here; nothing: there are no more
  std::function<std::string(std::size_t)> work;      // called by a worker
  std::function<void(const JobResult&)> done;        // told here, in the order of their ends
  std::function<bool()> stop;                        // asked here now and then; may be empty
};

/// Runs `jobs` by `workers`. Processes see what was there when they were forked. A worker gets its
/// next job when `done` has returned for its last: what `done` has kept is never done again. Once
/// `stop` says so, what processes still run is given up; threads end it, and it is not told.
/// Returns whether all was done. Throws: Unavailable if no worker can be started; what `done`
/// throws. REQUIRES: workers.count >= 1.
bool run_jobs(const Jobs& jobs, const Workers& workers);

/// Answers an order. What it keeps between orders is its worker's own.
using OrderAnswerer = std::function<std::string(const std::string& order)>;

/// Some orders of a pool.
struct Orders {
  std::size_t count = 0;
  std::function<std::string(std::size_t)> order;  // called here: the bytes that a worker is given
  std::function<void(const JobResult&)> done;     // told here, in the order of their ends
};

/// Workers that live until the pool ends, and so learn from one order for the next.
class WorkerPool {
 public:
  /// `hire` makes the answerer of a worker; it is called by the worker, for its first order.
  /// Processes see what was there when the first order was given.
  WorkerPool(std::function<OrderAnswerer()> hire, const Workers& workers);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Has all `orders` answered. Throws as run_jobs().
  void answer(const Orders& orders) { answer_(orders); }

 private:
  std::function<void(const Orders&)> answer_;  // keeps the workers
};

/// Processors that this process may use, at least one.
int usable_processors();

}  // namespace interlock
