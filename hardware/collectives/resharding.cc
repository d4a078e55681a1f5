// Cuts a tensor into slices, and plans how each reaches those who need it.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/resharding.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "hardware/collectives/algorithms.h"
#include "hardware/collectives/link_load.h"
#include "hardware/collectives/sender_search.h"

namespace interlock {
namespace {

int product(const std::vector<int>& cuts) {
  return std::accumulate(cuts.begin(), cuts.end(), 1, [](int a, int b) { return a * b; });
}

/// Share of the tensor that is in both parts.
double common_share(const TensorPlacement& a, int part_a, const TensorPlacement& b, int part_b) {
  double share = 1;
  for (std::size_t axis = a.cuts.size(); axis-- > 0;) {
    const std::int64_t cuts_a = a.cuts[axis];
    const std::int64_t cuts_b = b.cuts[axis];
    const std::int64_t at_a = part_a % cuts_a;
    const std::int64_t at_b = part_b % cuts_b;
    // In units of 1 / (cuts_a cuts_b), so that the comparison is exact.
    const std::int64_t begin = std::max(at_a * cuts_b, at_b * cuts_a);
    const std::int64_t end = std::min((at_a + 1) * cuts_b, (at_b + 1) * cuts_a);
    if (end <= begin) return 0;
    share *= static_cast<double>(end - begin) / static_cast<double>(cuts_a * cuts_b);
    part_a /= static_cast<int>(cuts_a);
    part_b /= static_cast<int>(cuts_b);
  }
  return share;
}

std::vector<std::vector<int>> holders_of(const TensorPlacement& placement) {
  CHECK(placement.devices.size() == placement.parts.size(), "a part for each device");
  std::vector<std::vector<int>> holders(static_cast<std::size_t>(product(placement.cuts)));
  for (std::size_t i = 0; i < placement.devices.size(); ++i) {
    holders.at(static_cast<std::size_t>(placement.parts[i])).push_back(placement.devices[i]);
  }
  return holders;
}

/// A slice, or a copy of it, that one of `senders` sends.
struct Slice {
  std::vector<int> senders;
  std::vector<int> receivers;
  Bytes bytes;
};

std::vector<Slice> slices_of(const TensorPlacement& from, const TensorPlacement& to, Bytes bytes) {
  CHECK(from.cuts.size() == to.cuts.size(), "as many dimensions on both sides");
  const std::vector<std::vector<int>> senders = holders_of(from);
  const std::vector<std::vector<int>> receivers = holders_of(to);
  std::vector<Slice> slices;
  for (std::size_t a = 0; a < senders.size(); ++a) {
    CHECK(!senders[a].empty(), "a holder for each part of the tensor");
    for (std::size_t b = 0; b < receivers.size(); ++b) {
      const double share = common_share(from, static_cast<int>(a), to, static_cast<int>(b));
      if (share <= 0) continue;
      Slice slice{senders[a], {}, bytes * share};
      for (const int device : receivers[b]) {
        const bool has =
            std::find(senders[a].begin(), senders[a].end(), device) != senders[a].end();
        if (!has) slice.receivers.push_back(device);
      }
      if (!slice.receivers.empty()) slices.push_back(std::move(slice));
    }
  }
  return slices;
}

/// Returns the jobs of a strategy: a slice, its copies for each receiver, or for each node.
std::vector<Slice> divided(const Cluster& cluster, std::vector<Slice> slices,
                           ReshardingStrategy strategy) {
  if (strategy == ReshardingStrategy::Broadcast) return slices;
  std::vector<Slice> jobs;
  for (const Slice& slice : slices) {
    const Grouping nodes = group_by_node(cluster, slice.receivers);
    const auto& sets =
        strategy == ReshardingStrategy::PointToPoint ? one_by_one(nodes).nodes : nodes.nodes;
    for (const std::vector<int>& receivers : sets) {
      jobs.push_back({slice.senders, receivers, slice.bytes});
    }
  }
  return jobs;
}

/// The flows and the time of one sender's way to do a job.
struct Way {
  std::vector<Flow> flows;
  JobOption option;
};

/// Fills in how long the busiest links are busy with `flows`, and which they are.
void occupy_busiest(const Cluster& cluster, const std::vector<Flow>& flows, JobOption& option) {
  const std::vector<LinkLoad> loads = link_loads(cluster, flows);
  for (const LinkLoad& load : loads) option.occupied = std::max(option.occupied, load.busy);
  for (const LinkLoad& load : loads) {
    // Equal but for the order in which sums were made.
    if (load.busy >= option.occupied * (1 - 1e-9)) option.links.push_back(load.id);
  }
}

/// Returns a copy, or parts that the receivers, who share a node, then gather.
Way parts_way(const Cluster& cluster, int sender, const Slice& job) {
  Way way;
  const auto receivers = static_cast<double>(job.receivers.size());
  Seconds latency;
  for (const int receiver : job.receivers) {
    way.flows.push_back({sender, receiver, job.bytes / receivers});
    latency = std::max(latency, hop(cluster, sender, receiver));
  }
  occupy_busiest(cluster, way.flows, way.option);
  way.option.done = way.option.occupied + latency;
  if (job.receivers.size() > 1) {
    const Traffic gather =
        ring_pass(cluster, job.receivers, job.bytes * ((receivers - 1) / receivers));
    way.option.done += occupancy(cluster, gather.flows) + gather.latency;
    way.flows.insert(way.flows.end(), gather.flows.begin(), gather.flows.end());
  }
  return way;
}

/// Returns a chain through all receivers, those of the sender's own node first.
Way chain_way(const Cluster& cluster, int sender, const Slice& job, int chunks) {
  std::vector<int> chain = {sender};
  chain.insert(chain.end(), job.receivers.begin(), job.receivers.end());
  chain = in_order(group_by_node(cluster, chain));
  Way way;
  Seconds latency;
  Seconds filling;  // a chunk over every hop but the slowest
  Seconds slowest;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    way.flows.push_back({chain[i - 1], chain[i], job.bytes});
    const Route edge = route(cluster, chain[i - 1], chain[i]);
    const Seconds chunk = job.bytes / edge.bandwidth / chunks;
    latency += edge.latency;
    filling += chunk;
    slowest = std::max(slowest, chunk);
  }
  occupy_busiest(cluster, way.flows, way.option);
  way.option.occupied += filling - slowest;
  way.option.done = way.option.occupied + latency;
  return way;
}

Way way_of(const Cluster& cluster, int sender, const Slice& job, const ReshardingChoice& choice) {
  if (choice.strategy == ReshardingStrategy::Broadcast) {
    return chain_way(cluster, sender, job, choice.chunks);
  }
  return parts_way(cluster, sender, job);
}

}  // namespace

