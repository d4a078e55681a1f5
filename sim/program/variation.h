// Variation: what makes equal ops and transfers of a program take different times.
// SPDX-License-Identifier: Apache-2.0
//
// Jitter multiplies durations by random factors of mean 1. A factor is a function of the seed and
// of what the op or transfer is (stage, letter, loss, micro-batch), not of when an engine comes to
// it: engines agree, and schedules have equal luck with equal ops under equal seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace interlock {

enum class JitterShape { Lognormal, Normal, Gamma, Uniform };
/// Names what has one factor: each op or message; each rank, or way between two ranks, in a step;
/// or each of these for the whole run.
enum class JitterScope { Op, Step, Device };

struct Jitter {
  JitterShape shape = JitterShape::Lognormal;
  JitterScope scope = JitterScope::Op;
  double spread = 0;  // coefficient of variation; 0: none
};

/// Returns the largest spread that `shape` may have. Of normal factors one in thirty thousand would
/// be below 0 then, and is 0; uniform ones begin at 0; gamma ones are exponential.
double most_spread(JitterShape shape);
/// Returns factor number `stream` under `seed`.
/// REQUIRES: 0 < jitter.spread <= most_spread(jitter.shape).
double jitter_factor(const Jitter& jitter, std::uint64_t seed, std::uint64_t stream);

/// A rank that computes slower in steps [first, end).
struct SlowSteps {
  int rank = 0;
  int first = 0, end = 0;
  double slowdown = 1;
};

/// Measured durations of ops, in place of a program's own.
struct MeasuredTimes {
  std::vector<std::vector<double>> ops;  // seconds, by op and micro-batch; below 0: as planned
};

/// Durations of ops by what the documents of a micro-batch let its tokens see. Example: work {1,
/// 4}, durations {{2, 7}, {2, 10}}: op 0 always takes 2 s, op 1 takes 8 s for a micro-batch of
/// work 2.
struct PackedTimes {
  std::vector<double> work;                    // (cases): pairs of tokens of a sample, ascending
  std::vector<std::vector<double>> durations;  // (cases, ops): seconds
  std::vector<int> group_of_replica;           // replicas of one group read the same documents
  /// Returns the pairs of a micro-batch, counted through the run, of a group.
  std::function<double(std::uint64_t seed, int group, int micro_batch)> work_of;
};

struct Variation {
  std::uint64_t seed = 0;
  Jitter compute, transfers;
  std::vector<SlowSteps> slow;
  std::shared_ptr<const MeasuredTimes> measured = {};  // what varies otherwise is left out
  bool of_compute() const { return compute.spread > 0 || !slow.empty() || measured; }
  bool of_transfers() const { return transfers.spread > 0; }
};

}  // namespace interlock
