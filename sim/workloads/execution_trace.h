// ExecutionTrace: a run as graphs of what ranks execute, as tools exchange them (Chakra).
// SPDX-License-Identifier: Apache-2.0
//
// A rank has a graph of nodes. A node begins when those it comes after are done: a Compute ends
// when its time is over, a Send or a Receive when the message has arrived, a Collective when all
// members are done. Sends of a channel (same ends, same tag) meet its Receives in order, and so do
// the collectives of a group on its members. A rank computes one node at a time.
//
// Example: the first nodes of rank 0 of two under 1F1B are 1 "0F0" (Compute), 2 a Send to rank 1
// after 1, 3 "0F1" after 1, 4 its Send after 3, 5 the Receive of the first gradient after 3, and 6
// "0B0" after 3 and 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/networks/cluster.h"
#include "sim/program/trace.h"

namespace interlock {

enum class NodeKind : std::uint8_t {
  Compute,
  Send,
  Receive,
  Collective,
  Load,   // from the memory of the host
  Store,  // likewise, to it
  Other,  // takes no time, but what comes after it waits for what it waits for
};

// Our facts about an op or a message; nodes of other tools do not tell them.
struct NodeCargo {
  Cargo cargo = Cargo::Activation;
  int stage = 0;  // at this end
};
struct NodeOp {
  OpKind kind = OpKind::F;
  int stage = 0, loss = 0;
  bool useful = false;
};

struct ExecutionNode {
  std::uint64_t id = 0;
  std::string name;
  NodeKind kind = NodeKind::Other;
  std::vector<std::uint64_t> after;  // ids
  Seconds start, duration;
  int micro_batch = 0;
  int stream = -1, place = -1;  // in the program that it is of; -1: another tool's

  // Compute
  Flops flops;
  std::optional<NodeOp> op;

  // Send, Receive; `bytes` of all
  int from = 0, to = 0, tag = 0;
  Bytes bytes;  // of a Compute: that it moves; of a Collective: what each member has before it
  /// Facts of the channel, as in Channel; if `ordered`, its messages are one queue of that depth.
  bool ordered = false, synchronous = false, sender_waits = false;
  std::optional<NodeCargo> cargo;
  int depth = Channel::kUnlimited;

  // Collective
  std::optional<CollectiveKind> collective;  // nothing: a barrier
  std::string group;                         // ranks that name it are its members
};

/// Returns whether the stream of a Send stands until its message has left, or arrived.
inline bool holds_sender(const ExecutionNode& send) {
  return send.synchronous || send.sender_waits;
}

/// The steps of a run, and which of them were measured; see Program.
struct TraceSteps {
  int stages = 1, micro_batches = 1, steps = 1, update_every = 1;
  int fill = 0, measured = 1;
  bool operator==(const TraceSteps&) const = default;
};

/// The nodes that one rank executes.
struct ExecutionTrace {
  std::string file;  // for messages; where it was read from
  std::vector<ExecutionNode> nodes;
  std::optional<TraceSteps> steps;  // nothing: one, of another tool
};

/// Returns a run of `program` as traces, by device; rank r of the program is number `devices[r]` of
/// as many. Nodes are in order of time, each after those it comes after. Throws: Error if `log` is
/// not whole, or for what such traces have no word for.
std::vector<ExecutionTrace> execution_traces(const Program& program, const TraceLog& log,
                                             const std::vector<int>& devices);

/// Nodes that are missing or meaningless, in words for the user who gave the files.
struct TraceNotes {
  std::int64_t without_time = 0;  // Computes whose duration is 0
  std::int64_t others = 0;        // nodes that take no time because of what they are
};
TraceNotes notes_on(const std::vector<ExecutionTrace>& traces);

/// Returns the program that executes `traces` on `cluster`, rank r on device r. A rank whose
/// Computes are in one order runs them in it; else whichever is ready, the one with the lower id
/// first. Throws: Error that names file and node for cycles, messages without their other end,
/// collectives whose members disagree, and ranks that are not there.
Program lower_traces(const std::vector<ExecutionTrace>& traces, const Cluster& cluster);

}  // namespace interlock
