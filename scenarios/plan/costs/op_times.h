// OpTimes: what ops take at least, by their kernels and by what their devices exchange.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "scenarios/load/question.h"
#include "sim/plan/data_parallel.h"
#include "sim/plan/mesh.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

using GroupTimes = std::array<Seconds, kMeshAxes>;
inline Seconds longest(const GroupTimes& times) {
  return *std::max_element(times.begin(), times.end());
}

/// Bounds the time of an op from below. An op lasts no shorter than its kernels with the exchanges
/// for which they stand still, and no shorter than all its messages of one group, which go one by
/// one.
///
/// Example: two layers' forward, 4 s around and 6 s of experts, ways of 1 s: standing 10 s, alone
/// 14 s; in a pair with its like at least max(10 + 10, 4 + 4) s.
struct OpTime {
  Seconds standing;        // messages of tokens and those beside kernels hide
  Seconds passing;         // tokens, beyond the kernels beside them
  GroupTimes beside = {};  // messages that hide

  OpTime& operator+=(const OpTime& other) {
    standing += other.standing;
    passing += other.passing;
    for (std::size_t axis = 0; axis < beside.size(); ++axis) beside[axis] += other.beside[axis];
    return *this;
  }
  Seconds messages() const { return longest(beside); }
  /// Returns the time among ops with whose kernels its tokens may pass.
  Seconds in_pair() const { return std::max(standing, messages()); }
  Seconds alone() const { return std::max(standing + passing, messages()); }
};

class OpTimes {
 public:
  /// REQUIRES: `question` outlives it.
  explicit OpTimes(const Question& question);

  /// Bounds the times of `exchanges`, by group. An exchange takes the soonest of several ways, each
  /// of which is a latency and a time by its bytes: between two sizes it takes no less than on the
  /// line between both. So few sizes need a price.
  GroupTimes of(const std::vector<Exchange>& exchanges, int rank) const;
  OpTime of(const OpCost& cost, int rank) const;

  using MeshOfLayout = std::function<const Mesh&(int layout)>;
  /// Returns the messages that bring the weights of a stage before an op of it (ZeRO 3). Those of
  /// several layouts take turns.
  OpTime of_gathers(const DataParallel& policy, const MeshOfLayout& mesh_of, const StageCost& stage,
                    int rank) const;

 private:
  Seconds time_of(const Exchange& exchange, int rank) const {
    return exchange.count * exchange_times_[exchange_times_.size() == 1 ? 0 : rank](exchange);
  }

  std::vector<std::function<Seconds(const Exchange&)>> exchange_times_;  // by rank, or for all
};

}  // namespace interlock
