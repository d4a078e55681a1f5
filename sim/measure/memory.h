// MemoryTracker: bytes over time on every rank, kept only as long as order is in doubt.
// SPDX-License-Identifier: Apache-2.0
//
// Changes arrive in any order between ranks, and a transfer's end is told before its time. A change
// is settled once no earlier one can come: when the rank itself, every rank that sends to it and
// those with which it does collectives that give memory back have passed its time. Changes of one
// instant count together, so that handing bytes from one class to another makes no peak.
//
// Example: a rank keeps 16 MiB of weights, 16 MiB of gradients and 64 MiB of optimiser states all
// the time. It takes 4 MiB of stash at 0 s, 4 MiB more at 1 ms, and gives 4 MiB back at 8 ms. The
// peak is {total 104 MiB, stash 8 MiB, time 1 ms}.
#pragma once

#include <array>
#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// The largest number of bytes that a rank held, and when; of a device, all that its allocator
/// held.
struct MemoryPeak {
  Bytes total, stash, allocated;                // each its own peak
  Bytes host_stash;                             // of its host, likewise
  Seconds time;                                 // of total
  std::array<Bytes, kMemoryClasses> at_peak{};  // split at that time
};

class MemoryTracker {
 public:
  /// REQUIRES: not a frozen program, whose longest path tells a rank's changes out of order.
  explicit MemoryTracker(const Program& program);
  void add(const MemoryChange& change);
  /// Notes that a rank began an op: none of its changes lies before `start` any more.
  void pass(int rank, Seconds start);
  /// Settles all changes and returns the peaks. To be called once, at the end.
  std::vector<MemoryPeak> finish();

  /// Allocators hand out whole blocks of this many bytes.
  static constexpr double kBlock = 256;

 private:
  static constexpr std::size_t kLeastPatience = 16;

  struct Change {
    double time, bytes;
    MemoryClass memory_class;
  };
  struct RankState {
    std::vector<Change> pending;  // the earliest first, if sorted
    bool sorted = true;
    std::vector<int> senders;               // ranks that send to this one
    std::vector<int> communicators;         // of collectives that give memory back
    std::size_t patience = kLeastPatience;  // changes to collect before looking what is settled
    double passed = 0;
    std::array<double, kMemoryClasses> bytes{};
    double allocated = 0;
    double host_stash = 0;
    MemoryPeak peak;
  };
  /// Returns the time before which no other rank can change the memory of `rank` any more.
  double settled_before(const RankState& rank) const;
  void settle(RankState& rank, double before);
  void note_peak(RankState& rank, double time);

  std::vector<RankState> ranks_;
  std::vector<Communicator> communicators_;  // empty but for those that RankState names
  double held_ = 1;                          // see Program
};

}  // namespace interlock
