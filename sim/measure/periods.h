// Whole periods of micro-batches: found by their signatures, left out, and counted all the same.
// SPDX-License-Identifier: Apache-2.0
//
// In the middle of a long flushed step the schedule is a loop, and times settle into a rhythm: each
// micro-batch does what the one a period before it did, later by the same time. A step with one
// more turn of the loop then takes exactly one period longer. So a step of very many micro-batches
// is measured by two shorter ones that differ by one period; everything that adds up over
// micro-batches (time, busy time, bytes, flops) grows by as much for each period left out.
//
// Example: steps of 8 and of 10 micro-batches take 35 ms and 43 ms, and both have a rhythm of two.
// A step of 100 then takes 35 + 46 x 8 = 403 ms.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/measure/metrics.h"
#include "sim/program/trace.h"

namespace interlock {

/// Begin, end and signature of every micro-batch of a run; a sink for its spans and transfers.
class BatchLog {
 public:
  explicit BatchLog(const Program& program);
  void add(const Span& span);
  void add(const Transfer& transfer);
  void add(const CollectiveSpan& span);
  /// Returns the shortest rhythm of the steps [first, first + steps), a multiple of `period`; 0 if
  /// none. In a stretch of each step every micro-batch is like the one a rhythm before it, all
  /// later by the same time, and the stretch is longer than any micro-batch is under way: what
  /// comes after depends on nothing further back, so turns of the loop could be added there.
  int rhythm(int first_step, int steps, int period) const;

 private:
  struct Batch {
    double begin = -1, end = 0;                      // ticks
    std::uint64_t weighted_starts = 0, weights = 0;  // modulo 2^64
  };
  bool alike(const Batch& earlier, const Batch& later) const;
  int most_under_way(int step) const;
  bool has_rhythm(int step, int rhythm, int under_way) const;

  const Program& program_;
  std::vector<Batch> batches_;
};

/// Returns the metrics of a run whose step has `periods` more periods than that of `longer`, which
/// has one more than that of `shorter`. Rates per sample are left to the caller. Nothing if what
/// must not depend on the number of periods does: memory, fill, staleness of single micro-batches.
std::optional<Metrics> add_periods(const Metrics& shorter, const Metrics& longer,
                                   std::int64_t periods);

}  // namespace interlock
