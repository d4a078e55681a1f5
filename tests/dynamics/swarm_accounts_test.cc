// Every micro-batch counts once in every stage of every averaged step, whatever fails and joins.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "sim/swarm/swarm.h"

namespace interlock::swarm_accounts_test {
namespace {

using Place = std::pair<std::int64_t, int>;  // step, stage

/// Keeps what each peer has added, from the records alone: what goes with it, and what an averaging
/// finds.
class Accounts {
 public:
  explicit Accounts(int micro_batches) : micro_batches_(micro_batches) {}

  void enter(const SwarmRecord& record) {
    switch (record.kind) {
      case SwarmRecord::Kind::Added:
        right_ = right_ && !gone_.contains(record.peer);
        held_[record.peer][{record.step, record.stage}].insert(record.micro_batch);
        break;
      case SwarmRecord::Kind::Gone:
        held_.erase(record.peer);
        gone_.insert(record.peer);
        break;
      case SwarmRecord::Kind::HandedOver:
        for (auto& [place, added] : held_[record.peer]) {
          held_[record.to][place].insert(added.begin(), added.end());
        }
        held_.erase(record.peer);
        break;
      case SwarmRecord::Kind::Averaged:
        average(record);
        break;
    }
  }
  /// Returns whether nothing was wrong so far.
  bool right() const { return right_; }
  /// Steps of which `stages` stages were averaged, in order from the first one.
  int whole_steps(int stages) const {
    int steps = 0;
    while (averaged_.contains(steps) && averaged_.at(steps) == stages) ++steps;
    return steps;
  }

 private:
  void average(const SwarmRecord& record) {
    std::multiset<int> found;
    for (const int member : record.members) {
      right_ = right_ && !gone_.contains(member);
      const auto at = held_.find(member);
      if (at == held_.end()) continue;
      const auto added = at->second.extract({record.step, record.stage});
      if (!added.empty()) found.insert(added.mapped().begin(), added.mapped().end());
    }
    right_ = right_ && static_cast<int>(found.size()) == micro_batches_;
    int next = 0;
    for (const int micro_batch : found) right_ = right_ && micro_batch == next++;
    // No other peer has some of it left, and a stage never averages a step before the one before.
    for (const auto& [peer, places] : held_) {
      right_ = right_ && !places.contains({record.step, record.stage});
    }
    right_ = right_ && next_step_[record.stage] == record.step;
    next_step_[record.stage] = record.step + 1;
    ++averaged_[record.step];
  }

  int micro_batches_;
  bool right_ = true;
  std::map<int, std::map<Place, std::multiset<int>>> held_;
  std::set<int> gone_;
  std::map<int, std::int64_t> next_step_;
  std::map<std::int64_t, int> averaged_;
};

/// A small swarm, with everything that may vary drawn.
SwarmInputs drawn_swarm(std::uint64_t seed) {
  Random random(seed, 77);
  SwarmInputs inputs;
  const int stages = random.integer(1, 4);
  for (int stage = 0; stage < stages; ++stage) {
    inputs.stages.push_back({.forward = Seconds(random.integer(1, 3)),
                             .backward = Seconds(random.integer(1, 5)),
                             .update = Seconds(random.integer(0, 2)),
                             .input = Bytes(random.integer(0, 3) * 1e6),
                             .gradient_message = Bytes(random.integer(0, 3) * 1e6),
                             .gradients = Bytes(random.integer(0, 20) * 1e6),
                             .state = Bytes(random.integer(0, 60) * 1e6)});
    const int peers = random.integer(1, 4);
    for (int i = 0; i < peers; ++i) {
      inputs.peers.push_back({.stage = stage,
                              .speed = random.integer(1, 4) / 2.0,
                              .up = BytesPerSecond(random.integer(1, 4) * 1e6),
                              .down = BytesPerSecond(random.integer(1, 4) * 1e6),
                              .latency = Seconds(random.integer(0, 2) * 0.25)});
    }
  }
  const int peers = static_cast<int>(inputs.peers.size());
  inputs.micro_batches = random.integer(1, 12);
  if (random.integer(0, 1) == 1) inputs.in_flight = random.integer(1, 10);
  inputs.routing = static_cast<SwarmRouting>(random.integer(0, 2));
  if (random.integer(0, 2) > 0) inputs.rebalance_every = Seconds(random.integer(20, 200));
  inputs.delayed_update = random.integer(0, 1) == 1;
  inputs.detection = Seconds(random.integer(0, 20));
  inputs.failures.kinds = {
      {.mean_life = Seconds(random.integer(100, 2000)), .parts = peers, .devices_per_part = 1}};
  inputs.failures.replacement = Seconds(random.integer(1, 200));
  inputs.duration = Seconds(700);
  return inputs;
}

TEST_CASE("every micro-batch is done once in each averaged step, over thousands of traces") {
  std::int64_t steps = 0, failures = 0, joins = 0, moves = 0, redone = 0, averaged = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    const SwarmInputs inputs = drawn_swarm(seed);
    std::vector<SwarmRecord> records;
    const SwarmOutcome outcome = simulate_swarm(inputs, seed, &records);
    Accounts accounts(inputs.micro_batches);
    for (const SwarmRecord& record : records) {
      accounts.enter(record);
      averaged += record.kind == SwarmRecord::Kind::Averaged;
    }
    REQUIRE(accounts.right());
    REQUIRE(accounts.whole_steps(static_cast<int>(inputs.stages.size())) == outcome.steps);
    // At least the averaged steps were run and not lost, and no more than was ever run.
    const auto finished = outcome.micro_batches_per_s * inputs.duration.value();
    REQUIRE(finished >= static_cast<double>(outcome.steps * inputs.micro_batches) - 0.5);
    REQUIRE(finished <= static_cast<double>(outcome.steps + 2) * inputs.micro_batches + 0.5);
    steps += outcome.steps;
    failures += outcome.failures;
    joins += outcome.joins;
    moves += outcome.moves;
    redone += outcome.forwards_redone + outcome.backwards_redone;
  }
  INFO(steps << " steps, " << averaged << " averagings, " << failures << " failures, " << joins
             << " joins, " << moves << " moves, " << redone << " ops run again");
  CHECK(steps > 20'000);
  CHECK(failures > 10'000);
  CHECK(joins > 10'000);
  CHECK(moves > 300);
  CHECK(redone > 50'000);
}

TEST_CASE("a swarm whose failures end goes on as if there had been none") {
  // Nothing that failed may leave requests, gradients or peers behind that hold the rest back.
  int tried = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    SwarmInputs inputs = drawn_swarm(seed);
    const int peers = static_cast<int>(inputs.peers.size());
    Random random(seed, 78);
    inputs.failures = {};
    for (int i = 0; i < 20; ++i) {
      const int peer = random.integer(0, peers - 1);
      inputs.failures.trace.push_back({.time = Seconds(20.0 * i + 10), .first = peer});
      inputs.failures.trace.push_back(
          {.time = Seconds(20.0 * i + random.integer(11, 29)), .first = peer, .up = true});
    }
    std::stable_sort(inputs.failures.trace.begin(), inputs.failures.trace.end(),
                     [](const DeviceEvent& a, const DeviceEvent& b) { return a.time < b.time; });
    inputs.duration = Seconds(4000);
    inputs.warm_up = Seconds(1000);
    const SwarmOutcome late = simulate_swarm(inputs, seed);
    CHECK(late.micro_batches_per_s > 0);
    CHECK(late.without_a_peer == Seconds(0));
    ++tried;
  }
  CHECK(tried == 300);
}

}  // namespace
}  // namespace interlock::swarm_accounts_test
