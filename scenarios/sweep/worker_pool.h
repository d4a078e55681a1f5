// Jobs run by forked processes, on all processors: who dies takes one job along.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace interlock {

/// The result of a job.
struct JobResult {
  std::size_t job = 0;
  std::string bytes;    // that `work` returned
  std::string problem;  // what it threw, or how its process died; empty: all is well
};

/// The jobs of a pool.
struct Jobs {
  std::function<std::optional<std::size_t>()> next;  // asked here; nothing: there are no more
  std::function<std::string(std::size_t)> work;      // called in a forked process
  std::function<void(const JobResult&)> done;        // told here, in the order of their ends
  std::function<bool()> stop;                        // asked here now and then; may be empty
};

/// Runs `jobs` in `processes` processes, each of which sees what was there when it was forked. One
/// gets its next job when `done` has returned for its last: what `done` has kept is never done
/// again. Once `stop` says so, what still runs is given up. A signal to this process wakes it.
/// Returns whether all was done. Throws: Error if no process can be started; what `done` throws.
/// REQUIRES: processes >= 1.
bool run_jobs(const Jobs& jobs, int processes);

/// Processors that this process may use, at least one.
int usable_processors();

}  // namespace interlock
