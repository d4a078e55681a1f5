// Says why a program cannot be run for real, and runs ops one by one on the caller's thread.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "sim/engines/engines.h"
#include "sim/program/issue_order.h"
#include "validate/executors/executor.h"
#include "validate/executors/stopwatch.h"

namespace interlock {

std::string why_not_executable(const Program& program) {
  const bool inside = std::any_of(program.ops.begin(), program.ops.end(),
                                  [](const OpInfo& op) { return !op.inside.empty(); });
  const bool others = std::any_of(
      program.collectives.begin(), program.collectives.end(), [](const Collective& collective) {
        const bool whole =
            collective.kind == CollectiveKind::AllReduce && collective.axis == MeshAxis::Data;
        const bool divided = (collective.kind == CollectiveKind::ReduceScatter ||
                              collective.kind == CollectiveKind::AllGather) &&
                             collective.axis == MeshAxis::Shard;
        return !whole && !divided;
      });
  const bool shared =
      !program.collectives.empty() && program.replicas == 1;  // by a stage's devices
  if (inside || others || shared) {
    return "it has collectives which only engines run; expected \"pipeline\", \"stages\" and "
           "\"data\" alone under \"parallel\", without offloading";
  }
  const bool replays = std::any_of(program.channels.begin(), program.channels.end(),
                                   [](const Channel& channel) { return channel.replay >= 0; });
  if (replays) {
    return "its turns on old inputs are not written out; expected a settled program";
  }
  return "";
}

std::vector<OpSample> run_in_order(const Program& program, const Workload& workload,
                                   const std::atomic<bool>* stop) {
  CHECK(why_not_executable(program).empty(), "a program that can be run for real");
  const Program fixed = chooses_order(program) ? freeze(program, EngineKind::Auto) : program;
  std::vector<int> ranks(fixed.streams.size());
  for (std::size_t r = 0; r < fixed.ranks.size(); ++r) {
    const Rank& rank = fixed.ranks[r];
    std::fill_n(ranks.begin() + rank.first_stream, rank.streams, static_cast<int>(r));
  }
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
    } else if (code == Opcode::Record && fixed.events[index].collective >= 0) {
      if (workload.join) workload.join(index, ranks[issue.stream], micro_batch);
      if (issue.completes && workload.exchange) workload.exchange(index, micro_batch);
    }
  }
  return samples;
}

}  // namespace interlock
