// Shares the micro-batches of a step out among replicas.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "scenarios/load/loader.h"
#include "scenarios/plan/choices.h"
#include "scenarios/plan/lower_plan.h"
#include "sim/plan/stage_cost.h"
#include "sim/plan/stage_times.h"

namespace interlock {
namespace {

/// The time that a replica takes for m micro-batches: first + (m - 1) * each.
struct ReplicaTime {
  Seconds first;  // of one, through all ranks
  Seconds each;   // of one more: the busiest rank's
};

/// Returns the time that each rank of each replica is busy with a micro-batch, as the times of the
/// replicas. The slowest device of a rank counts.
std::vector<ReplicaTime> replica_times(const Plan& plan) {
  const Question& question = plan.question;
  const Training& training = question.training();
  const Mesh& mesh = question.layout.mesh;
  const auto roles = make_roles(training.strategy, question.layout.stages, false);
  const std::size_t ranks = static_cast<std::size_t>(question.layout.ranks());
  std::vector<std::vector<Seconds>> of_machine;  // by rank
  for (const std::optional<Coordinates>& place : places_on_machines(question)) {
    std::vector<Seconds> busy(ranks);
    const ModulePrices modules =
        priced_modules(question, training.graph, place.value_or(Coordinates{}));
    const StageTime time =
        busy_with(training.stage_recompute, *modules,
                  busy_time(*modules, training.strategy, roles, training.schedule.update_every));
    for (int stage = 0; stage < plan.partition.stages(); ++stage) {
      busy[static_cast<std::size_t>(plan.rank_of_stage[stage])] +=
          time(stage, plan.partition.boundaries[stage], plan.partition.boundaries[stage + 1]);
    }
    of_machine.push_back(std::move(busy));
  }
  const int replicas = mesh.degree(Dimension::Data);
  std::vector<std::vector<Seconds>> slowest(static_cast<std::size_t>(replicas),
                                            std::vector<Seconds>(ranks));
  for (const Coordinates& at : simulated_ranks(mesh, {true, true, true, true})) {
    const auto rank = static_cast<std::size_t>(at[static_cast<int>(Dimension::Pipeline)]);
    const std::size_t machine =
        is_mixed(question.cluster) ? machine_number(question.cluster, device_of(mesh, at)) : 0;
    Seconds& most = slowest[static_cast<std::size_t>(at[static_cast<int>(Dimension::Data)])][rank];
    most = std::max(most, of_machine[machine][rank]);
  }
  std::vector<ReplicaTime> times;
  times.reserve(slowest.size());
  for (const std::vector<Seconds>& busy : slowest) {
    times.push_back({std::accumulate(busy.begin(), busy.end(), Seconds(0)),
                     *std::max_element(busy.begin(), busy.end())});
  }
  return times;
}

/// Returns how many of `all` micro-batches each replica takes: the least that the schedule runs,
/// and steps more. The next step always goes to the replica that would be done with it first: as
/// times grow with what is taken, no other way has a smaller largest time.
std::vector<int> counts_by_speed(const std::vector<ReplicaTime>& times, int all,
                                 const RunnableCounts& runnable) {
  const int step = runnable.step;
  std::vector<int> counts(times.size(), runnable.least);
  const auto done = [&](std::size_t replica) {
    return times[replica].first + (counts[replica] + step - 1) * times[replica].each;
  };
  for (int left = all - runnable.least * static_cast<int>(times.size()); left > 0; left -= step) {
    std::size_t soonest = 0;
    for (std::size_t replica = 1; replica < times.size(); ++replica) {
      if (done(replica) < done(soonest)) soonest = replica;
    }
    counts[soonest] += step;
  }
  return counts;
}

}  // namespace

Plan share_batches(Plan plan) {
  const ReplicaBatches& shares = plan.question.training().replica_batches;
  const bool written = shares.kind == ReplicaBatches::Kind::Explicit;
  const std::vector<int> counts =
      written ? shares.counts
              : counts_by_speed(replica_times(plan), shares.all, runnable_counts(plan.question));
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  plan = with_micro_batches(std::move(plan), *most);
  if (*least < *most) plan.replica_micro_batches = counts;
  return plan;
}

}  // namespace interlock