Resharding plan_resharding(const Cluster& cluster, const TensorPlacement& from,
                           const TensorPlacement& to, Bytes bytes, const ReshardingChoice& choice) {
  CHECK(choice.chunks > 0, "at least one chunk");
  const std::vector<Slice> slices = divided(cluster, slices_of(from, to, bytes), choice.strategy);
  std::vector<SenderJob> jobs;
  for (const Slice& slice : slices) {
    SenderJob& job = jobs.emplace_back();
    for (const int sender : slice.senders) {
      job.options.push_back(way_of(cluster, sender, slice, choice).option);
      if (choice.senders == SenderChoice::First) break;
    }
  }
  const JobTimetable table =
      choice.senders == SenderChoice::First ? first_come(jobs) : balance(jobs, choice.seed);
  Resharding plan;
  plan.exact = table.exact;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto option = static_cast<std::size_t>(table.option[i]);
    const int sender = slices[i].senders[option];
    plan.tasks.push_back({sender, slices[i].receivers, slices[i].bytes, table.start[i],
                          table.start[i] + jobs[i].options[option].done});
    const Way way = way_of(cluster, sender, slices[i], choice);
    plan.flows.insert(plan.flows.end(), way.flows.begin(), way.flows.end());
  }
  plan.flows = merged(std::move(plan.flows));
  const Seconds busy = occupancy(cluster, plan.flows);
  plan.time = std::max(table.end, busy);
  plan.latency = plan.time - busy;
  return plan;
}

}  // namespace interlock
