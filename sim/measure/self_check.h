// Self-checks: what every run does to its own figures before anyone reads them.
// SPDX-License-Identifier: Apache-2.0
//
// Two independent counts of one thing must agree. A fault is a bug of interlock: the caller stops
// the program with it (CHECK) instead of printing figures that do not add up.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/measure/metrics.h"

namespace interlock {

/// Says which figures of `metrics` do not add up, and to what; empty if all do. Shares of time of a
/// device lie in [0, 1] and add up to 1; the causes of its idle time add up to it, messages and
/// exchanges to exposed communication; memory by class adds up to the peak.
/// Example: in a step of 2 s a device is busy for 1 s, exchanges take 0.2 s, messages 0.2 s and
/// drain 0.6 s. A drain of 0.8 s would be a fault: causes of idling are 1.2 s, and not 1 s.
std::string sum_fault(const Metrics& metrics);

/// Counts what a trace tells: a sink beside others.
class TraceAudit {
 public:
  explicit TraceAudit(const Program& program);
  void add(const Span& span) { ++ops_[static_cast<std::size_t>(span.op)]; }
  void add(const Transfer& transfer) { ++messages_[static_cast<std::size_t>(transfer.channel)]; }
  void add(const MemoryChange& change);
  /// Says where the trace of a whole run contradicts its program; empty if nowhere. Each op runs,
  /// and each message travels, as often as streams say; as many messages are sent as received; and
  /// all that was taken of memory beside what is resident is given back.
  std::string fault() const;

 private:
  struct Held {
    double bytes = 0, taken = 0;
  };

  std::string memory_fault(bool whole_patterns) const;

  const Program& program_;
  std::vector<std::int64_t> ops_, messages_;                  // by op, channel
  std::vector<std::array<Held, kMemoryClasses + 1>> memory_;  // by rank; the last is the host's
};

}  // namespace interlock
