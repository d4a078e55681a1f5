// RankPool: the processes that mpirun started; the first hands out jobs, the others do them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "scenarios/sweep/worker_pool.h"

namespace interlock {

/// The functions of the module that is built with MPI, which is opened at run time.
struct MpiCalls {
  int (*rank)();
  bool (*run)(const Jobs&);
  void (*serve)(const std::function<std::string(std::size_t)>&);
  void (*close)();
};

class RankPool {
 public:
  /// Returns the ranks of this run; null if this process was not started by mpirun, or alone.
  /// Throws: Error if it was, and interlock was built without MPI.
  static std::unique_ptr<RankPool> open();
  /// Sends the others home.
  ~RankPool() { calls_->close(); }
  RankPool(const RankPool&) = delete;
  RankPool& operator=(const RankPool&) = delete;

  int rank() const { return calls_->rank(); }
  /// Hands `jobs` to the other ranks, as run_jobs does to processes. REQUIRES: rank 0.
  bool run(const Jobs& jobs) { return calls_->run(jobs); }
  /// Does what rank 0 says until it says that all is done. What `work` throws is told there, as
  /// told_failure() has it. REQUIRES: another rank.
  void serve(const std::function<std::string(std::size_t)>& work);

 private:
  explicit RankPool(const MpiCalls& calls) : calls_(&calls) {}
  const MpiCalls* calls_;
};

}  // namespace interlock
