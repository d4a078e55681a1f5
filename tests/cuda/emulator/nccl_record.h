// NcclRecord: what the emulated NCCL was asked for, and when its works ran.
// SPDX-License-Identifier: Apache-2.0
//
// Example: one all-reduce of 12 numbers between two GPUs is the calls {"all-reduce", communicator
// 0, member 0, count 12, group 0} and the same of member 1, then the passages {work 0, device 0,
// enters}, {work 0, device 1, enters}, {work 0, device 0, leaves}, {work 0, device 1, leaves}.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace emulated {

/// A call of one member, in numbers of NCCL's.
struct NcclCall {
  std::string what;  // "all-reduce", "reduce-scatter", "all-gather", "reduce", "broadcast", ...
  int communicator = 0, member = 0;
  std::size_t count = 0;
  int type = 0, operation = -1;  // of reductions
  int other = -1;                // root or peer
  int group = 0;                 // between a start and an end; counted
  bool operator==(const NcclCall&) const = default;
};

/// A stream of a device comes to a work, or gets past it. A real work takes its place on the device
/// from one to the other.
struct NcclPassage {
  int work = 0;  // in order of issue: a collective of all members, or a message
  int device = 0;
  bool enters = true;
};

struct NcclRecord {
  std::vector<int> members;  // of each communicator
  std::vector<NcclCall> calls;
  std::vector<NcclPassage> passages;
  int starts = 0, ends = 0, unpaired = 0;  // of groups; starts inside one, and ends outside
};

}  // namespace emulated

/// Returns the record, to be read and cleared; an entry point of the emulated library alone.
extern "C" emulated::NcclRecord* emulated_nccl_record();
