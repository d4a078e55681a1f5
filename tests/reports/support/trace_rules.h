// Trace rules: what viewers of trace-event JSON demand, checked on the text that was written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace interlock {

/// A complete event, in whole nanoseconds.
struct TraceSlice {
  std::string name, category;
  std::int64_t start = 0, end = 0;
};

/// The contents of a file, by (process, thread) or by process and name.
struct TraceFile {
  using Place = std::pair<int, int>;
  std::map<int, std::string> processes;
  std::map<Place, std::string> threads;
  std::map<Place, std::vector<TraceSlice>> slices;  // by start, the longer first
  /// The sum over the series at each instant.
  std::map<std::pair<int, std::string>, std::vector<std::pair<std::int64_t, double>>> counters;
  int arrows = 0;
  std::string fault;  // the first rule that is broken; empty: none
};

/// Rules: numbers are finite, times not negative; numbers of processes and threads are not 0, and
/// no thread has a process' number; every track has a name; slices of a track nest; every arrow has
/// one begin and one end, in this order, each inside a slice that takes time; counters go forward
/// in time and do not fall below nothing.
TraceFile read_trace(std::string_view json);

}  // namespace interlock
