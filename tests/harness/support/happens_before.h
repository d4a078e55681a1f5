// Judges whether events, one after the other, are in an order that a program allows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/program/issue_order.h"

namespace interlock {

/// Everything: the list has every instruction. Work: it has ops, sends and receives only; what lies
/// between them may have been done as soon as it could.
enum class Listed { Everything, Work };

/// The first rule that `order` breaks, in words; empty if it is a linear extension of `program`:
/// streams in order and whole, a message received after it was sent and in the order of sending,
/// never more untaken than a channel is deep, senders of rendezvous behind their receivers, waits
/// behind records, one op at a time and, where the program is frozen, in its order.
std::string broken_rule(const Program& program, const std::vector<Issue>& order, Listed listed);

/// The stream of a rank that would do this next, after `order`; -1 if none would. For work that is
/// known by its rank alone.
class StreamFinder {
 public:
  explicit StreamFinder(const Program& program);
  int stream_of(int rank, Opcode code, int index, int micro_batch);

 private:
  const Program& program_;
  std::vector<std::vector<Instruction>> left_;  // work of each stream, the next one last
};

}  // namespace interlock
