// LogIndex: where in a log each thing of a program is, and what came before it in its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// Finds the entries of one list of a log by what they are and by micro-batch.
/// Example: 0F3 ran twice, as entries 8 and 5; take(0F, 3) returns 5 if that started first, then 8,
/// then -1.
class LogPlaces {
 public:
  void add(std::int32_t what, std::int32_t micro_batch, std::int32_t index);
  void sort();
  /// Returns the first entry that was not taken, in the order of adding, and takes it; -1 if there
  /// is none. REQUIRES: sort() came after the last add().
  std::int32_t take(std::int32_t what, std::int32_t micro_batch);

 private:
  struct Place {
    std::int32_t what, micro_batch, index;
    bool taken = false;
    bool operator<(const Place& other) const;
  };
  std::vector<Place> places_;
};

/// Finds the collectives of a log by the events that they belong to.
class CollectivePlaces {
 public:
  CollectivePlaces(const Program& program, const TraceLog& log);
  /// Returns the first entry that was not taken, of those that were joined at `at` or later and may
  /// be the collective of `event` in its generation of `micro_batch`; -1 if there is none. One
  /// collective may be there for several events; the micro-batch is that of the last to join.
  std::int32_t find(const Event& event, int micro_batch, Seconds at) const;
  void take(std::int32_t entry);

 private:
  const TraceLog* log_;
  std::vector<std::vector<std::int32_t>> entries_;  // by collective, in order of joining
  std::vector<std::size_t> first_;                  // by collective: all before are taken
  std::vector<bool> taken_;                         // by entry
};

/// Entries before others; -1: none.
struct LogIndex {
  LogPlaces spans, transfers;  // by op, channel; the first to start is found first
  CollectivePlaces collectives;
  std::vector<std::int32_t> span_before;        // on the same rank
  std::vector<std::int32_t> transfer_before;    // on the same wire
  std::vector<std::int32_t> collective_before;  // in the same communicator
};

/// Makes the index of `log`, which must outlive it.
LogIndex index_log(const Program& program, const TraceLog& log);

}  // namespace interlock
