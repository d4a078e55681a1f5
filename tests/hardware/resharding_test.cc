// Resharding: costs of the strategies, who gets what, and the balance of senders.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/resharding.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/random.h"
#include "hardware/collectives/sender_search.h"

namespace interlock::resharding_test {
namespace {

using enum ReshardingStrategy;

constexpr double kBytes = 1e9;
constexpr double kCard = 25e9;
const double kOnce = kBytes / kCard;  // t: the tensor over a card, once

/// Hosts of `per_host` devices with one card, and ports so fast that a host's inside is free.
Cluster hosts(int count, int per_host) {
  return {.name = "hosts",
          .machines = {{.devices_per_node = per_host,
                        .port_bandwidth = BytesPerSecond(1e18),
                        .cards_per_node = 1,
                        .card_bandwidth = BytesPerSecond(kCard)}},
          .devices = count * per_host};
}

std::vector<int> range(int first, int count) {
  std::vector<int> devices(static_cast<std::size_t>(count));
  std::iota(devices.begin(), devices.end(), first);
  return devices;
}

/// One cut dimension; neighbours hold different parts, and every `shards` devices are a replica.
TensorPlacement shards_side_by_side(const std::vector<int>& devices, int shards) {
  const auto count = static_cast<int>(devices.size());
  REQUIRE(count % shards == 0);
  TensorPlacement placement{devices, {shards}, {}};
  for (int i = 0; i < count; ++i) placement.parts.push_back(i % shards);
  return placement;
}

/// One cut dimension; neighbours hold the same part.
TensorPlacement replicas_side_by_side(const std::vector<int>& devices, int shards) {
  const auto count = static_cast<int>(devices.size());
  REQUIRE(count % shards == 0);
  TensorPlacement placement{devices, {shards}, {}};
  for (int i = 0; i < count; ++i) placement.parts.push_back(i / (count / shards));
  return placement;
}

Resharding reshard(const Cluster& cluster, const TensorPlacement& from, const TensorPlacement& to,
                   ReshardingChoice choice) {
  return plan_resharding(cluster, from, to, Bytes(kBytes), choice);
}

double received(const Resharding& plan, int device) {
  double sum = 0;
  for (const ReshardingTask& task : plan.tasks) {
    const auto& to = task.receivers;
    if (std::find(to.begin(), to.end(), device) != to.end()) sum += task.bytes.value();
  }
  return sum;
}

}  // namespace

TEST_CASE("equal layouts, one to one: a slice over a link, all at once") {
  for (const ReshardingStrategy strategy : {PointToPoint, LocalAllGather, Broadcast}) {
    const Cluster cluster = hosts(8, 1);
    const Resharding plan = reshard(cluster, shards_side_by_side(range(0, 4), 4),
                                    shards_side_by_side(range(4, 4), 4), {strategy});
    INFO("1/4 of the tensor over each of four links");
    CHECK(plan.time.value() == doctest::Approx(kOnce / 4));
    REQUIRE_EQ(plan.flows.size(), 4);
    for (const Flow& flow : plan.flows) {
      CHECK_EQ(flow.to, flow.from + 4);
      CHECK(flow.bytes.value() == doctest::Approx(kBytes / 4));
    }
  }
}

TEST_CASE("one slice to A hosts of B devices: A B t, A t, and t + A t / K") {
  // Zhuang et al., arXiv 2211.05322, section 3 (the three strategies' costs).
  for (const auto& shape : {std::pair{1, 4}, {2, 4}, {4, 2}, {8, 8}}) {
    const int a = shape.first;
    const int b = shape.second;
    CAPTURE(a);
    CAPTURE(b);
    const Cluster cluster = hosts(a + 1, b);
    const TensorPlacement from{{0}, {1}, {0}};
    const TensorPlacement to = shards_side_by_side(range(b, a * b), 1);
    const auto time = [&](ReshardingStrategy strategy, int chunks) {
      return reshard(cluster, from, to, {strategy, SenderChoice::Balanced, chunks}).time.value();
    };
    CHECK(time(PointToPoint, 1) == doctest::Approx(a * b * kOnce));
    CHECK(time(LocalAllGather, 1) == doctest::Approx(a * kOnce));
    for (const int chunks : {1, 10, 1000}) {
      INFO("the last of K chunks leaves at t and has A - 1 hops left; the paper counts A");
      const double hops = (a - 1) * kOnce / chunks;
      CHECK(time(Broadcast, chunks) == doctest::Approx(kOnce + hops).epsilon(1e-6));
      CHECK(time(Broadcast, chunks) <= kOnce + a * kOnce / chunks);
    }
  }
}

TEST_CASE("a broadcast hardly minds the number of hosts; copies cost in proportion") {
  const auto time = [](int receivers, ReshardingStrategy strategy) {
    return reshard(hosts(receivers + 1, 1), {{0}, {1}, {0}},
                   shards_side_by_side(range(1, receivers), 1), {strategy})
        .time.value();
  };
  for (const int receivers : {2, 4, 8, 16}) {
    CHECK(time(receivers, PointToPoint) == doctest::Approx(receivers * kOnce));
    CHECK(time(receivers, Broadcast) <= kOnce * (1 + receivers / 64.0));
  }
}

TEST_CASE("every receiver gets its whole part, once, from a sender that holds it") {
  const Cluster cluster = hosts(8, 4);
  const std::vector<int> left = range(0, 8);
  const std::vector<int> right = range(16, 12);
  for (const int from : {1, 2, 4, 8}) {
    for (const int to : {1, 2, 3, 4, 6, 12}) {
      for (const bool side : {false, true}) {
        const TensorPlacement a =
            side ? replicas_side_by_side(left, from) : shards_side_by_side(left, from);
        const TensorPlacement b =
            side ? shards_side_by_side(right, to) : replicas_side_by_side(right, to);
        for (const ReshardingStrategy strategy : {PointToPoint, LocalAllGather, Broadcast}) {
          CAPTURE(from);
          CAPTURE(to);
          const Resharding plan = reshard(cluster, a, b, {strategy});
          for (const int device : right) {
            CHECK(received(plan, device) == doctest::Approx(kBytes / to));
          }
          std::map<int, double> into;
          for (const Flow& flow : plan.flows) into[flow.to] += flow.bytes.value();
          for (const int device : right) CHECK(into[device] == doctest::Approx(kBytes / to));
          for (const ReshardingTask& task : plan.tasks) {
            CHECK(std::find(left.begin(), left.end(), task.sender) != left.end());
            CHECK(task.end <= plan.time);
          }
          CHECK(plan.time.value() ==
                doctest::Approx((plan.latency + occupancy(cluster, plan.flows)).value()));
        }
      }
    }
  }
}

TEST_CASE("slices of two cut dimensions are where index sets say") {
  // 12 x 12 elements, 2 x 3 parts to 3 x 2 parts: elements shared by each pair, counted.
  const TensorPlacement from{range(0, 6), {2, 3}, range(0, 6)};
  const TensorPlacement to{range(6, 6), {3, 2}, range(0, 6)};
  std::map<std::pair<int, int>, double> expected;
  for (int row = 0; row < 12; ++row) {
    for (int column = 0; column < 12; ++column) {
      expected[{row / 6 * 3 + column / 4, 6 + row / 4 * 2 + column / 6}] += kBytes / 144;
    }
  }
  const Resharding plan = reshard(hosts(12, 1), from, to, {PointToPoint});
  CHECK_EQ(plan.flows.size(), expected.size());
  for (const Flow& flow : plan.flows) {
    CHECK(flow.bytes.value() == doctest::Approx(expected[{flow.from, flow.to}]));
  }
}

TEST_CASE("who holds a slice already receives nothing") {
  const Cluster cluster = hosts(2, 2);
  const TensorPlacement same = shards_side_by_side(range(0, 4), 2);
  CHECK_EQ(reshard(cluster, same, same, {}).time, Seconds());
  const Resharding plan = reshard(cluster, shards_side_by_side(range(0, 2), 2),
                                  shards_side_by_side(range(0, 2), 1), {PointToPoint});
  INFO("each of the two lacks the other's half");
  REQUIRE_EQ(plan.flows.size(), 2);
  CHECK(plan.flows[0].bytes.value() == doctest::Approx(kBytes / 2));
}

TEST_CASE("replicas on other hosts share the sending") {
  // Two shards, each on host 0 and on host 1; to hosts 2 and 3, one shard each.
  const Cluster cluster = hosts(4, 2);
  const TensorPlacement from = shards_side_by_side(range(0, 4), 2);
  const TensorPlacement to{{4, 6}, {2}, {0, 1}};
  const auto time = [&](SenderChoice senders) {
    return reshard(cluster, from, to, {Broadcast, senders}).time.value();
  };
  MESSAGE("the first holders are both on host 0: its card sends both halves; else one each");
  CHECK(time(SenderChoice::First) == doctest::Approx(kOnce));
  CHECK(time(SenderChoice::Balanced) == doctest::Approx(kOnce / 2));
  CHECK(reshard(cluster, from, to, {}).exact);
}

TEST_CASE("a stage of data and tensor ranks hands over to one of another shape") {
  // 4 data x 2 tensor ranks to 2 x 4: the batch in 4 and 2 parts, replicas beside each other.
  const Cluster cluster = hosts(4, 4);
  const Resharding plan = reshard(cluster, replicas_side_by_side(range(0, 8), 4),
                                  replicas_side_by_side(range(8, 8), 2), {LocalAllGather});
  MESSAGE("each host gives half of the tensor to one other: t / 2");
  CHECK(plan.time.value() == doctest::Approx(kOnce / 2).epsilon(1e-6));
}

namespace {

/// The least end over all orders and options, each job as early as its links allow.
double brute_force(const std::vector<SenderJob>& jobs) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double best = 1e300;
  do {
    std::vector<std::size_t> option(jobs.size(), 0);
    while (true) {
      std::map<LinkId, double> free;
      double end = 0;
      for (const std::size_t job : order) {
        const JobOption& taken = jobs[job].options[option[job]];
        double start = 0;
        for (const LinkId id : taken.links) start = std::max(start, free[id]);
        for (const LinkId id : taken.links) free[id] = start + taken.occupied.value();
        end = std::max(end, start + taken.done.value());
      }
      best = std::min(best, end);
      std::size_t digit = 0;
      while (digit < jobs.size() && ++option[digit] == jobs[digit].options.size()) {
        option[digit++] = 0;
      }
      if (digit == jobs.size()) break;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<SenderJob> random_jobs(std::uint64_t stream, int count) {
  Random random(5, stream);
  std::vector<SenderJob> jobs(static_cast<std::size_t>(count));
  for (SenderJob& job : jobs) {
    const LinkId receiver = 100 + random.integer(0, 2);
    const double length = random.integer(1, 9);
    for (int option = random.integer(1, 3); option > 0; --option) {
      job.options.push_back({{random.integer(0, 2), receiver},
                             Seconds(length),
                             Seconds(length + random.integer(0, 2))});
    }
  }
  return jobs;
}

}  // namespace

TEST_CASE("the search for senders ends as soon as any order and any holders could") {
  for (std::uint64_t round = 0; round < 60; ++round) {
    CAPTURE(round);
    const std::vector<SenderJob> jobs = random_jobs(round, 1 + static_cast<int>(round % 5));
    const JobTimetable table = balance(jobs, 1);
    CHECK(table.exact);
    CHECK_EQ(table.end.value(), brute_force(jobs));
    CHECK(first_come(jobs).end >= table.end);
  }
}

TEST_CASE("a timetable never has two jobs on a link at once, whether searched or greedy") {
  for (const int count : {6, 40}) {
    const std::vector<SenderJob> jobs = random_jobs(99, count);
    const JobTimetable table = balance(jobs, 1);
    CHECK_EQ(table.exact, count < 10);
    std::map<LinkId, double> work;
    for (std::size_t a = 0; a < jobs.size(); ++a) {
      const JobOption& mine = jobs[a].options[static_cast<std::size_t>(table.option[a])];
      for (const LinkId id : mine.links) work[id] += mine.occupied.value();
      CHECK(table.start[a] + mine.done <= table.end);
      for (std::size_t b = 0; b < a; ++b) {
        const JobOption& other = jobs[b].options[static_cast<std::size_t>(table.option[b])];
        const bool apart = table.start[a] + mine.occupied <= table.start[b] ||
                           table.start[b] + other.occupied <= table.start[a];
        for (const LinkId id : mine.links) {
          const auto& links = other.links;
          CHECK((apart || std::find(links.begin(), links.end(), id) == links.end()));
        }
      }
    }
    INFO("greedy: at most twice the busiest link's work here");
    double busiest = 0;
    for (const auto& [id, sum] : work) busiest = std::max(busiest, sum);
    CHECK(table.end.value() <= 2 * busiest);
    CHECK_EQ(balance(jobs, 1).start, table.start);
  }
}

}  // namespace interlock::resharding_test
