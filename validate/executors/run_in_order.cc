// A program's ops one after the other on the caller's thread.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/engines.h"
#include "validate/executors/executor.h"
#include "validate/executors/stopwatch.h"

namespace interlock {

std::vector<OpSample> run_in_order(const Program& program, const Workload& workload,
                                   const std::atomic<bool>* stop) {
  const Program fixed = chooses_order(program) ? freeze(program, EngineKind::Auto) : program;
  std::vector<OpSample> samples;
  for (const Issue& issue : issue_order(fixed)) {
    if (stop != nullptr && *stop) break;
    const auto [code, index, micro_batch] = issue.instruction;
    if (code == Opcode::Compute) {
      const Stopwatch watch;
      if (workload.compute) workload.compute(index, micro_batch);
      samples.push_back({index, micro_batch, watch.wall(), watch.cpu()});
    } else if (code == Opcode::Send && workload.send) {
      workload.send(index, micro_batch);
    } else if (code == Opcode::Receive && workload.receive) {
      workload.receive(index, micro_batch);
    }
  }
  return samples;
}

}  // namespace interlock
