// LogIndex: where in a log each thing of a program is, and what came before it in its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// Finds the entries of one list of a log by what they are and by micro-batch.
class LogPlaces {
 public:
  void add(std::int32_t what, std::int32_t micro_batch, std::size_t index);
  void sort();
  /// The index of the first entry that was not taken, and takes it; -1 if there is none.
  /// REQUIRES: sort() came after the last add().
  std::int32_t take(std::int32_t what, std::int32_t micro_batch);
  /// The indices of all entries, in order. REQUIRES: likewise.
  std::vector<std::int32_t> all(std::int32_t what, std::int32_t micro_batch) const;

 private:
  struct Place {
    std::int32_t what, micro_batch, index;
    bool taken = false;
    bool operator<(const Place& other) const;
  };
  std::vector<Place> places_;
};

/// Entries before others; -1: none.
struct LogIndex {
  LogPlaces spans, transfers, collectives;      // by op, channel, collective
  std::vector<std::int32_t> span_before;        // on the same rank
  std::vector<std::int32_t> transfer_before;    // on the same wire
  std::vector<std::int32_t> collective_before;  // in the same lane
};

LogIndex index_log(const Program& program, const TraceLog& log);

}  // namespace interlock
