// Opens the module that knows MPI, where mpirun started us.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sweep/rank_pool.h"

#include <cstdlib>

#include "base/error.h"
#include "base/module_file.h"
#include "scenarios/sweep/told_failure.h"

namespace interlock {
namespace {

/// Returns how many processes were started together: Open MPI's word for it, then MPICH's.
int started_together() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* size = std::getenv(name)) return std::atoi(size);
  }
  return 1;
}

}  // namespace

std::unique_ptr<RankPool> RankPool::open() {
  if (started_together() < 2) return nullptr;
  // Open MPI's own modules look for its symbols.
  const ModuleEntry entry = open_module("libinterlock_mpi.so", "interlock_open_mpi", true);
  if (entry.address == nullptr) {
    throw Error("started by mpirun, but without MPI: " + entry.problem +
                "; expected a build with it (Debian: libopenmpi-dev), or --shard I/N for each "
                "process and interlock merge");
  }
  const auto open_mpi = reinterpret_cast<const MpiCalls* (*)()>(entry.address);
  return std::unique_ptr<RankPool>(new RankPool(*open_mpi()));
}

void RankPool::serve(const std::function<std::string(std::size_t)>& work) {
  calls_->serve([&](std::size_t job) {
    try {
      return work(job);
    } catch (const std::exception& failure) {
      throw Error(told_failure(failure).words);
    }
  });
}

}  // namespace interlock
