// Variation: what makes equal ops and transfers of a program take different times.
// SPDX-License-Identifier: Apache-2.0
//
// Jitter multiplies durations by random factors of mean 1. A factor is a function of the seed and
// of what the op or transfer is (stage, letter, loss, micro-batch), not of when an engine comes to
// it: engines agree, and schedules have equal luck with equal ops under equal seeds.
#pragma once

#include <cstdint>
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

/// The largest spread that `shape` may have. Of normal factors one in thirty thousand would be
/// below 0 then, and is 0; uniform ones begin at 0; gamma ones are exponential.
double most_spread(JitterShape shape);
/// Factor number `stream` under `seed`. REQUIRES: 0 < jitter.spread <= most_spread(jitter.shape).
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

struct Variation {
  std::uint64_t seed = 0;
  Jitter compute, transfers;
  std::vector<SlowSteps> slow;
  std::shared_ptr<const MeasuredTimes> measured = {};  // what varies otherwise is left out
  bool of_compute() const { return compute.spread > 0 || !slow.empty() || measured; }
  bool of_transfers() const { return transfers.spread > 0; }
};

}  // namespace interlock
